"""An event that cannot be read is shown with its fault, and stops neither its page, nor its partition, nor what is read
beside it.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from epochal.codec.bodies import Encoded, encode_claim
from epochal.contrib.equinox.calving import Fixed
from epochal.contrib.equinox.streams import Tips
from epochal.errors import CorruptData, DeniedBody, MissingBody, UnknownEncoding
from epochal.feed.results import FeedItem
from epochal.index.checkpoints import calf_key, tip_key
from epochal.layout.tables import store_tables
from epochal.model.bodies import Claim
from epochal.model.events import Event
from epochal.model.stream_names import StreamName
from epochal.plan.ops import Delete, Get, Put
from epochal.plan.values import Item, binary, number, text
from epochal.store.driver import Driver, Meter
from epochal.store.encoding import BodyCodec
from epochal.store.streams import Streams
from epochal.testing.stores import MemoryBodies
from tests.layouts.stores import ALICE, BOB, JOURNAL, START, Layouts
from tests.simulation.gradual import Gradual

ORDER = StreamName("Order-1")


@pytest.fixture
def layouts() -> Layouts:
    return Layouts()


def stored(layouts: Layouts, table: str, key: Item) -> Item:
    found = layouts.tables.execute(Get(table=table, key=key)).item
    assert found is not None
    return found


def shown(items: list[FeedItem]) -> list[tuple[str, int, str, type[Exception] | None]]:
    return [
        (item.stream, item.index, item.type, None if item.fault is None else type(item.fault))
        for item in items
    ]


# ------------------------------------------------------------------------------------------------------------ bodies

BROKEN: dict[str, tuple[Encoded, type[Exception]]] = {
    "an encoding of another library": (Encoded(3, b"x"), UnknownEncoding),
    "deflate cut off": (Encoded(1, b"\x4b"), CorruptData),
    "no brotli": (Encoded(2, b"\xff\xff"), CorruptData),
    "a claim whose object is gone": (
        encode_claim(Claim(key="bodies/1", sha256="0" * 64, size=9)),
        MissingBody,
    ),
    "a claim whose object may not be read": (
        encode_claim(Claim(key="exports/1", sha256="0" * 64, size=9)),
        DeniedBody,
    ),
}


def with_body(layouts: Layouts, index: int, body: Encoded) -> None:
    """Put a body into an event that the Tip of Order-1 carries."""
    tip = stored(layouts, "tips", tip_key(ORDER))
    events = list(tip["e"]["L"])
    events[index] = {"M": {**events[index]["M"], "d": binary(body.data), "D": number(body.encoding)}}
    layouts.tables.execute(Put(table="tips", item={**tip, "e": {"L": events}}))


class Bucket(MemoryBodies):
    """A bucket that is empty, and whose objects may be read where bodies lie."""

    def get(self, claim: Claim) -> bytes:
        if claim.key.startswith("bodies/"):
            return super().get(claim)
        raise DeniedBody(claim.key, "AccessDenied")


class WithBucket(Layouts):
    """A deployment whose streams have such a bucket."""

    @property
    def streams(self) -> Streams:
        return Streams(driver=self.driver, table="tips", layout=Tips(), codec=BodyCodec(bodies=Bucket()))


@pytest.mark.parametrize(("body", "fault"), BROKEN.values(), ids=BROKEN)
def test_an_event_whose_body_cannot_be_read_is_shown_with_its_fault_among_the_others(
    body: Encoded, fault: type[Exception]
) -> None:
    layouts = WithBucket()
    layouts.append("Order-1", *"abcd")
    layouts.append("Order-2", "x")
    layouts.index()
    with_body(layouts, 1, body)

    items = layouts.items("tips", data=True)

    assert shown(items) == [
        ("Order-1", 0, "a", None),
        ("Order-1", 1, "b", fault),
        ("Order-1", 2, "c", None),
        ("Order-1", 3, "d", None),
        ("Order-2", 0, "x", None),
    ]
    assert [item.event is None for item in items] == [False, True, False, False, False]
    assert layouts.feed("tips") == [(item.stream, item.index, item.type) for item in items]


def test_whoever_wants_to_stop_at_a_fault_asks_for_it(layouts: Layouts) -> None:
    layouts.append("Order-1", *"ab")
    layouts.index()
    with_body(layouts, 1, Encoded(3, b""))
    reader = layouts.reader()

    with pytest.raises(UnknownEncoding):
        reader.page(0, data=True, strict=True)
    with pytest.raises(UnknownEncoding):
        list(reader.read(0, data=True, strict=True))
    with pytest.raises(UnknownEncoding):
        next(reader.follow(0, data=True, strict=True))


def test_a_read_of_the_stream_gives_what_is_before_a_fault_and_then_raises_it(layouts: Layouts) -> None:
    layouts.append("Order-1", *"abcd")
    with_body(layouts, 2, Encoded(3, b""))
    found: list[int] = []

    def read() -> None:
        found.extend(event.index for event in layouts.streams.read("Order-1"))

    with pytest.raises(UnknownEncoding):
        read()
    assert found == [0, 1]
    page = layouts.streams.page("Order-1")
    assert ([event.index for event in page.events], page.next) == ([0, 1], 2)
    with pytest.raises(UnknownEncoding):
        layouts.streams.page("Order-1", start=2)
    assert [event.index for event in layouts.streams.read("Order-1", start=3)] == [3]


# --------------------------------------------------------------------------------------------------------------- items


def of_item(layouts: Layouts, **changed: object) -> Callable[[], object]:
    tip = stored(layouts, "tips", tip_key(ORDER))
    return lambda: layouts.tables.execute(Put(table="tips", item={**tip, **changed}))  # type: ignore[dict-item]


TIPS_BROKEN: dict[str, dict[str, object]] = {
    "its counts do not agree": {"c": {"L": []}},
    "its events are no list": {"e": {"S": "x"}},
    "its next index is no number": {"n": {"S": "two"}},
    "its events are no maps": {"e": {"L": [{"S": "x"}] * 4}},
    "an encoding is no number": {"e": {"L": [{"M": {"d": {"B": b""}, "D": {"S": "x"}}}] * 4}},
}


@pytest.mark.parametrize("changed", TIPS_BROKEN.values(), ids=TIPS_BROKEN)
def test_a_tip_that_cannot_be_read_stops_its_stream_alone(
    layouts: Layouts, changed: dict[str, object]
) -> None:
    layouts.append("Order-1", *"abcd")
    layouts.append("Order-2", "x")
    layouts.index()
    of_item(layouts, **changed)()

    items = layouts.items("tips", data=True)

    assert shown(items) == [
        *(("Order-1", at, "abcd"[at], CorruptData) for at in range(4)),
        ("Order-2", 0, "x", None),
    ]


def test_a_calf_that_cannot_be_read_hides_nothing_before_it(layouts: Layouts) -> None:
    calving = Streams(
        driver=layouts.driver, table="tips", layout=Tips(calving=Fixed(max_events=1, mode="two-step"))
    )
    for kind in "abcd":
        calving.append(ORDER, [Event(type=kind)])
    layouts.index()
    broken = {**stored(layouts, "tips", calf_key(ORDER, 1)), "c": {"S": "x"}}
    layouts.tables.execute(Put(table="tips", item=broken))

    items = layouts.items("tips", data=True)

    assert [item.fault is None for item in items[:2]] == [True, False]


@pytest.mark.parametrize(
    "changed",
    [
        {"payload": binary(b"not JSON")},
        {"payload": text("no bytes")},
        {"seq_nr": {"N": "1.5"}},
        {"seq_nr": number(0)},
        {"seq_nr": number(1)},
        {"seq_nr": number(4)},
    ],
    ids=["no JSON", "no bytes", "no whole number", "no event's number", "another's number", "a later number"],
)
def test_an_aggregates_event_that_cannot_be_read_stops_itself_alone(
    layouts: Layouts, changed: dict[str, Item]
) -> None:
    layouts.persist(ALICE, *"abc")
    layouts.persist(BOB, "x")
    layouts.index()
    event = stored(layouts, "journal", JOURNAL.keys.key(ALICE, 2))
    layouts.tables.execute(Put(table="journal", item={**event, **changed}))

    items = layouts.items("journal", data=True)

    assert shown(items) == [
        (str(ALICE), 0, "a", None),
        (str(ALICE), 1, "b", CorruptData),
        (str(ALICE), 2, "c", None),
        (str(BOB), 0, "x", None),
    ]


@pytest.mark.parametrize("name", ["eventType", "payload", "sortableUniqueId", "timestamp"])
def test_a_tagged_event_that_cannot_be_read_stops_itself_alone(layouts: Layouts, name: str) -> None:
    for kind in "abc":
        layouts.tag(kind, "course:1", "student:7")
    layouts.index()
    (event,) = (item for item in layouts.tables.items("events") if item["eventType"]["S"] == "b")
    layouts.tables.execute(Put(table="events", item={each: event[each] for each in event if each != name}))

    items = layouts.items("dcb", data=True)

    broken = [(item.stream, item.index, item.type) for item in items if item.fault]
    assert broken == [("course:1", 1, "b"), ("student:7", 1, "b")]
    assert sum(item.event is not None for item in items) == 4


def test_an_entry_that_is_lost_stops_its_tag_alone(layouts: Layouts) -> None:
    for kind in "abc":
        layouts.tag(kind, "course:1", "student:7")
    layouts.index()
    (entry,) = (
        item
        for item in layouts.tables.items("tags")
        if item.get("tagString") == text("course:1") and item["eventType"]["S"] == "b"
    )
    layouts.tables.execute(Delete(table="tags", key={name: entry[name] for name in ("pk", "sk")}))

    items = layouts.items("dcb", data=True)

    assert [(item.index, item.fault is None) for item in items if item.stream == "course:1"] == [
        (0, True),
        (1, False),
        (2, False),
    ]
    assert all(item.event for item in items if item.stream == "student:7")


# ---------------------------------------------------------------------------------------------------- half carried out


@pytest.mark.parametrize("late", ["events", "tags"])
def test_a_tagged_event_that_does_not_show_yet_is_waited_for_and_has_not_expired(late: str) -> None:
    tables = Gradual({spec.kind: spec for spec in store_tables()})
    layouts = Layouts(tables=tables)
    layouts.tag("a", "course:1")
    tables.late = lambda write: write.table == late and isinstance(write, Put) and "eventId" in write.item
    layouts.tag("b", "course:1")
    reader = layouts.reader().on(Driver(execute=tables.execute, meter=Meter(), sleep=lambda _: None))

    found = list(reader.events(START["dcb"], "course:1", 0, 2))

    assert [(event.type, event.gone, event.fault) for event in found] == [
        ("a", None, None),
        ("b", None, None),
    ]


def test_an_aggregates_event_that_does_not_show_yet_is_waited_for() -> None:
    tables = Gradual({spec.kind: spec for spec in store_tables()})
    layouts = Layouts(tables=tables)
    tables.late = lambda write: write.table == "journal"
    layouts.persist(ALICE, "a")
    reader = layouts.reader().on(Driver(execute=tables.execute, meter=Meter(), sleep=lambda _: None))

    found = list(reader.events(START["journal"], str(ALICE), 0, 1))

    assert [(event.type, event.fault) for event in found] == [("a", None)]
