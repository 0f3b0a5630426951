"""G14: bad input gets an error that names the field and the rule, and changes nothing."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from epochal.contrib.equinox import memory_tips
from epochal.errors import InvalidInput
from epochal.model.events import Event, Unfold
from epochal.model.outcomes import Appended
from epochal.model.tokens import MAX_VERSION, Token
from epochal.store.streams import Streams
from epochal.testing.memory import MemoryTables
from epochal.testing.stores import memory_tables
from tests.contrib.equinox.layout.items import store, tip

E = Event(type="E")
Act = Callable[[Streams], object]


def appending(*events: Event, unfolds: tuple[Unfold, ...] | None = None) -> Act:
    return lambda streams: streams.append("A-1", events, unfolds=unfolds)


BAD: dict[str, tuple[Act, str, str]] = {
    "nothing to write": (appending(), "events", "must not be empty"),
    "an empty type": (appending(E, Event(type="")), "events[1].type", "1 to 512 bytes"),
    "a type of 513 bytes": (appending(Event(type="ü" * 257)), "events[0].type", "1 to 512 bytes"),
    "a type of half a character": (appending(Event(type="\ud800")), "events[0].type", "lone surrogates"),
    "an empty correlation id": (
        appending(Event(type="E", correlation_id="")),
        "events[0].correlation_id",
        "1 to 1,024",
    ),
    "a long causation id": (
        appending(Event(type="E", causation_id="x" * 1025)),
        "events[0].causation_id",
        "1 to 1,024 bytes",
    ),
    "an id of half a character": (
        appending(Event(type="E", causation_id="\udfff")),
        "events[0].causation_id",
        "lone surrogates",
    ),
    "tags, which the layout does not keep": (
        appending(E, Event(type="E", tags=("course:1",))),
        "events[1].tags",
        "keeps no tags",
    ),
    "an id where none is kept": (
        appending(E, Event(type="E", id="0189f0a5-0000-7000-8000-000000000001")),
        "events[1].id",
        "is not supported by the layout tips",
    ),
    "no time": (appending(E, E, Event(type="E", timestamp="noon")), "events[2].timestamp", "ISO 8601"),
    "a time after time": (
        appending(Event(type="E", timestamp="9999-12-31T23:59:59-14:00")),
        "events[0].timestamp",
        "years 1 to 9999",
    ),
    "an unfold without a type": (
        appending(E, unfolds=(Unfold(type=""),)),
        "unfolds[0].type",
        "1 to 512 bytes",
    ),
    "an unfold at no time": (
        appending(unfolds=(Unfold(type="U"), Unfold(type="U", timestamp=""))),
        "unfolds[1].timestamp",
        "ISO 8601",
    ),
    "append, reserved name": (lambda streams: streams.append("$a", [E]), "stream", "reserved"),
    "load, empty name": (lambda streams: streams.load(""), "stream", "empty"),
    "read, a path": (lambda streams: streams.read("a/b"), "stream", "ASCII"),
    "page, reserved name": (lambda streams: streams.page("$a"), "stream", "reserved"),
    "prune, reserved name": (lambda streams: streams.prune("$a", 1), "stream", "reserved"),
    "delete, reserved name": (lambda streams: streams.delete("$a"), "stream", "reserved"),
    "prune below nothing": (lambda streams: streams.prune("A-1", -1), "before", "at least 0"),
    "a page of nothing": (lambda streams: streams.page("A-1", limit=0), "limit", "at least 1"),
    "a page from before the beginning": (
        lambda streams: streams.page("A-1", start=-1),
        "start",
        "at least 0",
    ),
    "a read of nothing": (lambda streams: streams.read("A-1", limit=0), "limit", "at least 1"),
    "a read from before the beginning": (
        lambda streams: streams.read("A-1", start=-1),
        "start",
        "at least 0",
    ),
}


@pytest.fixture
def tables() -> MemoryTables:
    return memory_tables()


@pytest.mark.parametrize(("act", "field", "rule"), BAD.values(), ids=BAD)
def test_bad_input_is_refused_by_field_and_rule_before_anything_is_asked(
    tables: MemoryTables, act: Act, field: str, rule: str
) -> None:
    streams = memory_tips(tables)

    with pytest.raises(InvalidInput) as refused:
        act(streams)

    assert refused.value.field == field
    assert rule in refused.value.rule
    assert streams.driver.meter.requests == 0


@pytest.mark.parametrize(
    "event",
    [
        Event(type="x"),
        Event(type="ü" * 256),
        Event(type="🜁" * 128, correlation_id="x", causation_id="ü" * 512),
        Event(type="E", data=bytes(range(256)), meta=b"\xff"),
        Event(type="E", timestamp="0001-01-01T00:00:00Z"),
    ],
    ids=["short", "512 bytes", "long ids", "any bytes", "the first moment"],
)
def test_whatever_the_rules_allow_is_stored_as_it_is(event: Event) -> None:
    streams = memory_tips()

    assert isinstance(streams.append("A-1", [event]), Appended)

    (read,) = streams.read("A-1")
    assert (read.type, read.data, read.meta) == (event.type, event.data, event.meta)
    assert (read.correlation_id, read.causation_id) == (event.correlation_id, event.causation_id)


def test_a_stream_that_would_outgrow_its_indices_is_refused(tables: MemoryTables) -> None:
    store(tables, {**tip(MAX_VERSION - 1), "p": {"S": "A-1"}})
    streams = memory_tips(tables)

    assert isinstance(streams.append("A-1", [E]), Appended)
    with pytest.raises(InvalidInput, match="at most"):
        streams.append("A-1", [E])


def test_a_token_of_a_stream_that_is_gone_is_a_conflict_not_an_error() -> None:
    outcome = memory_tips().try_append("A-1", [E], expected=Token(version=5, etag="0" * 32, events=3))

    assert not isinstance(outcome, Appended)
    assert outcome.version == 0  # type: ignore[union-attr]
