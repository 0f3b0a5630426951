"""Commands of operators to a reaction's function: list, replay, discard or skip parked streams.

Requests and answers are plain JSON, because they are a function's payload. Every request ends in time; a replay that
could not finish reports that, and the operator sends it again.
"""

from __future__ import annotations

from typing import Any

from epochal.errors import EpochalError, InvalidInput
from epochal.lazy_dataclasses import dataclass
from epochal.reactions.parking import ParkedStream, Parking, Replayed

COMMANDS = ("parked", "replay", "discard", "skip")


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """An operator's request about parked streams: `parked` lists a partition's, the others change one of them.

    Attributes:
        name: one of `COMMANDS`.
        partition: number of the partition.
        stream: name of the stream; empty for `parked`.
        index: index of the event that `skip` gives up; None for the one that the stream waits for.
    """

    name: str
    partition: int
    stream: str = ""
    index: int | None = None


def parse_command(fields: dict[str, Any]) -> Command:
    """Convert an operator's request into a `Command`; raise `InvalidInput` for a missing or wrong field.

    Raises:
        InvalidInput: a field is missing or wrong; the error names it.
    """
    name, partition, stream = fields.get("command"), fields.get("partition"), fields.get("stream", "")
    if name not in COMMANDS:
        raise InvalidInput("command", f"must be one of {', '.join(COMMANDS)}")
    if type(partition) is not int or partition < 0:
        raise InvalidInput("partition", "must be the number of a partition")
    if not isinstance(stream, str):
        raise InvalidInput("stream", "must be the name of a stream")
    index = fields.get("index")
    if index is not None and (name != "skip" or type(index) is not int or index < 0):
        raise InvalidInput("index", "must be the index of an event, and can only be given with skip")
    return Command(name=name, partition=partition, stream=stream, index=index)


def operate(parking: Parking, fields: dict[str, Any], seconds: float) -> dict[str, Any]:
    """Perform an operator's command on parked streams; return the answer, or the error, as JSON."""
    try:
        return _answer(parking, parse_command(fields), seconds)
    except EpochalError as error:
        return {"error": type(error).__name__, "detail": str(error)}


def _answer(parking: Parking, command: Command, seconds: float) -> dict[str, Any]:
    """List, replay, discard or skip parked streams, as a checked command asks; return the result."""
    match command.name:
        case "parked":
            return {"parked": [parked_view(parked) for parked in parking.streams(command.partition)]}
        case "replay":
            return _replayed(parking.replay(command.partition, command.stream, seconds=seconds))
        case "discard":
            return _replayed(parking.discard(command.partition, command.stream))
        case _:
            return {"next": parking.skip(command.partition, command.stream, command.index), "unparked": False}


def parked_view(parked: ParkedStream) -> dict[str, Any]:
    """Convert a parked stream into JSON."""
    cause = parked.cause
    return {
        "partition": parked.partition,
        "stream": parked.stream,
        "index": parked.index,
        "cause": None if cause is None else cause.text,
        "attempts": None if cause is None else cause.attempts,
        "since": None if cause is None else cause.timestamp,
        "trace": None if cause is None else cause.trace,
    }


def _replayed(replayed: Replayed) -> dict[str, Any]:
    failure = None
    if (failed := replayed.failure) is not None:
        failure = {"index": failed.index, "cause": failed.cause, "trace": failed.trace}
    return {"next": replayed.next, "unparked": replayed.unparked, "failure": failure}
