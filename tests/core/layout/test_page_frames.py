"""Frames and unfolds: exactly what was put in comes out, and what nobody put in is corrupt."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from typing import Any

import brotli
import pytest
from hypothesis import given
from hypothesis import strategies as st

from epochal.codec.bodies import BROTLI, CLAIM, DIRECT, EMPTY, Encoded
from epochal.errors import CorruptData, TooLarge
from epochal.layout.streams import EncodedEvent, EncodedUnfold
from epochal.model.events import Recorded
from epochal.model.moments import END, Ticks, format_ticks, parse_time
from epochal.pages.frames import (
    MAX_CONTENT,
    MAX_EVENTS,
    Frame,
    Unfolds,
    pack_events,
    pack_unfolds,
    plain_events,
    read_frame,
    read_unfolds,
    stamp_of,
    time_of,
    write_events,
    write_unfolds,
)
from epochal.store.encoding import BodyCodec, recorded_events

NOW = parse_time("2026-11-22T08:00:00Z")
STAMP = stamp_of(NOW, bytes(range(8)))

TICKS = st.one_of(st.just(NOW), st.integers(0, END - 1).map(Ticks))
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
BODIES = st.one_of(
    st.just(EMPTY),
    st.builds(Encoded, st.sampled_from([DIRECT, BROTLI, CLAIM, 255]), st.binary(max_size=200)),
    st.builds(Encoded, st.just(DIRECT), st.text("ab", min_size=48, max_size=300).map(str.encode)),
)
FIELDS = {"type": TEXTS, "data": BODIES, "meta": BODIES, "timestamp": TICKS.map(format_ticks)}
IDS = st.none() | TEXTS
EVENTS = st.lists(
    st.builds(
        EncodedEvent,
        **FIELDS,
        correlation_id=IDS,
        causation_id=IDS,
        append_id=st.none(),
        label=st.binary(max_size=40),
        stamp=st.just(b""),
    ),
    min_size=1,
    max_size=5,
)
UNFOLDS = st.lists(st.builds(EncodedUnfold, version=st.just(7), **FIELDS), min_size=1, max_size=3)
WHEN = st.integers(0, END - 1).map(Ticks)


def framed(events: list[EncodedEvent], *, moment: Ticks = NOW, compress: bool = True) -> bytes:
    content = pack_events(events, moment) if compress else Encoded(DIRECT, write_events(events, moment))
    return Frame(STAMP, len(events), *content).binary()


def kept(unfolds: list[EncodedUnfold], *, compress: bool = True) -> bytes:
    content = pack_unfolds(unfolds, NOW) if compress else Encoded(DIRECT, write_unfolds(unfolds, NOW))
    return Unfolds(version=7, moment=NOW, count=len(unfolds), content=content).binary()


def event(data: bytes = b"{}", timestamp: str | None = None) -> EncodedEvent:
    return EncodedEvent(type="Happened", data=Encoded(DIRECT, data), timestamp=timestamp or format_ticks(NOW))


def as_read(events: list[EncodedEvent]) -> tuple[EncodedEvent, ...]:
    """Those with labels have the stamp beside that; the first of all has it as its append's id."""
    stamped = [each._replace(stamp=STAMP) if each.label else each for each in events]
    return (stamped[0]._replace(append_id=STAMP), *stamped[1:])


@given(events=EVENTS, compress=st.booleans())
def test_a_frame_gives_back_its_events_and_its_stamp_as_the_first_ones_append_id(
    events: list[EncodedEvent], compress: bool
) -> None:
    found = read_frame(framed(events, compress=compress))

    assert found.stamp == STAMP
    assert found.count == len(events)
    assert found.events() == as_read(events)


CONTENTS = st.one_of(
    st.tuples(st.sampled_from([b"", b"\0", b"\x01", b"\x0c", b"\x40"]), st.binary(max_size=12)).map(b"".join),
    EVENTS.map(lambda events: write_events(events, NOW)),
    st.builds(
        lambda kind, data, meta, ids: write_events(
            [
                event(data)._replace(
                    type=kind, meta=Encoded(DIRECT, meta), correlation_id=ids[0], causation_id=ids[1]
                )
            ],
            NOW,
        ),
        st.text("ab\u00e9", max_size=200),
        st.binary(max_size=300),
        st.binary(max_size=40),
        st.tuples(IDS, IDS),
    ),
)


@given(contents=st.lists(CONTENTS, min_size=1, max_size=3), count=st.sampled_from([1, 1, 1, 2]))
def test_what_is_read_in_one_loop_is_what_a_codec_makes_of_events_or_left_to_it(
    contents: list[bytes], count: int
) -> None:
    frames = [Frame(STAMP, count, DIRECT, content) for content in contents]
    plain = plain_events("Cart-1", range(5, 5 + len(frames)), frames)
    if plain is not None:
        assert plain == decoded("Cart-1", 5, frames)


@pytest.mark.parametrize("high", [0, 1, 2, 127, 128, 129])
@pytest.mark.parametrize("low", [127, 128, 133, 255])
def test_the_length_of_a_body_in_one_loop_has_one_form_and_is_that_of_all_that_follows(
    low: int, high: int
) -> None:
    length = low + 128 * high - 128 if low >= 128 else low
    for size in {length - 1, length, length + 1, low, low - 127, 0} - {-1}:
        frame = Frame(STAMP, 1, DIRECT, b"\0\x01t" + bytes((low, high)) + b"x" * size)
        try:
            (right,) = decoded("Cart-1", 5, [frame])
        except CorruptData:
            assert plain_events("Cart-1", range(5, 6), [frame]) is None
        else:
            assert plain_events("Cart-1", range(5, 6), [frame]) == [right]


def decoded(stream: str, first: int, frames: list[Frame]) -> list[Recorded]:
    stored = [event for frame in frames for event in frame.events()]
    return recorded_events(stream, range(first, first + len(stored)), stored, BodyCodec(), fetch=False)


@pytest.mark.parametrize(
    "flagged", [{}, {"meta": Encoded(DIRECT, b"m")}, {"correlation_id": "c", "causation_id": "d"}]
)
def test_events_of_a_type_ids_and_bodies_as_they_are_take_no_codec(flagged: dict[str, Any]) -> None:
    one = event(b"x" * 200)._replace(**flagged)
    frames = [read_frame(framed([one], compress=compress)) for compress in (True, False)]
    assert plain_events("Cart-1", range(7, 5, -1), frames) == [
        replace(each, index=index) for index, each in zip((7, 6), decoded("Cart-1", 0, frames), strict=True)
    ]


@pytest.mark.parametrize(
    "more",
    [
        {"type": "t" * 127},
        {"type": "t" * 128},
        {"timestamp": "1969-12-31T23:59:59.9999998Z"},  # whose distance reads as the length of what follows
        {"data": Encoded(BROTLI, brotli.compress(b"x" * 100))},
        {"meta": Encoded(CLAIM, b"{}")},
        {"label": b"label"},
    ],
)
def test_an_event_that_has_more_is_left_to_a_codec(more: dict[str, Any]) -> None:
    assert plain_events("Cart-1", range(1), [read_frame(framed([event()._replace(**more)]))]) is None


def test_unfolds_of_the_retired_encoding_3_are_refused() -> None:
    with pytest.raises(CorruptData, match="encoding 3"):
        read_unfolds(
            b"\x03"
            + kept([EncodedUnfold(version=7, type="State", data=EMPTY, timestamp=format_ticks(NOW))])[1:]
        )


@given(unfolds=UNFOLDS, compress=st.booleans())
def test_unfolds_come_back_with_the_version_that_they_were_made_from(
    unfolds: list[EncodedUnfold], compress: bool
) -> None:
    found = read_unfolds(kept(unfolds, compress=compress))

    assert (found.version, found.moment, found.count) == (7, NOW, len(unfolds))
    assert found.unfolds() == tuple(unfolds)


@given(later=WHEN)
def test_events_of_the_moment_of_their_append_have_its_stamps_time_whatever_that_becomes(
    later: Ticks,
) -> None:
    content = pack_events([event()], NOW)
    frame = Frame(stamp_of(later, bytes(8)), 1, *content)

    assert frame.events()[0].timestamp == format_ticks(later)
    assert time_of(frame.stamp) == later


def test_a_time_of_its_own_costs_an_event_eight_bytes_and_its_neighbours_few() -> None:
    bare = len(framed([event()] * 3, compress=False))
    own = [event(timestamp=format_ticks(Ticks(NOW - 10_000_000_000 + k))) for k in range(3)]

    assert len(framed(own[:1], compress=False)) == len(framed([event()], compress=False)) + 8
    assert len(framed(own, compress=False)) == bare + 8 + 1 + 1


def test_an_event_without_anything_costs_four_bytes_besides_its_type_and_data() -> None:
    assert len(framed([event(b"x" * 200)], compress=False)) == 18 + 1 + (1 + 8) + (2 + 200)
    assert len(framed([event(b"x" * 100)], compress=False)) == 18 + 1 + (1 + 8) + (1 + 100)


def test_events_that_are_alike_are_compressed_together() -> None:
    events = [event(b'{"flight":"AA1141","origin":"JFK","dest":"MIA","delay":%d}' % k) for k in range(10)]

    assert len(framed(events)) < 3 * len(framed(events[:1]))
    assert framed(events)[0] == BROTLI
    assert framed(events[:1], compress=False)[0] == DIRECT


# ------------------------------------------------------------------------------------------------------ what is corrupt

SAMPLE = framed(
    [
        event(b'{"flight":"AA1141","origin":"JFK","dest":"MIA"}', format_ticks(Ticks(NOW - 5))),
        event()._replace(meta=Encoded(CLAIM, b"{}"), correlation_id="c", causation_id="é"),
    ],
    compress=False,
)
PACKED = framed([event(b'{"n":1}' * 20)])
ALONE = kept(
    [EncodedUnfold(version=7, type="State", data=Encoded(DIRECT, b"{}"), timestamp=format_ticks(NOW))]
)


def opened(data: bytes) -> None:
    read_frame(data).events()


def opened_unfolds(data: bytes) -> None:
    read_unfolds(data).unfolds()


@pytest.mark.parametrize("whole", [SAMPLE, PACKED], ids=["as it is", "compressed"])
def test_a_frame_cut_off_anywhere_is_corrupt(whole: bytes) -> None:
    for length in range(len(whole)):
        with pytest.raises(CorruptData):
            opened(whole[:length])


def test_unfolds_cut_off_anywhere_are_corrupt() -> None:
    for length in range(len(ALONE)):
        with pytest.raises(CorruptData):
            opened_unfolds(ALONE[:length])


@pytest.mark.parametrize("whole", [SAMPLE, PACKED], ids=["as it is", "compressed"])
def test_nothing_may_follow_the_last_event(whole: bytes) -> None:
    with pytest.raises(CorruptData):
        opened(whole + b"\0")


@given(place=st.integers(0, 10_000), byte=st.integers(0, 255), whole=st.sampled_from([SAMPLE, PACKED, ALONE]))
def test_an_altered_byte_gives_other_contents_or_is_corrupt_and_nothing_else(
    place: int, byte: int, whole: bytes
) -> None:
    altered = bytearray(whole)
    altered[place % len(whole)] = byte
    for read in (opened, opened_unfolds):
        with contextlib.suppress(CorruptData):
            read(bytes(altered))


@given(data=st.binary(max_size=100), header=st.sampled_from([b"", SAMPLE[:18], PACKED[:18], ALONE[:11]]))
def test_any_bytes_are_read_or_corrupt(data: bytes, header: bytes) -> None:
    for read in (opened, opened_unfolds):
        with contextlib.suppress(CorruptData):
            read(header + data)


@given(place=st.integers(0, 10_000), byte=st.integers(0, 255))
def test_contents_have_one_form_only(place: int, byte: int) -> None:
    """What can be read is what would be written: no byte is without a meaning, and equal events are equal bytes."""
    content = bytearray(SAMPLE[18:])
    content[place % len(content)] = byte
    try:
        found = Frame(STAMP, 2, DIRECT, bytes(content)).events()
    except CorruptData:
        return

    assert Encoded(DIRECT, write_events(found, NOW)).data == content


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (b"\x80\x01a\x00", "flags"),
        (b"\x40\x01a\x00\x00", "must not be stored"),
        (b"\x40\x01a\x00\x02b", "too early"),
        (b"\x20\x01a\x00", "flags"),
        (b"\x10\x01a\x00\x00", "encoding"),
        (b"\x01\x01a\x00\x00", "must not be stored"),
        (b"\x00\x81\x00a\x00", "not in its shortest form"),
        (b"\x00\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", "too long"),
        (b"\x00\x01\xff\x00", "UTF-8"),
        (b"\x02\x01a" + b"\xff" * 8 + b"\x7f" + b"\x00", "years"),
        (b"\x00\x01a\x05ab", "too early"),
    ],
)
def test_a_content_that_no_writer_leaves_is_corrupt_and_says_why(content: bytes, what: str) -> None:
    with pytest.raises(CorruptData, match=what):
        opened(Frame(STAMP, 1, DIRECT, content).binary())


def test_an_encoding_of_later_versions_is_named() -> None:
    with pytest.raises(CorruptData, match="encoding 4"):
        read_frame(b"\x04" + SAMPLE[1:])


def test_a_stamp_beyond_all_times_is_corrupt() -> None:
    with pytest.raises(CorruptData, match="stamp"):
        read_frame(SAMPLE[:1] + b"\xff" * 16 + SAMPLE[17:])


def test_a_content_that_inflates_without_end_is_corrupt_before_it_fills_the_memory() -> None:
    bomb = Encoded(BROTLI, brotli.compress(bytes(4 * MAX_CONTENT), quality=5))

    with pytest.raises(CorruptData, match="too large"):
        Frame(STAMP, 1, *bomb).events()


def test_an_append_of_more_events_than_fit_an_item_is_refused_written_or_read() -> None:
    with pytest.raises(TooLarge):
        pack_events([event()] * (MAX_EVENTS + 1), NOW)
    with pytest.raises(CorruptData, match="events"):
        read_frame(Frame(STAMP, MAX_EVENTS + 1, DIRECT, b"").binary())
    with pytest.raises(CorruptData, match="events"):
        read_frame(Frame(STAMP, 0, DIRECT, b"").binary())
