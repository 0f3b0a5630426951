"""No error of the library quotes what is sealed: not in its message, its fields, nor in an error behind it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from enum import Enum
from typing import Any

import attrs
import msgspec
import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from epochal import Decider, Deciders, Decisions, Event, projection
from epochal.contrib.event_store_adapter import (
    AggregateDeciders,
    AggregateEvent,
    aggregate_id,
    every,
    json_state,
    sealed_state,
)
from epochal.contrib.subjects.sealing import Subjects, sealed_codec
from epochal.contrib.subjects.testing import memory_subjects
from epochal.contrib.transfer.importing.field_mapping import FieldMapping
from epochal.contrib.transfer.importing.typed_bodies import TypedBodies, must_be_readable
from epochal.deciders.codecs import EventCodec, Stored, json_codec
from epochal.deciders.upcasting import upcast
from epochal.errors import CorruptData, InvalidInput
from epochal.testing.feeds import MemoryStore
from tests.contrib.subjects.shown_errors import text_of

MARKER = "quokka4711"
AT = datetime(2026, 1, 1, tzinfo=UTC)


class Colour(Enum):
    RED = "red"


@dataclass(frozen=True)
class Person:
    name: str
    born: datetime = AT
    colour: Colour = Colour.RED
    money: Decimal = Decimal(0)
    notes: dict[str, int] = field(default_factory=dict)
    lines: list[Colour] = field(default_factory=list)


@dataclass(frozen=True)
class Checked:
    name: str

    def __post_init__(self) -> None:
        if len(self.name) > 3:
            raise ValueError(f"{self.name} is too long")


@dataclass(frozen=True)
class Crashing:
    name: str

    def __post_init__(self) -> None:
        if len(self.name) > 3:
            raise KeyError(self.name)


@attrs.frozen
class PersonAttrs:
    name: str
    notes: dict[str, int] = attrs.field(factory=dict)


class PersonPydantic(pydantic.BaseModel):
    name: str = pydantic.Field(max_length=3)
    notes: dict[str, int] = {}


class PersonMsgspec(msgspec.Struct):
    name: str
    notes: dict[str, int] = {}


KINDS: tuple[type[Any], ...] = (Person, Checked, Crashing, PersonAttrs, PersonPydantic, PersonMsgspec)


def _rename(body: dict[str, Any]) -> dict[str, Any]:
    raise LookupError(f"no rule for {body['name']}")


def _decode_strictly(stored: Stored) -> Any:
    raise RuntimeError(f"not today: {stored.data!r}")


def _encode_strictly(event: Any) -> Event:
    raise RuntimeError(f"not today: {event!r}")


CODECS: dict[str, EventCodec[Any]] = {
    **{kind.__name__: json_codec(kind) for kind in KINDS},
    "upcast": json_codec(Person, upcasts=[upcast("Person", 1, to=2)(_rename)]),
    "own": EventCodec[Any](encode=_encode_strictly, decode=_decode_strictly),
}


def sealed(codec: EventCodec[Any], subjects: Subjects) -> EventCodec[Any]:
    return sealed_codec(codec, subjects, subject_of=lambda _: "ada", shredded=lambda *_: None)


texts = st.sampled_from([MARKER, f"{MARKER} 2026-01-01", f"{MARKER}\udc80", f'"{MARKER}'])
values = st.recursive(
    st.one_of(texts, st.integers(), st.none(), st.booleans(), st.floats(allow_nan=False)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(texts | st.just("n"), inner, max_size=3)
    ),
    max_leaves=4,
)
FIELDS = ("name", "born", "colour", "money", "notes", "lines", "$v")
bodies = st.one_of(
    st.dictionaries(st.one_of(st.sampled_from(FIELDS), texts), values, max_size=4).map(
        lambda body: json.dumps({"name": MARKER, **body}).encode()
    ),
    values.map(lambda value: json.dumps(value).encode()),
    st.sampled_from(
        [
            MARKER.encode(),
            b'{"name":"%b' % MARKER.encode(),
            b'{"name":"%b","%b":1,"%b":2}' % ((MARKER.encode(),) * 3),
            b"\xff" + MARKER.encode(),
            b'{"name":"%b","money":%b}' % (MARKER.encode(), b"9" * 5_000),
            b"[" * 5_000 + MARKER.encode(),
        ]
    ),
)


def _raised(call: Callable[[], object]) -> Iterator[BaseException]:
    try:
        call()
    except Exception as error:  # noqa: BLE001  any error is looked at
        yield error


@dataclass
class World:
    """Stores in memory, in which each attempt has a stream of its own."""

    subjects: Subjects = field(default_factory=memory_subjects)
    feed: MemoryStore = field(default_factory=MemoryStore)
    count: int = 0

    def readings(self, codec: EventCodec[Any], name: str, body: bytes) -> Iterator[BaseException]:
        """What every operation raises that reads an event with this body, sealed."""
        self.count += 1
        stream, user = f"Person-{self.count}", aggregate_id("user", f"{self.count}")
        data = self.subjects.seal("ada", body)
        self.feed.streams.append(stream, [Event(type=name, data=data, tags=(f"person:{self.count}",))])
        aggregates = self.feed.aggregates
        aggregates.append(user, [AggregateEvent(type=name, data=data)], snapshot=b"{}")
        (event,) = self.feed.streams.read(stream)
        stored = Stored(type=name, data=data, stream=stream)
        view = projection(tags=[f"person:{self.count}"], codec=codec, evolve=lambda _, one: one, initial=None)
        on_streams, on_aggregates = self.deciders(codec), self.aggregate_deciders(codec)
        for call in (
            lambda: codec.decode(stored),
            lambda: codec.read(event),
            lambda: codec.keeping().decode(stored),
            lambda: on_streams.query(stream, lambda state: state),
            lambda: on_streams.handle(stream, decide=lambda _: []),
            lambda: on_aggregates.load(user),
            lambda: Decisions(self.feed.tagged).model({"view": view}),
            lambda: must_be_readable(codec, event),
            stored.json,
        ):
            yield from _raised(call)

    def writings(self, codec: EventCodec[Any], event: Any) -> Iterator[BaseException]:
        """What every operation raises that writes this event."""
        self.count += 1
        on_streams, on_aggregates = self.deciders(codec), self.aggregate_deciders(codec)
        for call in (
            lambda: codec.encode(event),
            lambda: codec.keeping().encode(event),
            lambda: codec.tagged(event, "person:1"),
            lambda: on_streams.handle(f"Person-{self.count}", decide=lambda _: [event]),
            lambda: on_aggregates.handle(aggregate_id("user", f"{self.count}"), event),
        ):
            yield from _raised(call)

    def deciders(self, codec: EventCodec[Any]) -> Deciders[Any, Any, Any]:
        return Deciders(streams=self.feed.streams, decider=DECIDER, codec=codec)

    def aggregate_deciders(self, codec: EventCodec[Any]) -> AggregateDeciders[Any, Any, Any]:
        state = sealed_state(json_state(Person), self.subjects, subject_of=lambda _: "ada")
        return AggregateDeciders(
            store=self.feed.aggregates, decider=DECIDER, codec=codec, state=state, policy=every(1)
        )


DECIDER = Decider[Any, Any, Any](
    initial=lambda: Person("nobody"), evolve=lambda _, event: event, decide=lambda event, _: [event]
)


@pytest.mark.slow
def test_an_error_about_a_sealed_body_quotes_nothing_whatever_reads_it() -> None:
    world, met = World(), list[BaseException]()

    @given(codec=st.sampled_from(sorted(CODECS)), body=bodies)
    def check(codec: str, body: bytes) -> None:
        name = "Person" if codec in ("upcast", "own") else codec
        for error in world.readings(sealed(CODECS[codec], world.subjects), name, body):
            met.append(error)
            assert MARKER not in text_of(error), codec

    check()
    assert any(isinstance(error, CorruptData) for error in met)


unexpected = st.builds(
    Person,
    name=values | st.just(MARKER),
    born=st.just(AT) | values,
    colour=st.just(Colour.RED) | values,
    money=st.just(Decimal(0)) | values,
    notes=st.dictionaries(texts, values, max_size=2),
    lines=st.lists(values, max_size=2),
)
"""Events and states with values that their class does not say."""


@pytest.mark.slow
def test_an_error_about_an_event_that_would_be_sealed_quotes_nothing_whatever_writes_it() -> None:
    world, met = World(), list[BaseException]()

    @given(codec=st.sampled_from(["Person", "own"]), event=unexpected)
    def check(codec: str, event: Person) -> None:
        for error in world.writings(sealed(CODECS[codec], world.subjects), event):
            met.append(error)
            assert MARKER not in text_of(error), codec

    check()
    assert any(isinstance(error, InvalidInput) for error in met)


@pytest.mark.slow
@given(state=unexpected, body=bodies)
def test_an_error_about_a_state_that_is_sealed_quotes_nothing(state: Person, body: bytes) -> None:
    subjects = memory_subjects()
    codec = sealed_state(json_state(Person), subjects, subject_of=lambda _: "ada")
    stored = subjects.seal("ada", body)
    for call in (lambda: codec.encode(state), lambda: codec.decode(stored)):
        for error in _raised(call):
            assert MARKER not in text_of(error)


@pytest.mark.slow
def test_an_import_of_sealed_events_rejects_them_without_quoting_them() -> None:
    subjects = memory_subjects()
    mapping = FieldMapping()

    @given(codec=st.sampled_from(sorted(CODECS)), body=bodies)
    def check(codec: str, body: bytes) -> None:
        name = "Person" if codec in ("upcast", "own") else codec
        row = {"stream": "Person-1", "type": name, "time": "2026-01-01T00:00:00Z"}
        row["data"] = subjects.seal("ada", body).decode()
        incoming = mapping.incoming(row, "line 1")
        found = TypedBodies(sealed(CODECS[codec], subjects), cells=False).typed(incoming)
        assert MARKER not in repr(found)

    check()


@pytest.mark.parametrize("codec", sorted(CODECS))
def test_the_same_codec_without_a_seal_does_quote(codec: str) -> None:
    """Else the tests above would look for what is never there."""
    name = "Person" if codec in ("upcast", "own") else codec
    body = b'{"name":"%b","born":"%b","notes":{"%b":"x"}}' % ((MARKER.encode(),) * 3)
    with pytest.raises(Exception) as refused:  # noqa: PT011  of any kind
        CODECS[codec].decode(Stored(type=name, data=body, stream="Person-1"))
    if name not in ("PersonMsgspec", "PersonPydantic"):
        assert MARKER in text_of(refused.value)
