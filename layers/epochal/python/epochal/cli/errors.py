"""What only the command line refuses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from epochal.errors import EpochalError, InvalidInput
from epochal.settings import variable

NAMED: Final = 3
"""Streams that an error names."""


class NoStore(EpochalError):
    """Nothing says which store is meant."""

    def __init__(self, why: str) -> None:
        super().__init__(
            f"no store is named, and {why}; "
            "to name one: --stack epochal-prod-store, or --streams-table and --index-table"
        )


def must_be_named(why: str, **tables: str) -> None:
    """Raise `TableUnnamed` for a table, by its setting, that nothing names."""
    for setting, table in tables.items():
        if not table:
            raise TableUnnamed(variable(setting), why)


class TableUnnamed(InvalidInput):
    """A command is about a table that nothing names; `variable` is its name in the environment."""

    def __init__(self, variable: str, why: str) -> None:
        option = variable.removeprefix("EPOCHAL_").lower().replace("_", "-")
        super().__init__(f"--{option}", f"{why}; {variable} names it as well")


class PartitionMissing(EpochalError, LookupError):
    """The feed has no such partition."""

    def __init__(self, partition: int, known: Sequence[int]) -> None:
        super().__init__(
            f"the feed has no partition {partition}; it has {', '.join(map(str, known)) or 'none yet'}"
        )
        self.partition = partition


class StackMissing(EpochalError, LookupError):
    """There is no stack of that name, or it is not Epochal's."""

    def __init__(self, stack: str, why: str) -> None:
        super().__init__(f"stack {stack}: {why}")
        self.stack = stack


class EventMissing(EpochalError, LookupError):
    """There is no such tagged event, or it has expired."""

    def __init__(self, event_id: str) -> None:
        super().__init__(f"{event_id}: there is no such event, or it has expired")
        self.event_id = event_id


class TagMissing(EpochalError, LookupError):
    """No event has this tag."""

    def __init__(self, tag: str) -> None:
        super().__init__(f"{tag}: no event has this tag")
        self.tag = tag


class ConditionFailed(EpochalError):
    """Events that a condition forbids have been appended; `events` names the first of them."""

    def __init__(self, events: Sequence[str], *, more: bool) -> None:
        rest = " and others" if more else ""
        named = ", ".join(events)
        super().__init__(f"not appended: --fail-if matches {named}{rest}; query again, and append after that")
        self.events = events


class ImportStopped(EpochalError):
    """An import ended early; what it had read until then is stored."""

    def __init__(self, read: int, cause: EpochalError) -> None:
        super().__init__(f"{cause} (the first {read:,} events are stored: go on with --skip {read})")
        self.read = read


class ConversationMissing(EpochalError, LookupError):
    """No event that was looked at belongs to a conversation."""

    def __init__(self, correlation_id: str, items: int) -> None:
        super().__init__(
            f"{correlation_id}: no event among the last {items:,} entries of each partition has this correlation id "
            "or this place; --items looks further back"
        )


class StreamMissing(EpochalError, LookupError):
    """There is no such stream."""

    def __init__(self, stream: str) -> None:
        super().__init__(f"{stream}: there is no such stream; `epochal streams` lists those that there are")
        self.stream = stream


class DocumentMissing(EpochalError, LookupError):
    """A read model has no such document."""

    def __init__(self, model: str, key: str) -> None:
        super().__init__(f"{model} has no document {key}")
        self.model = model
        self.key = key


class TimerMissing(EpochalError, LookupError):
    """No timer of the name is pending."""

    def __init__(self, stream: str, name: str) -> None:
        super().__init__(f"{stream}: no timer {name} is pending; its events have what became of it")
        self.stream = stream
        self.name = name


class CopyUnsound(EpochalError):
    """Streams that were not copied, or whose copies are not what they should be: `streams` names them."""

    def __init__(self, streams: Sequence[str]) -> None:
        named = ", ".join(streams[:NAMED])
        rest = f" and {len(streams) - NAMED:,} others" if len(streams) > NAMED else ""
        super().__init__(f"not every stream has a sound copy: {named}{rest}")
        self.streams = streams


class ImportIncomplete(EpochalError):
    """Rows were not brought in, `first` says where and why; or streams read otherwise than their source (`unlike`)."""

    def __init__(self, rejected: int, first: str, unlike: Sequence[str]) -> None:
        rows = f"{rejected:,} row{'' if rejected == 1 else 's'} did not fit: {first}" if rejected else ""
        other = f"streams read otherwise than their source: {', '.join(unlike[:NAMED])}" if unlike else ""
        super().__init__("; ".join(each for each in (rows, other) if each))
        self.rejected = rejected
        self.unlike = unlike


class EventsUnreadable(EpochalError):
    """Events that an export has as rows without bodies: their column `fault` says why."""

    def __init__(self, count: int) -> None:
        super().__init__(
            f"{count:,} of the events cannot be read: `select stream, index, fault` says which and why"
        )


class IndexUnsound(EpochalError):
    """The index is not right, or could not be made right; `found` says by what would mend it how often."""

    def __init__(self, found: Mapping[str, int]) -> None:
        advice = {
            "repair": "`epochal index repair` mends these",
            "rebuild": "only `epochal index rebuild` mends these",
            "look": "the store itself must be looked at",
        }
        told = "; ".join(f"{count:,} × {name}: {advice[name]}" for name, count in sorted(found.items()))
        super().__init__(f"the index is not right. {told}")
        self.found = found
