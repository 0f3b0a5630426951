"""Whatever text or value is handed to a public call, what is wrong with it is said in an error of ours."""

from __future__ import annotations

import base64
import contextlib
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any

import pytest

from epochal.codec import json
from epochal.contrib.equinox import memory_tips
from epochal.contrib.event_store_adapter import memory_aggregates
from epochal.contrib.event_store_adapter.ids import aggregate_id
from epochal.contrib.event_store_adapter.model import AggregateEvent
from epochal.contrib.event_store_adapter.state_codecs import json_state
from epochal.contrib.event_store_adapter.store import number_in
from epochal.contrib.sekiban import memory_dcb_events, memory_projection_states
from epochal.contrib.sekiban.listings import TagListings
from epochal.contrib.subjects.sealing import read_sealed
from epochal.deciders.codecs import Stored, json_codec
from epochal.errors import CorruptData, InvalidInput
from epochal.feed.events import FeedEvent
from epochal.http.tag_pages import read_scan_position
from epochal.index.checkpoints import parse_checkpoint
from epochal.layout.tables import READ_MODELS
from epochal.model.events import Event
from epochal.model.moments import parse_time
from epochal.model.position_text import read_position
from epochal.model.stream_append import StreamAppend
from epochal.model.tags import Query, QueryItem, parse_place
from epochal.model.tokens import parse_token
from epochal.reactions.definition import Delivery
from epochal.read_models.documents import ReadModel, ReadModels
from epochal.store.driver import Driver, Meter
from epochal.testing.memory import MemoryTables
from epochal.testing.stores import memory_streams

HALF = "\ud800"
TEXTS = {
    "brackets without end": "[" * 100_000,
    "brackets with an end": "[" * 100_000 + "]" * 100_000,
    "an exponent without end": "1e999999999999999999999",
    "a negative one": "-1e-999999999999999999999",
    "digits without end": "9" * 5_000,
    "half of a surrogate pair": HALF,
    "half of one in JSON": f'"{HALF}"',
    "half of one, escaped": '"\\ud800"',
    "a byte order mark": "\ufeff{}",
    "a null byte": "\0",
    "nothing": "",
}
ALICE = aggregate_id("user", "alice")


def raw(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def opaque(text: str) -> str:
    return base64.urlsafe_b64encode(raw(text)).decode().rstrip("=")


@dataclass(frozen=True)
class Named:
    name: str = ""


def stored(data: bytes) -> Stored:
    given: dict[str, Any] = {each.name: None for each in fields(Stored)}
    return Stored(**given | {"type": "Named", "data": data, "index": 0})


def model(name: str = "model") -> ReadModel:
    tables = MemoryTables({"read": READ_MODELS})
    return ReadModels(driver=Driver(execute=tables.execute, meter=Meter()), table="read").open(name, 1)


def put(key: str, value: Any) -> None:
    event: dict[str, Any] = {each.name: None for each in fields(FeedEvent)}
    delivery: dict[str, Any] = {each.name: None for each in fields(Delivery)}
    happened = FeedEvent(**event | {"stream": "A-1", "index": 0, "type": "x"})
    delivered = Delivery(**delivery | {"stream": "A-1", "events": (happened,)})
    model().apply(delivered, lambda documents, _: documents.put(key, value))


def tagged(**changed: Any) -> None:
    store = memory_dcb_events()
    store.append([Event(**{"type": "A", "data": "{}", "tags": ("a:1",)} | changed)])
    store.read(Query(items=(QueryItem(tags=frozenset({"a:1"})),)))


def aggregate(data: bytes = b"{}", snapshot: bytes = b"{}", **changed: Any) -> None:
    store = memory_aggregates()
    store.append(ALICE, [AggregateEvent(**{"type": "A", "data": data} | changed)], snapshot=snapshot)
    assert store.replay(ALICE) is not None
    assert len(store.events_after(ALICE)) == 1


DOORS: dict[str, Callable[[str], object]] = {
    "a stream's name": lambda text: memory_tips().append(text, [Event(type="x")]),
    "a stream's name, read": lambda text: list(memory_tips().read(text)),
    "an event's type": lambda text: memory_tips().append("A-1", [Event(type=text)]),
    "an event's timestamp": lambda text: memory_tips().append("A-1", [Event(type="x", timestamp=text)]),
    "the id of a stream's event": lambda text: memory_streams().append("A-1", [Event(type="x", id=text)]),
    "the id of a stream's event, under a key": lambda text: memory_streams().append(
        "A-1", [Event(type="x", id=text)], idempotency_key="k"
    ),
    "an event's cause, under a key": lambda text: memory_tips().append(
        "A-1", [Event(type="x", causation_id=text)], idempotency_key="k"
    ),
    "an event's type, one of several appends under a key": lambda text: memory_streams().append_all(
        [StreamAppend(stream=name, events=[Event(type=text)]) for name in ("A-1", "A-2")],
        idempotency_key="k",
    ),
    "an idempotency key": lambda text: memory_tips().append("A-1", [Event(type="x")], idempotency_key=text),
    "a token": parse_token,
    "a time": lambda text: parse_time(text, "at"),
    "a checkpoint": parse_checkpoint,
    "an aggregate's id": lambda text: memory_aggregates().lock(aggregate_id("user", text)),
    "an aggregate's event": lambda text: aggregate(raw(text)),
    "an aggregate's event's type": lambda text: aggregate(type=text),
    "an aggregate's event's time": lambda text: aggregate(occurred_at=text),
    "a snapshot": lambda text: aggregate(snapshot=raw(text)),
    "the number in a snapshot": lambda text: number_in(raw(text)),
    "a tagged event": lambda text: tagged(data=text),
    "a tagged event's type": lambda text: tagged(type=text),
    "a tagged event's id": lambda text: tagged(id=text),
    "a tagged event's cause": lambda text: tagged(causation_id=text),
    "a tag": lambda text: tagged(tags=(text,)),
    "a tag, looked up": lambda text: TagListings(store=memory_dcb_events()).latest(text),
    "a position": read_position,
    "a position's content": lambda text: read_position(opaque(text)),
    "where a scan goes on": read_scan_position,
    "where a scan goes on, its content": lambda text: read_scan_position(opaque(text)),
    "a sortable id": parse_place,
    "an event's id": lambda text: memory_dcb_events().event(text),
    "a projection's name": lambda text: memory_projection_states().find(text, "v1"),
    "a codec's event": lambda text: json_codec(Named).encode(Named(text)),
    "a codec's stored event": lambda text: json_codec(Named).decode(stored(raw(text))),
    "a codec's state": lambda text: json_state(Named).encode(Named(text)),
    "a codec's stored state": lambda text: json_state(Named).decode(raw(text)),
    "a sealed body": lambda text: read_sealed(b'{"$sealed":' + raw(text)),
    "a read model's name": model,
    "a document's key": lambda text: model().get(text),
    "a document's key, written": lambda text: put(text, 1),
    "a document's stream": lambda text: model().place(text),
    "a document": lambda text: put("key", text),
}


@pytest.mark.slow
@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
@pytest.mark.parametrize("door", DOORS.values(), ids=DOORS)
def test_a_hostile_text_is_taken_or_refused_in_words_of_ours(
    door: Callable[[str], object], text: str
) -> None:
    with contextlib.suppress(InvalidInput, CorruptData):
        door(text)


def nested(depth: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize(
    "value",
    [nested(100_000), float("nan"), {"a": HALF}, object(), 10**5_000],
    ids=lambda each: type(each).__name__,
)
def test_a_document_that_is_not_json_is_bad_input_that_names_it(value: object) -> None:
    with pytest.raises(InvalidInput, match="value: of the document key must be JSON"):
        put("key", value)


@pytest.mark.slow
@pytest.mark.parametrize(
    "text", ["[" * 100_000, "1e999999999999999999999", "9" * 5_000, '{"a":1,"a":2}', "NaN"]
)
def test_whatever_is_wrong_with_json_is_a_value_error(text: str) -> None:
    with pytest.raises(ValueError, match=r"^(?!$)"):
        json.loads(text)
    with pytest.raises(json.TooDeep):
        json.dumps(nested(100_000))
