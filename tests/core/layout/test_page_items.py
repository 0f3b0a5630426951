"""Pages as items: what is written is read, what contradicts itself is corrupt, what is something else is no page."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from epochal.codec.bodies import DIRECT, Encoded
from epochal.errors import CorruptData
from epochal.layout.key_records import KeyRecord, put_record
from epochal.layout.streams import EncodedEvent, EncodedUnfold
from epochal.model.moments import END, Ticks, format_ticks, parse_time
from epochal.model.tokens import MAX_VERSION, parse_token
from epochal.pages.frames import Frame, Unfolds, pack_events, pack_unfolds, stamp_of
from epochal.pages.items import (
    Page,
    PageState,
    frames_size,
    is_page,
    page_key,
    read_page,
    stamp_size,
    state_of,
    unfolds_size,
    write_frames,
    write_page,
)
from epochal.plan.ops import Put
from epochal.plan.values import Item, binary, item_size, number, sequence, text

NOW = parse_time("2026-11-22T08:00:00Z")


def stamp(k: int = 0) -> bytes:
    return stamp_of(Ticks(NOW + k), bytes([k] * 8))


def frame(k: int = 0, count: int = 1) -> Frame:
    events = [EncodedEvent(type="Happened", data=Encoded(DIRECT, b"{}"), timestamp=format_ticks(NOW))]
    return Frame(stamp(k), count, *pack_events(events * count, NOW))


def unfolds(version: int) -> bytes:
    state = EncodedUnfold(
        version=version, type="State", data=Encoded(DIRECT, b"{}"), timestamp=format_ticks(NOW)
    )
    return Unfolds(version=version, moment=NOW, count=1, content=pack_unfolds([state], NOW)).binary()


def page(**fields: Any) -> Page:
    given_fields = {
        "stream": "Cart-1",
        "index": 5,
        "version": 8,
        "frames": (frame(0), frame(1, 2)),
    }
    return Page(**{**given_fields, **fields})


PAGES = [
    page(),
    page(unfolds=unfolds(8)),
    page(full=True),
    page(frames=(), index=8, stamp=stamp(), full=True, deleted=True),
    page(frames=(), index=8, stamp=stamp(), unfolds=unfolds(6)),
    page(frames=(), stamp=stamp()),
    page(frames=(frame(1, 2),), low_water=6, stamp=stamp(2)),
    page(frames=(frame(1, 2),), low_water=7, stamp=stamp(2)),
    page(low_water=6, stamp=stamp(2)),
    page(index=0, version=3, low_water=700),
]


@pytest.mark.parametrize("written", PAGES, ids=range(len(PAGES)))
def test_a_page_that_is_written_is_read_and_tells_its_size(written: Page) -> None:
    assert read_page(write_page(written)) == written
    assert written.size == item_size(write_page(written))
    assert is_page(write_page(written))


def test_a_page_opens_its_frames_and_unfolds_only_when_asked() -> None:
    found = read_page(write_page(page(unfolds=unfolds(8))))

    assert [len(found.read_frame(k)) for k in (0, 1)] == [1, 2]
    assert found.read_frame(1)[0].append_id == stamp(1)
    assert [each.version for each in found.read_unfolds()] == [8]
    assert page().read_unfolds() == ()


def test_events_of_a_page_are_the_last_ones_that_it_was_given() -> None:
    assert (page().base, page().count) == (5, 3)
    cut = page(frames=(frame(1, 2),), low_water=7)
    assert (cut.base, cut.count) == (6, 2)
    emptied = page(frames=(), stamp=stamp())
    assert (emptied.base, emptied.count) == (8, 0)


def test_the_latest_stamp_is_of_the_latest_write_whether_it_added_events_or_not() -> None:
    assert page().latest == stamp(1)
    assert page(stamp=stamp(3)).latest == stamp(3)


def test_a_page_without_what_is_optional_takes_some_sixty_bytes() -> None:
    emptied = page(frames=(), stamp=stamp(), full=True)

    assert item_size(write_page(emptied)) < 60


# -------------------------------------------------------------------------------------------------------------- tokens


def test_a_token_has_the_figures_of_the_page_and_survives_its_text() -> None:
    found = page(unfolds=unfolds(8), stamp=stamp(4))
    token = found.token()

    assert (token.version, token.events, token.appends) == (8, 3, 2)
    assert token.size == found.size - stamp_size(found.stamp)
    assert token.carried == frames_size(write_frames(found.frames))
    assert token.unfolds == unfolds_size(found.unfolds)
    assert token.size - token.carried - token.unfolds == item_size(
        {**page_key("Cart-1", 5), "n": number(8), "r": number(NOW + 4)}
    )
    assert parse_token(token.text()) == token


@pytest.mark.parametrize("written", PAGES, ids=range(len(PAGES)))
def test_an_etag_tells_page_fullness_and_the_latest_time(written: Page) -> None:
    state = state_of(written.etag)

    assert state == written.state
    assert state is not None
    assert (state.index, state.full) == (written.index, written.full and not written.deleted)
    assert state.time == int.from_bytes(written.latest[:8], "big")


@given(
    index=st.integers(0, MAX_VERSION),
    full=st.booleans(),
    time=st.integers(0, END - 1),
)
def test_every_state_has_an_etag_of_its_own(index: int, full: bool, time: int) -> None:
    state = PageState(index=index, full=full, time=Ticks(time))

    assert len(state.etag()) == 32
    assert state_of(state.etag()) == state


@given(etag=st.binary(min_size=16, max_size=16).map(bytes.hex))
def test_an_etag_from_anywhere_tells_a_possible_state_or_nothing(etag: str) -> None:
    state = state_of(etag)

    assert state is None or (state.etag() == etag and state.index <= MAX_VERSION and state.time < END)


@pytest.mark.parametrize(
    "etag", ["f" * 32, "0" * 15 + "1" + "0" * 16, "00000000" + "80000001" + "0" * 16, "0" * 16 + "f" * 16]
)
def test_what_no_page_can_be_is_no_state(etag: str) -> None:
    assert state_of(etag) is None


# ------------------------------------------------------------------------------------------------------ what is corrupt


def changed(**attributes: Any) -> Item:
    item = {**write_page(page()), **attributes}
    return {name: value for name, value in item.items() if value is not None}


@pytest.mark.parametrize(
    ("item", "what"),
    [
        (changed(n=None), "not of the pages layout"),
        (changed(r=None), "not of the pages layout"),
        (changed(r=number(0)), "r is not the time"),
        (changed(r=number(NOW)), "r is not the time"),
        (changed(i=number(8), f=None, w=binary(stamp(1)), x=number(1)), "has never had an event"),
        (changed(i=number(-1)), "i or n is out of range"),
        (changed(n=number(MAX_VERSION + 1)), "i or n is out of range"),
        (changed(n=number(4)), "i or n is out of range"),
        (changed(n=number(7)), "more events"),
        (changed(n=number(9)), "f lacks events"),
        (changed(n=number(9), l=number(5)), "f lacks events"),
        (changed(l=number(9)), "l beyond n"),
        (changed(l=number(-1)), "l below 0"),
        (changed(z=number(1)), "tombstone"),
        (changed(x=number(2)), "x must be 1 or absent"),
        (changed(x={"BOOL": True}), "not of the pages layout"),
        (changed(f=None), "f has no frames, and w is missing"),
        (changed(f=sequence([])), "f has no frames, and w is missing"),
        (changed(f=sequence([binary(frame(1, 2).binary()), binary(frame(0).binary())])), "do not increase"),
        (changed(f=sequence([text("frame")])), "not of the pages layout"),
        (changed(f=sequence([binary(b"")])), "too early"),
        (changed(f=binary(b"frame")), "not of the pages layout"),
        (changed(w=binary(b"short")), "w has 5 bytes, not 16"),
        (changed(w=binary(stamp(1))), "do not increase"),
        (changed(w=number(1)), "not of the pages layout"),
        (changed(u=binary(b"\0")), "too early"),
        (changed(u=binary(b"")), "too early"),
        (changed(u=binary(unfolds(9))), "is greater than n"),
        (changed(p=number(1)), "not of the pages layout"),
    ],
)
def test_a_page_that_contradicts_itself_is_corrupt_and_named(item: Item, what: str) -> None:
    with pytest.raises(CorruptData, match=what) as refused:
        read_page(item)

    if "S" in item["p"]:
        assert str(refused.value).startswith(f"Cart-1: page {item['i']['N']}:") or "item 5" in str(
            refused.value
        )


def test_a_frame_whose_contents_are_broken_is_named_when_it_is_opened() -> None:
    broken = Frame(stamp(), 3, DIRECT, b"\xff")

    with pytest.raises(CorruptData, match="Cart-1: page 5, frame 0: "):
        page(frames=(broken,)).read_frame(0)
    with pytest.raises(CorruptData, match="Cart-1: page 5, unfolds: "):
        page(unfolds=unfolds(8)[:-1]).read_unfolds()


VALUES = st.sampled_from(
    [
        *map(text, ("", "Cart-1", "é")),
        *map(number, (-1, 0, 1, 5, 8, 2**40)),
        *(binary(data) for data in (b"", b"\0", stamp(), frame().binary(), unfolds(8))),
        *(sequence(map(binary, each)) for each in ((), (b"",), (frame(1).binary(), frame(2, 2).binary()))),
        sequence([text("frame")]),
        {"BOOL": True},
        {"NULL": True},
    ]
)


@given(attributes=st.dictionaries(st.sampled_from("pinrfuxzlw"), VALUES), base=st.sampled_from(PAGES))
def test_whatever_an_item_holds_it_is_read_or_corrupt(attributes: dict[str, Any], base: Page) -> None:
    for item in (attributes, {**write_page(base), **attributes}):
        with contextlib.suppress(CorruptData):
            read_page(item)


def test_what_else_has_keys_p_and_i_is_no_page() -> None:
    key_record = next(put_record("streams", KeyRecord.of("Cart-1", "key", 0), 5))
    tip = {
        "p": text("Cart-1"),
        "i": number(2_147_483_647),
        "n": number(1),
        "a": number(1),
        "etag": text("0" * 32),
    }
    calf = {"p": text("Cart-1"), "i": number(0), "n": number(1), "e": sequence([]), "c": sequence([])}
    assert isinstance(key_record, Put)

    for item in (key_record.item, tip, calf, page_key("Cart-1", 0), {}):
        assert not is_page(item)
        with pytest.raises(CorruptData):
            read_page(item)
