"""Events and rows that a source of an import yields, and the check of an event. Pure."""

from __future__ import annotations

from typing import Any

from epochal.errors import InvalidInput
from epochal.lazy_dataclasses import dataclass
from epochal.model.events import Event, check_event
from epochal.model.stream_names import no_step
from epochal.model.tags import check_tag, check_type


@dataclass(frozen=True, slots=True, kw_only=True)
class Incoming:
    """Event of a source, checked and ready to be written.

    Attributes:
        at: place of the event in the source, for people: `line 7`
        stream: name of its stream
        index: index in its stream, from 0; None where the source does not count
        event: event to append
        raw: row as the source has it, for the file of rejected rows
        renamed: whether its id is replaced: a stream gives ids of its own to events with tags
    """

    at: str
    stream: str
    index: int | None
    event: Event
    raw: Any = None
    renamed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Gone:
    """Place of an event that the source no longer has.

    Attributes:
        at: place of the row in the source, for people
        stream: name of its stream
        index: index in its stream, from 0; None where the source does not count
        raw: row as the source has it
    """

    at: str
    stream: str
    index: int | None
    raw: Any = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Misfit:
    """Row that is not imported, with the reason.

    Attributes:
        at: place of the row in the source, for people
        stream: name of its stream; empty where that is not known
        rule: reason why the row is not imported
        raw: row as the source has it
        waits: whether the row itself is fine, and waits for an earlier row to be mended
        of_none: whether the row belongs to no stream, so that no other row waits for it
    """

    at: str
    stream: str
    rule: str
    raw: Any = None
    waits: bool = False
    of_none: bool = False


Row = Incoming | Gone | Misfit
"""Row of a source, after its fields were mapped."""


def checked(event: Event) -> Event:
    """Return an event unchanged; raise `InvalidInput` if streams do not accept it.

    Raises:
        InvalidInput: a field is not valid; the error names it as mappings do.
    """
    try:
        check_event(event, "event", tags=True)
        for tag in event.tags:
            no_step(check_tag(tag), "tags")
        if event.tags:
            check_type(event.type, "type")
    except InvalidInput as error:
        error.call_it(error.field.removeprefix("event.").removesuffix("_id"))
        raise
    return event
