"""What goes with an append to tables of one's own: memory and DynamoDB Local write, refuse and count the same."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pytest

from epochal import NO_STREAM, Appended, Conflict, Event, StreamAppend
from epochal.contrib.local.endpoint import Endpoint
from epochal.dynamo.interpreter import carrier_interpreter
from epochal.errors import InvalidInput, InvalidRequest, MissingTable, TooLarge
from epochal.layout.tag_streams import TagStreams
from epochal.pages.items import STREAMS
from epochal.pages.layout import Pages
from epochal.plan.ops import Execute, Get, Put
from epochal.plan.tables import KeyAttribute, TableSpec
from epochal.store.also import (
    LEVELS,
    Absent,
    BeginsWith,
    Not,
    Present,
    check,
    compare,
    delete,
    plain,
    put,
    update,
)
from epochal.store.driver import Driver, Meter
from epochal.store.streams import Streams
from epochal.store.tagged_pages import TaggedEvents
from epochal.testing.memory import MemoryTables
from tests.support.contract_run import PREFIX
from tests.support.tables import light, make

E = Event(type="Moved", data=b"{}")
OWN = TableSpec(kind="own", partition=KeyAttribute(name="id", type="S"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Tables:
    """A table of streams and one of the program's own."""

    execute: Execute
    streams: str
    own: str

    @property
    def driver(self) -> Driver:
        return Driver(execute=self.execute, meter=Meter())

    def item(self, key: str) -> dict[str, Any] | None:
        found = self.execute(Get(table=self.own, key={"id": {"S": key}})).item
        return None if found is None else plain(found)


@pytest.fixture(params=["memory", pytest.param("ddbl", marks=pytest.mark.ddbl)])
def tables(request: pytest.FixtureRequest) -> Iterator[Tables]:
    if request.param == "memory":
        memory = MemoryTables({"streams": STREAMS, "own": OWN})
        yield Tables(execute=memory.execute, streams="streams", own="own")
        return
    endpoint: Endpoint = request.getfixturevalue("ddbl")
    client, names = endpoint.client("dynamodb"), [f"{PREFIX}also-{uuid.uuid4().hex[:8]}" for _ in range(2)]
    carrier = light(endpoint)
    yield Tables(
        execute=carrier_interpreter(carrier),
        streams=make(client, STREAMS, names[0]),
        own=make(client, OWN, names[1]),
    )
    carrier.close()


@pytest.fixture
def streams(tables: Tables) -> Streams:
    return Streams(driver=tables.driver, table=tables.streams, layout=Pages())


def test_values_come_back_as_they_went_and_numbers_add_up_exactly(streams: Streams, tables: Tables) -> None:
    item = {
        "id": "a",
        "n": 12345678901234567890123456789012345678,
        "d": Decimal("0.1"),
        "b": b"\0x",
        "flags": [True, False, None, {"deep": [1, "x"]}],
        "names": {"x", "y"},
        "numbers": {1, Decimal("2.5")},
    }
    streams.append("Cart-1", [E], also=[put(tables.own, item)])
    assert tables.item("a") == item

    streams.append(
        "Cart-1",
        [E],
        also=[
            update(
                tables.own,
                {"id": "a"},
                sets={"d": Decimal("1E+2")},
                adds={"n": -5, "new": Decimal("0.10")},
                extends={"flags": ["last"], "more": [1]},
                removes=["b", "never"],
                when=compare("n", ">=", 1),
            )
        ],
    )

    changed = tables.item("a")
    assert changed is not None
    assert (changed["n"], changed["new"], changed["d"]) == (item["n"] - 5, Decimal("0.1"), 100)
    assert (changed["flags"][-1], changed["more"], "b" in changed) == ("last", [1], False)


@pytest.mark.parametrize(
    ("condition", "holds"),
    [
        (Absent("id"), False),
        (Present("n"), True),
        (compare("n", "<", 5), True),
        (compare("n", "<=", 3), False),
        (compare("n", "=", "4"), False),
        (compare("names", "=", {"y", "x"}), True),
        (BeginsWith("name", "An"), True),
        (Not(compare("missing", "=", 1)), True),
    ],
    ids=repr,
)
def test_conditions_hold_alike(streams: Streams, tables: Tables, condition: Any, holds: bool) -> None:
    stored = {"id": "c", "n": 4, "name": "Ann", "names": {"x", "y"}}
    streams.append("Cart-1", [E], also=[put(tables.own, stored)])

    outcome = streams.try_append("Cart-1", [E], also=[check(tables.own, {"id": "c"}, condition)])

    assert outcome == Conflict(unmet={0: stored}) if not holds else isinstance(outcome, Appended)


def test_an_append_with_items_is_one_request(streams: Streams, tables: Tables) -> None:
    token = streams.append("User-1", [E]).token

    made = streams.append("User-1", [E], expected=token, also=[put(tables.own, {"id": "a"})])
    both = streams.append_all(
        [StreamAppend(stream=name, events=[E], expected=NO_STREAM) for name in ("A-1", "A-2")],
        also=[update(tables.own, {"id": "n"}, adds={"n": 1}), check(tables.own, {"id": "a"}, Present("id"))],
    )

    assert (made.capacity.requests, both.capacity.requests) == (1, 1)
    assert streams.append("User-1", [E], expected=made.token).capacity.write == 1


def test_a_key_and_tags_count_what_goes_with_them_once(streams: Streams, tables: Tables) -> None:
    tagged = TaggedEvents(driver=tables.driver, site=TagStreams(table=tables.streams), named=streams)
    calls: list[Callable[[Any], Any]] = [
        lambda also: streams.append("User-1", [E], idempotency_key="k", also=also),
        lambda also: streams.append_all(
            [StreamAppend(stream=name, events=[E]) for name in ("A-1", "A-2")], idempotency_key="k", also=also
        ),
        lambda also: tagged.append(
            [Event(type="Moved", data=b"{}", tags=("user:1",))], idempotency_key="k", also=also
        ),
    ]
    for number, call in enumerate(calls):
        also = [
            update(tables.own, {"id": "n"}, adds={"n": 1}),
            put(tables.own, {"id": str(number)}, when=Absent("id")),
        ]
        call(also)
        call(also)
        with pytest.raises(InvalidInput, match="was already used"):
            call([delete(tables.own, {"id": "n"})])

    assert tables.item("n") == {"id": "n", "n": 3}


def test_what_the_table_refuses_writes_no_event(streams: Streams, tables: Tables) -> None:
    streams.append(
        "User-1", [E], also=[put(tables.own, {"id": "t", "x": "y" * 390_000, "s": "text", "n": 10**37 - 1})]
    )
    refused: list[tuple[Any, type[Exception], str]] = [
        (
            [put(tables.own, {"id": "a", "x": 1}), put(tables.own, {"id": "a"})],
            InvalidInput,
            "must not have two writes to one item",
        ),
        (
            [put(tables.own, {"id": "a"}), put(tables.own, {"ID": "a"})],
            InvalidInput,
            "also.*the attributes of the key are not",
        ),
        (
            [put(tables.own, {"id": 1})],
            InvalidInput,
            r"also\[0\]: the attributes of the key are not those of table",
        ),
        ([check("nowhere", {"id": "a"}, Absent("id"))], MissingTable, "^table nowhere does not"),
        ([update(tables.own, {"id": "t"}, adds={"s": 1})], InvalidRequest, "type"),
        ([update(tables.own, {"id": "t"}, adds={"n": Decimal("0.01")})], InvalidRequest, "38 digits"),
        ([update(tables.own, {"id": "t"}, extends={"more": ["z" * 20_000]})], TooLarge, r"also\[0\]"),
    ]
    for also, error, words in refused:
        with pytest.raises(error, match=words):
            streams.append("User-1", [E], also=also)

    state = streams.load("User-1")
    assert state is not None
    assert state.version == 1


@pytest.mark.slow
def test_conditions_on_items_of_more_than_4_mb_together_are_unmet_with_every_item(
    streams: Streams, tables: Tables
) -> None:
    large = [{"id": f"large-{number}", "x": b"x" * 300_000} for number in range(15)]
    for item in large:
        streams.append("Cart-1", [E], also=[put(tables.own, item)])
    new = [put(tables.own, {"id": item["id"]}, when=Absent("id")) for item in large]

    outcome = streams.try_append("Cart-1", [E], also=new)

    assert outcome == Conflict(unmet=dict(enumerate(large)))
    assert outcome.capacity.requests == 1 + 3, "the head is read first, and the items come in halves"


def test_what_is_refused_before_it_is_sent_is_all_that_is_too_much(streams: Streams, tables: Tables) -> None:
    def nested(levels: int) -> Any:
        return [nested(levels - 1)] if levels else "x"

    item = {"id": "far", "large": 10**125, "small": Decimal("1E-130"), "deep": nested(LEVELS - 1)}
    streams.append("Cart-1", [E], also=[put(tables.own, item)])
    assert tables.item("far") == item

    raw = put(tables.own, item).item
    too_much = [
        {"n": {"N": "1" + "0" * 126}},
        {"n": {"N": "1E-131"}},
        {"n": {"N": "1" * 39}},
        {"deep": {"L": [raw["deep"]]}},
    ]
    for each in too_much:
        with pytest.raises((InvalidInput, InvalidRequest)):
            tables.execute(Put(table=tables.own, item={**raw, **each}))
