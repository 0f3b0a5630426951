"""Items as Equinox writes them, or older than ours: read as they are, extended without harm, copied to the byte."""

from __future__ import annotations

import zlib

import pytest

from epochal.contrib.equinox import memory_tips
from epochal.contrib.equinox.calving import Fixed
from epochal.contrib.equinox.streams import Tips
from epochal.index.checkpoints import TIP, calf_key, tip_key
from epochal.model.events import Event
from epochal.model.expected_version import ANY, AtVersion, ExpectedVersion
from epochal.model.outcomes import Appended, Conflict
from epochal.plan.ops import Get
from epochal.plan.values import Item, binary, mapping, number, sequence, text
from epochal.store.streams import Streams
from epochal.testing.memory import MemoryTables
from tests.contrib.equinox.layout.items import STREAM, TABLE, calf, event, numbered, store, tip, without


def stored(tables: MemoryTables, base: int = TIP) -> Item:
    found = tables.execute(Get(table=TABLE, key=calf_key(STREAM, base))).item
    assert found is not None
    return found


def deflated(body: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return packer.compress(body) + packer.flush()


EQUINOX = {
    "no append id": event(b'{"a":1}'),
    "deflated data": event(deflated(b"x" * 100), D=number(1)),
    "deflated metadata": event(b"d", m=binary(deflated(b"m" * 100)), M=number(1)),
    "an encoding of 0 written out": event(b"plain", D=number(0)),
    "ids": event(b"{}", x=text("correlation"), y=text("causation")),
    "no data at all": mapping({"t": text("2013-01-01T05:15:00.0000000+00:00")}),
    "another offset": event() | {"M": {**event()["M"], "t": text("2013-01-01T00:15:00-05:00")}},
    "attributes of a later version": event(b"{}", future=mapping({"deep": sequence([number(1)])})),
}


@pytest.mark.parametrize("foreign", EQUINOX.values(), ids=EQUINOX)
def test_events_of_equinox_are_read(tables: MemoryTables, streams: Streams, foreign: object) -> None:
    store(tables, tip(1, [foreign], b=number(100)))

    (read,) = streams.read(STREAM)

    assert (read.index, read.type, read.append_id) == (0, "E", None)


def test_bodies_of_equinox_are_decoded_and_its_fields_are_all_there(
    tables: MemoryTables, streams: Streams
) -> None:
    store(tables, tip(len(EQUINOX), EQUINOX.values()))

    read = dict(zip(EQUINOX, streams.read(STREAM), strict=True))

    assert read["deflated data"].data == b"x" * 100
    assert read["deflated metadata"].meta == b"m" * 100
    assert read["an encoding of 0 written out"].data == b"plain"
    assert (read["ids"].correlation_id, read["ids"].causation_id) == ("correlation", "causation")
    assert read["no data at all"].data == b""
    assert read["another offset"].timestamp == "2013-01-01T00:15:00-05:00"


@pytest.mark.parametrize("missing", ["a", "b", "u", "etag", "l", "z"])
@pytest.mark.parametrize("expected", [ANY, AtVersion(version=2)], ids=["any", "at version"])
def test_a_tip_that_lacks_an_optional_attribute_is_read_and_appended_to(
    tables: MemoryTables, streams: Streams, missing: str, expected: ExpectedVersion
) -> None:
    full = tip(2, numbered(0, 2), b=number(0), u=sequence([]), l=number(0), z=number(0))
    store(tables, without(full, missing))

    state = streams.load(STREAM)
    assert state is not None
    assert (state.version, state.unfolds, state.low_water, state.deleted) == (2, (), 0, False)
    outcome = streams.try_append(STREAM, [Event(type="New", data=b"2")], expected=expected)

    assert isinstance(outcome, Appended)
    assert [event.data for event in streams.read(STREAM)] == [b"0", b"1", b"2"]
    assert "etag" in stored(tables)


def test_a_tip_without_an_etag_still_guards_against_lost_updates(
    tables: MemoryTables, streams: Streams
) -> None:
    store(tables, without(tip(1, numbered(0, 1)), "etag"))
    state = streams.load(STREAM)
    assert state is not None
    assert state.token.etag is None

    first = streams.try_append(STREAM, [Event(type="New")], expected=state.token)
    second = streams.try_append(STREAM, [Event(type="New")], expected=state.token)

    assert isinstance(first, Appended)
    assert isinstance(second, Conflict)


def test_a_tip_without_events_is_an_empty_stream_or_one_whose_events_are_calved(
    tables: MemoryTables, streams: Streams
) -> None:
    store(tables, tip(3), calf(0, numbered(0, 3)))

    assert [event.data for event in streams.read(STREAM)] == [b"0", b"1", b"2"]
    assert [event.data for event in streams.read(STREAM, direction="backward")] == [b"2", b"1", b"0"]
    outcome = streams.try_append(STREAM, [Event(type="New", data=b"3")])
    assert isinstance(outcome, Appended)
    assert outcome.first == 3


@pytest.mark.parametrize("mode", ["two-step", "transactional"])
def test_a_calf_is_a_copy_to_the_byte_of_whatever_the_tip_held(tables: MemoryTables, mode: str) -> None:
    events = list(EQUINOX.values())
    store(tables, tip(len(events), events, future=text("kept")))
    before = stored(tables)
    streams = memory_tips(tables)
    calving = Streams(driver=streams.driver, table=TABLE, layout=Tips(calving=Fixed(max_events=1, mode=mode)))

    calving.append(STREAM, [Event(type="New")])

    calved = stored(tables, 0)
    assert (calved["e"], calved["c"], calved["n"]) == (before["e"], before["c"], before["n"])
    assert set(calved) == {"p", "i", "n", "e", "c"}
    after = stored(tables)
    assert after["future"] == text("kept")
    assert len(after["e"]["L"]) == 1


def test_what_is_written_is_what_the_formats_say(tables: MemoryTables, streams: Streams) -> None:
    streams.append(
        STREAM,
        [
            Event(type="First", data=b"1", timestamp="2013-01-01T05:15:00Z"),
            Event(type="Second", meta=b"m" * 100),
        ],
    )

    item = tables.execute(Get(table=TABLE, key=tip_key(STREAM))).item

    assert item is not None
    assert set(item) == {"p", "i", "n", "a", "etag", "e", "c"}
    assert (item["p"], item["i"], item["n"], item["a"]) == (text(STREAM), number(TIP), number(2), number(2))
    assert item["c"] == sequence([text("First"), text("Second")])
    first, second = (event["M"] for event in item["e"]["L"])
    assert set(first) == {"t", "d", "k"}
    assert first["t"] == text("2013-01-01T05:15:00.0000000+00:00")
    assert set(second) == {"t", "m", "M"}
    assert second["M"] == number(2)
    assert len(item["etag"]["S"]) == 32
    assert len(first["k"]["B"]) == 16
