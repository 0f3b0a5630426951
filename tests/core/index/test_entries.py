from __future__ import annotations

import itertools
import json
import random
from collections import Counter
from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from epochal.codec.bodies import BROTLI, Encoded, decode, encode
from epochal.errors import CorruptData, UnknownEncoding
from epochal.index.entries import (
    ITEM_OVERHEAD,
    MAX_ENTRY_BYTES,
    MAX_ITEMS_BYTES,
    Entry,
    closing_entry,
    merge_spans,
    name_bytes,
    read_entry,
    read_spans,
    split_entry,
    with_own_metadata,
    write_entry,
)
from epochal.layout.changes import Removal, Span
from epochal.layout.streams import EncodedEvent
from tests.core.feed.feeds import spans_of
from tests.support.examples import examples

NOW = "2013-01-01T00:00:00.0000000+00:00"

types = st.text(min_size=1, max_size=8)
names = st.sampled_from(["A-1", "A-2", "B-1", "Straße-ü", 'Quote-"', "Emoji-😀"])
spans = st.lists(
    st.builds(Span, names, st.integers(0, 2**31 - 2), st.lists(types, min_size=1, max_size=4).map(tuple)),
    min_size=1,
    max_size=12,
)


def body(event: EncodedEvent) -> bytes:
    found = decode(event.data)
    assert isinstance(found, bytes)
    return found


def foreign(fields: Any, kind: str = "Ingested") -> EncodedEvent:
    return EncodedEvent(type=kind, data=encode(json.dumps(fields).encode()), timestamp=NOW)


def test_an_entry_has_the_bytes_that_propulsion_reads() -> None:
    found = write_entry(spans_of(["Order-1:0:ab", "Straße-2:7:c"]), {"Straße-2"}, NOW)
    assert found.type == "Ingested"
    assert found.timestamp == NOW
    assert body(found) == (
        '{"add":[{"p":"Order-1","i":0,"c":["a","b"]}],"app":[{"p":"Straße-2","i":7,"c":["c"]}]}'.encode()
    )


def test_a_small_entry_is_stored_as_it_is_and_a_large_one_under_brotli() -> None:
    small = write_entry([], (), NOW)
    assert small.data == Encoded(0, b'{"add":[],"app":[]}')
    rng = random.Random(5)
    large = write_entry(
        [Span(f"Order-{rng.randrange(10**6)}", 0, ("OrderPlaced",)) for _ in range(500)], (), NOW
    )
    assert large.data.encoding == BROTLI
    assert len(large.data.data) < len(encode(body(large)).data)


def test_only_a_streams_first_span_in_an_epoch_is_an_add() -> None:
    fields = json.loads(body(write_entry(spans_of(["A:0:a", "A:9:b", "B:4:c", "C:5:d"]), {"B"}, NOW)))
    assert [(span["p"], span["i"]) for span in fields["add"]] == [("A", 0)]
    assert [(span["p"], span["i"]) for span in fields["app"]] == [("A", 9), ("B", 4), ("C", 5)]


@given(spans, st.sets(names))
def test_an_entry_is_read_back_in_the_order_of_its_writes(written: list[Span], known: set[str]) -> None:
    written = merge_spans(written)
    entry = read_entry(write_entry(written, known, NOW))
    assert entry is not None
    assert list(entry.spans) == written


TURNS = spans_of(["A:3:a", "B:0:b", "A:4:cd", "B:1:e", "A:9:f", "B:2:g", "A:6:h", "C:0:i", "B:3:jk"])


def test_streams_that_take_turns_have_their_runs_in_one_span_and_a_character_for_each_event() -> None:
    found = write_entry(TURNS, {"C"}, NOW)
    assert body(found) == (
        b'{"add":[{"p":"A","i":3,"c":["a","c","d"]}],'
        b'"app":[{"p":"A","i":9,"c":["f"]},{"p":"A","i":6,"c":["h"]},'
        b'{"p":"B","i":0,"c":["b","e","g","j","k"]},{"p":"C","i":0,"c":["i"]}],'
        b'"order":"]]^^_^_^]__"}'
    )
    assert read_entry(found) == Entry(tuple(TURNS))


@given(
    st.lists(st.tuples(names, st.lists(types, min_size=1, max_size=2).map(tuple)), max_size=60),
    st.sets(names),
)
def test_turns_of_few_streams_are_read_back_in_the_order_of_their_writes(
    writes: list[tuple[str, tuple[str, ...]]], known: set[str]
) -> None:
    reached = Counter[str]()
    written: list[Span] = []
    for stream, kinds in writes:
        written.append(Span(stream, reached[stream], kinds))
        reached[stream] += len(kinds)
    written = merge_spans(written)
    entry = write_entry(written, known, NOW)
    assert read_entry(entry) == Entry(tuple(written))
    fields = json.loads(body(entry))
    added = [span["p"] for span in fields["add"]]
    assert len({*added}) == len(added)
    assert known.isdisjoint(added)


@pytest.mark.parametrize(("streams", "batch"), [(5, 200), (20, 200), (100, 200), (300, 1_000), (4_000, 200)])
def test_the_order_of_writes_takes_twelve_tenths_of_a_byte_an_event_at_most(streams: int, batch: int) -> None:
    """Against a run of a stream in one span, whose readers would lack the order."""
    rng, reached = random.Random(streams), Counter[str]()
    written: list[Span] = []
    for _ in range(batch):
        stream = f"Aircraft-N{rng.randrange(streams)}"
        written.append(Span(stream, reached[stream], (rng.choice(["FlightDeparted", "FlightArrived"]),)))
        reached[stream] += 1
    joined = merge_spans(sorted(written, key=lambda span: span.stream))
    assert stored(merge_spans(written)) <= stored(joined) + 1.2 * batch


@pytest.mark.parametrize(
    "order", ["", "]", "]]", "]]^^", "]]]", "^]]", "]\\]", "]]_", "]]a", 3, ["]", "]x"], {"]": 1}]
)
def test_an_order_that_is_not_of_an_entrys_events_is_refused_as_corrupt(order: Any) -> None:
    spans = [{"p": "A", "i": 0, "c": ["a", "b"]}, {"p": "B", "i": 0, "c": ["c"]}]
    assert read_entry(foreign({"add": spans, "order": "]]^"})) == Entry(
        tuple(spans_of(["A:0:a", "B:0:c", "A:1:b"]))
    )
    with pytest.raises(CorruptData):
        read_entry(foreign({"add": spans, "order": order}))


@given(spans, st.sets(names))
def test_what_an_entry_adds_are_new_streams_and_each_once_as_propulsion_folds_it(
    written: list[Span], known: set[str]
) -> None:
    """It adds the streams of `add` to a dictionary, which refuses a key that it has, and sets those of `app`."""
    fields = json.loads(body(write_entry(written, known, NOW)))
    added = [span["p"] for span in fields["add"]]
    assert len({*added}) == len(added)
    assert known.isdisjoint(added)
    reached = {span["p"]: span["i"] + len(span["c"]) for span in fields["add"] + fields["app"]}
    assert reached == {span.stream: span.next for span in written}


def test_how_far_marks_have_come_is_read_back_and_readers_of_the_feed_pass_over_it() -> None:
    entry = write_entry(spans_of(["A:0:a"]), (), NOW)
    marked = with_own_metadata(entry, 1_234, ())
    assert marked.data == entry.data
    assert marked.meta == Encoded(0, b'{"packed":1234}')
    assert read_entry(entry) == Entry((Span("A", 0, ("a",)),), marked=0)
    assert read_entry(marked) == Entry((Span("A", 0, ("a",)),), marked=1_234)


@pytest.mark.parametrize(
    "meta",
    [
        Encoded(0, b"[]"),
        Encoded(0, b"{}"),
        Encoded(0, b"not JSON"),
        Encoded(0, b'{"packed":-1}'),
        Encoded(0, b'{"packed":true}'),
        Encoded(0, b'{"packed":"9"}'),
        Encoded(2, b"not brotli"),
        Encoded(9, b'{"packed":9}'),
    ],
)
def test_metadata_that_tells_of_no_marks_makes_none_believed_in(meta: Encoded) -> None:
    entry = write_entry(spans_of(["A:0:a"]), (), NOW)._replace(meta=meta)
    assert read_entry(entry) == Entry((Span("A", 0, ("a",)),), marked=0)


def test_the_end_of_an_epoch_has_a_type_and_no_body() -> None:
    end = closing_entry(NOW)
    assert (end.type, end.data.data) == ("Closed", b"")
    assert read_entry(end) is None


def test_an_entry_that_leaves_a_list_out_is_read() -> None:
    assert read_entry(foreign({"add": [{"p": "A", "i": 0, "c": ["a"]}]})) == Entry((Span("A", 0, ("a",)),))
    assert read_entry(foreign({"app": [{"p": "A", "i": 3, "c": ["a"]}]})) == Entry((Span("A", 3, ("a",)),))


@pytest.mark.parametrize(
    "fields",
    [
        None,
        [],
        "text",
        3,
        {"add": None},
        {"add": {}},
        {"add": [None]},
        {"add": [[]]},
        {"add": [{"i": 0, "c": ["a"]}]},
        {"add": [{"p": "A", "c": ["a"]}]},
        {"add": [{"p": "A", "i": 0}]},
        {"add": [{"p": 1, "i": 0, "c": ["a"]}]},
        {"add": [{"p": "A", "i": "0", "c": ["a"]}]},
        {"add": [{"p": "A", "i": -1, "c": ["a"]}]},
        {"add": [{"p": "A", "i": 0.5, "c": ["a"]}]},
        {"add": [{"p": "A", "i": True, "c": ["a"]}]},
        {"add": [{"p": "A", "i": 0, "c": "abc"}]},
        {"add": [{"p": "A", "i": 0, "c": [1]}]},
        {"add": [{"p": "A", "i": 0, "c": []}]},
    ],
)
def test_an_entry_that_is_none_is_refused_as_corrupt(fields: Any) -> None:
    with pytest.raises(CorruptData):
        read_entry(foreign(fields))


def test_a_foreign_event_in_an_epoch_is_refused_by_name() -> None:
    with pytest.raises(CorruptData, match="OrderPlaced"):
        read_entry(foreign({"add": [], "app": []}, kind="OrderPlaced"))


def test_bodies_that_do_not_decode_are_refused() -> None:
    with pytest.raises(UnknownEncoding):
        read_entry(EncodedEvent(type="Ingested", data=Encoded(9, b"{}"), timestamp=NOW))
    with pytest.raises(CorruptData):
        read_entry(EncodedEvent(type="Ingested", data=Encoded(2, b"not brotli"), timestamp=NOW))
    with pytest.raises(CorruptData):
        read_entry(EncodedEvent(type="Ingested", data=Encoded(0, b"\xff"), timestamp=NOW))
    claim = Encoded(64, b'{"key":"k","sha256":"00","bytes":1}')
    with pytest.raises(CorruptData):
        read_entry(EncodedEvent(type="Ingested", data=claim, timestamp=NOW))


pieces_of_bodies = st.sampled_from(
    [
        *'{}[]",:019-\\ \x01é',
        "]},{",
        '}],"app":[{',
        ',"app":[]',
        '"c":[',
        '"i":',
        '{"p":"A","i":0,"c":["a"]}',
        ',"order":"]]^"',
    ]
)


@pytest.mark.slow
@examples(500)
@given(
    spans,
    st.sets(names),
    st.integers(0, 12) | st.integers(0),
    st.integers(0, 12),
    pieces_of_bodies | st.just(""),
)
def test_a_body_that_is_read_in_one_go_says_what_it_says_to_a_reader_of_json(
    written: list[Span], known: set[str], at: int, cut: int, put: str
) -> None:
    """Whatever becomes of a few of its characters. With spaces between its members it is read as any JSON."""
    whole = body(write_entry(merge_spans(written), known, NOW)).decode()
    at %= len(whole) + 1
    for each in (whole, whole[:at] + put + whole[at + cut :], whole[:-1] + ',"app":[]}'):
        assert told(each) == told(spaced(each))


ONE = '{"p":"A","i":0,"c":["a"]}'


@pytest.mark.parametrize(
    "text",
    [
        f'{{"add":[{ONE.replace("0", "01")}],"app":[]}}',
        f'{{"add":[{ONE.replace("A", chr(1))}],"app":[]}}',
        f'{{"add":[{ONE.replace(chr(34) + "a" + chr(34), "1")}],"app":[]}}',
        f'{{"add":[{ONE}],"app":[]}}}}',
        f'{{"add":[{ONE}],"app":[],"order":""}}',
    ],
)
def test_a_body_that_differs_little_from_what_is_written_is_refused_as_by_a_reader_of_json(text: str) -> None:
    assert told(text) is None
    assert told(spaced(text)) is None


def spaced(text: str) -> str:
    try:
        return json.dumps(json.loads(text))
    except ValueError:
        return ""


def told(text: str) -> tuple[Span, ...] | None:
    try:
        return read_spans("Ingested", Encoded(0, text.encode("utf-8", "surrogatepass")))
    except CorruptData:
        return None


def test_equal_types_of_an_entry_are_held_once() -> None:
    entry = read_entry(write_entry([Span(f"A-{each}", 0, ("a", "b")) for each in range(9)], (), NOW))
    assert entry is not None
    assert len({id(span.types) for span in entry.spans}) == 1


def incompressible(rng: random.Random, size: int) -> str:
    """A type of `size` characters that brotli can do little with."""
    return "".join(map(chr, rng.choices(range(0x4E00, 0x9000), k=size // 3)))


def stored(spans: list[Span]) -> int:
    return len(write_entry(spans, (), NOW).data.data)


def pieces(spans: list[Span]) -> list[list[Span]]:
    """What is written entry by entry."""
    found = []
    while spans:
        first, spans = split_entry(spans)
        assert first
        found.append(first)
    return found


@pytest.mark.slow
def test_what_fits_is_one_entry() -> None:
    spans = [Span(f"Order-{k:040}", 0, ("OrderPlaced",)) for k in range(7_000)]
    assert sum(len(span.stream) + len(span.types[0]) for span in spans) > MAX_ENTRY_BYTES
    assert stored(spans) < MAX_ENTRY_BYTES
    assert split_entry(spans) == (spans, [])


@pytest.mark.slow
def test_what_exceeds_300_kb_after_compression_is_split_and_nothing_is_lost() -> None:
    rng = random.Random(1)
    spans = [Span(f"Order-{k}", k, (incompressible(rng, 500),)) for k in range(2_000)]
    assert stored(spans) > 1.9 * MAX_ENTRY_BYTES
    found = pieces(spans)
    assert [span for piece in found for span in piece] == spans
    assert all(stored(piece) <= MAX_ENTRY_BYTES for piece in found)
    assert len(found) <= 8


def items_bytes(spans: list[Span]) -> int:
    """As they are sent: JSON, as a string of JSON."""
    return sum(sent(span.stream, kind) for span in spans for kind in span.types)


@cache
def sent(stream: str, kind: str) -> int:
    frame = json.dumps({"stream": stream, "index": 2**31 - 2, "type": kind}, ensure_ascii=False)
    return len(json.dumps(frame, ensure_ascii=False).encode())


@pytest.mark.parametrize("name", ["a", "\x00", '"', "\\", "\x7f", "é", "\u2028", "\U0001f680", "a\x01é"])
def test_a_name_is_reckoned_at_what_it_takes_as_json_inside_json(name: str) -> None:
    assert name_bytes(name * 10) == sent("", name * 10) - sent("", "")
    assert sent("", "") <= ITEM_OVERHEAD


@pytest.mark.slow
def test_what_a_page_has_no_room_for_is_split_however_well_it_compresses() -> None:
    written = [Span(f"Order-{k}", 0, ("OrderPlaced",) * 90) for k in range(700)]
    assert stored(written) < MAX_ENTRY_BYTES
    found = pieces(written)
    assert merge_spans([span for piece in found for span in piece]) == written
    assert all(items_bytes(piece) <= MAX_ITEMS_BYTES for piece in found)
    assert len(found) <= 4 * items_bytes(written) / MAX_ITEMS_BYTES + 1


@pytest.mark.parametrize("character", ["\x00", '"', "\U0001f680"])
@pytest.mark.slow
def test_names_that_grow_in_json_are_split_by_what_they_grow_to(character: str) -> None:
    written = [Span(f"Order-{k}", 0, (character * 128,) * 90) for k in range(100)]
    found = pieces(written)
    assert merge_spans([span for piece in found for span in piece]) == written
    assert all(items_bytes(piece) <= MAX_ITEMS_BYTES for piece in found)


@pytest.mark.slow
def test_a_single_span_that_exceeds_300_kb_is_split_too() -> None:
    rng = random.Random(2)
    whole = Span("Order-1", 40, tuple(incompressible(rng, 500) for _ in range(2_000)))
    found = pieces([whole])
    assert all(stored(piece) <= MAX_ENTRY_BYTES for piece in found)
    assert len(found) > 1
    assert merge_spans([span for piece in found for span in piece]) == [whole]


def test_a_single_event_is_an_entry_whatever_its_type() -> None:
    rng = random.Random(4)
    spans = [Span("A", 0, (incompressible(rng, 600_000),))]
    assert stored(spans) > MAX_ENTRY_BYTES
    assert split_entry(spans) == (spans, [])


@pytest.mark.slow
def test_a_span_too_large_for_the_rest_of_an_entry_is_cut_in_its_place() -> None:
    rng = random.Random(3)
    first = Span("A", 0, ("a",))
    second = Span("B", 0, tuple(incompressible(rng, 500) for _ in range(2_000)))
    found = pieces([first, second, Span("C", 0, ("c",))])
    assert found[0][0] == first
    assert merge_spans([span for piece in found for span in piece]) == [first, second, Span("C", 0, ("c",))]


def test_a_run_of_a_stream_is_split_only_where_another_streams_write_is_between() -> None:
    written = spans_of(["A:0:a", "A:1:b", "B:0:c", "A:2:d", "A:3:e", "A:9:f"])
    assert merge_spans(written) == spans_of(["A:0:ab", "B:0:c", "A:2:de", "A:9:f"])


@given(spans)
@settings(max_examples=50)
def test_merging_joins_what_joins_and_keeps_every_event_in_its_place(written: list[Span]) -> None:
    found = merge_spans(written)
    assert [event for span in found for event in events(span)] == [
        event for span in written for event in events(span)
    ]
    for one, two in itertools.pairwise(found):
        assert one.stream != two.stream or one.next != two.index


def events(span: Span) -> list[tuple[str, int, str]]:
    return [(span.stream, span.index + offset, kind) for offset, kind in enumerate(span.types)]


def test_streams_that_begin_above_0_are_named_by_their_number_and_created_with_what_is_left_of_them() -> None:
    written = spans_of(["A:0:ab", "B:5:c", "A:2:d", "C:7:e", "B:6:f"])
    entry = with_own_metadata(write_entry(written, (), NOW), 0, (), (1,))
    assert entry.meta == Encoded(0, b'{"new":[1]}')
    found = read_entry(entry)
    assert found is not None
    assert found.created == [Span("A", 0, ("a",)), Span("B", 0, ("c",))]
    plain = read_entry(write_entry(written, (), NOW))
    assert plain is not None
    assert plain.created == [Span("A", 0, ("a",))]


def test_a_stream_that_has_a_removal_alone_is_created_without_a_type() -> None:
    removal = Removal("Gone-1", 3, "emptied", 3, 0)
    entry = read_entry(with_own_metadata(write_entry(spans_of(["A:0:a"]), (), NOW), 0, (removal,), (1,)))
    assert entry is not None
    assert entry.created == [Span("A", 0, ("a",)), Span("Gone-1", 0, ("",))]


@pytest.mark.parametrize("new", [b"7", b"[true]", b"[-1]", b'["A"]', b"[9]", b"null", b"{}"])
def test_numbers_of_no_streams_are_passed_over(new: bytes) -> None:
    entry = read_entry(
        write_entry(spans_of(["A:0:a"]), (), NOW)._replace(meta=Encoded(0, b'{"new":' + new + b"}"))
    )
    assert entry is not None
    assert entry.created == [Span("A", 0, ("a",))]
