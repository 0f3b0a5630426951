"""What an operator may ask of a reaction: to list parked streams, to replay or to discard them.

Requests and answers are plain JSON, because they are a function's payload. Every request ends in time; a replay
that could not finish says so, and is asked for again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from epochal.errors import EpochalError, InvalidInput
from epochal.reactions.parking import ParkedStream, Parking, Replayed

COMMANDS = ("parked", "replay", "discard", "skip")


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A request: `parked` lists a partition's streams, the others change one of them.

    Attributes:
        index: of the event that `skip` is to give up; None for whichever the stream waits for.
    """

    name: str
    partition: int
    stream: str = ""
    index: int | None = None


def parse_command(fields: dict[str, Any]) -> Command:
    """Read a request.

    Raises:
        InvalidInput: naming the field.
    """
    name, partition, stream = fields.get("command"), fields.get("partition"), fields.get("stream", "")
    if name not in COMMANDS:
        raise InvalidInput("command", f"must be one of {', '.join(COMMANDS)}")
    if type(partition) is not int or partition < 0:
        raise InvalidInput("partition", "must be a partition's number")
    if not isinstance(stream, str):
        raise InvalidInput("stream", "must be a stream's name")
    index = fields.get("index")
    if index is not None and (name != "skip" or type(index) is not int or index < 0):
        raise InvalidInput("index", "must be an event's index, and is for skip alone")
    return Command(name=name, partition=partition, stream=stream, index=index)


def operate(parking: Parking, fields: dict[str, Any], seconds: float) -> dict[str, Any]:
    """Do what is asked, and answer; errors are answers too."""
    try:
        return _answer(parking, parse_command(fields), seconds)
    except EpochalError as error:
        return {"error": type(error).__name__, "detail": str(error)}


def _answer(parking: Parking, command: Command, seconds: float) -> dict[str, Any]:
    match command.name:
        case "parked":
            return {"parked": [parked_view(each) for each in parking.streams(command.partition)]}
        case "replay":
            return _replayed(parking.replay(command.partition, command.stream, seconds=seconds))
        case "discard":
            return _replayed(parking.discard(command.partition, command.stream))
        case _:
            return {"next": parking.skip(command.partition, command.stream, command.index), "unparked": False}


def parked_view(parked: ParkedStream) -> dict[str, Any]:
    """A parked stream as JSON."""
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
