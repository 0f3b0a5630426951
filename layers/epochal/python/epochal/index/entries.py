"""The entries of epochs: `Ingested`, one for each batch of stream records, and finally one `Closed`.

    Ingested    {"add":[{"p":stream,"i":index,"c":[types]}...],"app":[...]}    in the order of their writes, or, where
                streams take turns, a stream's run in one span, and "order":a character for each event
    Closed      no body

The same bodies as Propulsion.DynamoStore's, whose readers take `add` before `app`. `add` must have streams that are new
to the epoch, each once; `app` may have any, and as often as they were written to. So `add` has the spans before the
first of a stream that is known, and `app` all that follow: that keeps the order, and costs no byte. `order` is ours,
and their readers pass over it.

An `Ingested` may have metadata of our own, each member where there is something to say. This outlives the code.

    "packed":n                                                  how far marks have come that were written before it
    "new":[number...]                                           streams whose first events had been pruned before
    "removed":[{"p":stream,"i":first,"n":end,"k":kind,"at":next}...]    events that are gone, in their order

A number of `new` counts the entry's streams in their order, those of spans before those of removals. A removal comes
before the first event of its stream at or above `at`, or at the end of the entry.
"""

from __future__ import annotations

import json
import re
from collections.abc import Container, Iterable, Iterator, Sequence
from itertools import chain, repeat
from typing import Any, Final, cast

from epochal.codec.bodies import Encoded, decode_inline, encode
from epochal.errors import CorruptData
from epochal.index.checkpoints import epoch_stream
from epochal.index.tip import StoredSpan, Tip, load_tip
from epochal.layout.changes import Removal, RemovalKind, Span
from epochal.layout.streams import EncodedEvent
from epochal.lazy_dataclasses import dataclass
from epochal.plan.ops import Steps
from epochal.plan.values import AttributeValue

INGESTED: Final = "Ingested"
CLOSED: Final = "Closed"

MAX_ENTRY_BYTES: Final = 300 * 1024
"""An entry larger than this, as stored, is written as several: it must share an item with what is there already."""

EntryPart = Span | Removal
"""A part of an entry: appended events, or a removal of events."""

MAX_ITEMS_BYTES: Final = 1024 * 1024
"""An entry whose items are more than this is written as several too, however well it compresses: a page of the feed
ends with an entry, so each must have room in an answer."""

ITEM_OVERHEAD: Final = 80
"""Bytes estimated for an item of the feed besides the names of its stream and type, as JSON inside JSON."""

DENSE_FROM: Final = 8 * 1024
"""Bytes of a body from which brotli's quality 8 saves 2 to 10 % in the time that 5 takes; small ones grow by a byte."""

FRESH: Final = ord("]")
"""In `order`, the character for the first event of a stream. Later events of the k-th such stream have the k-th
character after this one. None of them is escaped in JSON."""


def name_bytes(name: str) -> int:
    """Return the bytes of a stream's or type's name as JSON inside JSON, up to seven per character."""
    if name.isascii() and name.isprintable() and '"' not in name and "\\" not in name:
        return len(name)
    return len(json.dumps(json.dumps(name, ensure_ascii=False), ensure_ascii=False).encode()) - 6


@dataclass(frozen=True, slots=True)
class Entry:
    """A decoded `Ingested` entry: which events were appended, in order, and which were removed.

    Attributes:
        spans: runs of events, in the order of their appends.
        marked: number of the previous epoch's streams, in the order of their hashes, that need no mark any more: they
            have one, or this epoch contains them.
        removals: removals of events.
        new: positions in `streams` of streams that were new to the index but did not begin at 0.
    """

    spans: tuple[Span, ...]
    marked: int = 0
    removals: tuple[Removal, ...] = ()
    new: tuple[int, ...] = ()

    @property
    def streams(self) -> list[str]:
        """Names of the entry's streams in order, those of spans before those of removals."""
        parts: tuple[EntryPart, ...] = (*self.spans, *self.removals)
        return list(dict.fromkeys(part.stream for part in parts))

    @property
    def created(self) -> list[Span]:
        """The first event in the index of each stream that is new to it, as a span at index 0.

        Its type is empty if the stream has only removals.
        """
        streams = self.streams if self.new else []
        new = {streams[number] for number in self.new if number < len(streams)}
        types: dict[str, str] = {}
        for span in self.spans:
            if not span.index or span.stream in new:
                types.setdefault(span.stream, span.types[0])
        for stream in sorted(new - types.keys()):
            types[stream] = ""
        return [Span(stream, 0, (kind,)) for stream, kind in types.items()]

    @property
    def parts(self) -> Sequence[EntryPart]:
        """Spans and removals together, in order."""
        return merge_removals(self.spans, self.removals) if self.removals else self.spans


def merge_removals(spans: Iterable[Span], removals: Iterable[Removal]) -> list[EntryPart]:
    """Return spans and removals in one list, each removal before its stream's event `next` or at the end.

    A span that has this event in it is cut there.
    """
    due: dict[str, list[Removal]] = {}
    for removal in removals:
        due.setdefault(removal.stream, []).append(removal)
    parts: list[EntryPart] = []
    for whole in spans:
        span = whole
        pending = due.get(span.stream, [])
        while pending and pending[0].next < span.next:
            removal = pending.pop(0)
            if removal.next > span.index:
                cut = removal.next - span.index
                parts.append(Span(span.stream, span.index, span.types[:cut]))
                span = span.since(removal.next)
            parts.append(removal)
        parts.append(span)
    return [*parts, *chain.from_iterable(due.values())]


def write_entry(spans: Iterable[Span], existing: Container[str], timestamp: str) -> EncodedEvent:
    """Encode spans as an `Ingested` entry.

    Args:
        spans: runs of events, in order, as `merge_spans` returns them.
        existing: streams that the epoch already contains.
        timestamp: time of the entry.
    """
    spans, order = _group_by_stream(list(spans))
    add: list[dict[str, Any]] = []
    app: list[dict[str, Any]] = []
    streams: set[str] = set()
    for span in spans:
        (app if app or span.stream in existing or span.stream in streams else add).append(_write_span(span))
        streams.add(span.stream)
    data = json.dumps({"add": add, "app": app, **order}, ensure_ascii=False, separators=(",", ":")).encode()
    body = encode(data, quality=8) if len(data) >= DENSE_FROM else encode(data)
    return EncodedEvent(type=INGESTED, data=body, timestamp=timestamp)


def with_own_metadata(
    entry: EncodedEvent, marked: int, removals: Sequence[Removal], new: Sequence[int] = ()
) -> EncodedEvent:
    """Return an entry with marks' progress, removals and new streams as metadata; unchanged if none."""
    fields: dict[str, Any] = {"packed": marked} if marked else {}
    if new:
        fields["new"] = list(new)
    if removals:
        fields["removed"] = [_write_removal(removal) for removal in removals]
    if not fields:
        return entry
    return entry._replace(meta=encode(json.dumps(fields, ensure_ascii=False, separators=(",", ":")).encode()))


def split_entry(parts: list[EntryPart]) -> tuple[list[EntryPart], list[EntryPart]]:
    """Split parts, by halving, into a beginning that fits into one entry, and the rest; spans may be cut."""
    first, rest = parts, list[EntryPart]()
    while _divisible(first) and _too_large(first):
        first, later = _halve(first)
        rest = later + rest
    return first, rest


def _divisible(parts: list[EntryPart]) -> bool:
    """Return whether parts can be divided further."""
    return len(parts) > 1 or any(len(part.types) > 1 for part in parts)


def _halve(parts: list[EntryPart]) -> tuple[list[EntryPart], list[EntryPart]]:
    """Divide parts into two halves; a single span is cut between its events."""
    if len(parts) > 1:
        middle = len(parts) // 2
        return parts[:middle], parts[middle:]
    span = parts[0]
    assert isinstance(span, Span)  # noqa: S101  # a removal is not divisible
    middle = len(span.types) // 2
    return [Span(span.stream, span.index, span.types[:middle])], [span.since(span.index + middle)]


def _too_large(parts: list[EntryPart]) -> bool:
    """Return whether parts take more bytes than an entry may have, stored or as items of the feed."""
    shown = sum(
        (ITEM_OVERHEAD + name_bytes(part.stream)) * (len(part.types) or 2) + sum(map(name_bytes, part.types))
        for part in parts
    )
    return shown > MAX_ITEMS_BYTES or (_might_exceed(parts) and _stored_bytes(parts) > MAX_ENTRY_BYTES)


def _might_exceed(parts: list[EntryPart]) -> bool:
    """Return whether parts may exceed the limit of an entry, by an upper bound, without encoding them.

    It is a bound: a character takes at most 4 bytes, or 6 escaped, the frame of a span 40, a type's 3, and a removal's
    80.
    """
    return (
        sum(80 + 6 * len(part.stream) + sum(6 * len(kind) + 3 for kind in part.types) for part in parts)
        > MAX_ENTRY_BYTES
    )


def _stored_bytes(parts: list[EntryPart]) -> int:
    """Encode parts as an entry, and return its size in bytes."""
    entry = with_own_metadata(write_entry(spans_in(parts), (), ""), 0, removals_in(parts))
    return len(entry.data.data) + len(entry.meta.data)


def closing_entry(timestamp: str) -> EncodedEvent:
    """Build the `Closed` entry, which ends an epoch."""
    return EncodedEvent(type=CLOSED, data=Encoded(0, b""), timestamp=timestamp)


def read_entry(event: EncodedEvent) -> Entry | None:
    """Decode an entry of an epoch; return None for `Closed`, and raise `CorruptData` for anything else."""
    if event.type == CLOSED:
        return None
    return Entry(read_spans(event.type, event.data), *read_own_metadata(event.meta))


def read_spans(kind: str, data: Encoded) -> tuple[Span, ...]:
    """Decode the runs of events in an `Ingested` entry; raise `CorruptData` for anything else."""
    if kind != INGESTED:
        raise CorruptData(f"an epoch contains an event of the unknown type {kind!r}")
    body = decode_inline(data)
    try:
        return _parse_fast(body) or _parse_spans(json.loads(body))
    except (ValueError, TypeError, KeyError, IndexError, AttributeError, RecursionError) as error:
        raise CorruptData("an Ingested entry of an epoch cannot be decoded") from error


def merge_spans(spans: Sequence[Span]) -> list[Span]:
    """Join adjacent spans that continue the same stream into one."""
    result: list[Span] = []
    for stream, index, types in spans:
        last = result[-1] if result else None
        if last is not None and last.stream == stream and last.next == index:
            result[-1] = Span(stream, last.index, last.types + types)
        else:
            result.append(Span(stream, index, types))
    return result


def _group_by_stream(spans: list[Span]) -> tuple[list[Span], dict[str, str]]:
    """Return spans grouped by stream, and a field `order` to undo it; unchanged if that saves no bytes.

    A span costs about four bytes and a character less than one, so an order pays off if two spans in five join another.
    """
    joined: dict[str, list[Span]] = {}
    for stream, index, types in spans:
        runs = joined.setdefault(stream, [])
        if runs and runs[-1].next == index:
            runs[-1] = Span(stream, runs[-1].index, runs[-1].types + types)
        else:
            runs.append(Span(stream, index, types))
    if 5 * sum(map(len, joined.values())) >= 3 * len(spans):
        return spans, {}
    ranks: dict[str, int] = {}
    order: list[str] = []
    for stream, _, types in spans:
        order += [chr(FRESH + ranks.get(stream, 0))]
        order += [chr(FRESH + ranks.setdefault(stream, len(ranks) + 1))] * (len(types) - 1)
    return list(chain.from_iterable(joined.values())), {"order": "".join(order)}


def spans_in(parts: Iterable[EntryPart]) -> tuple[Span, ...]:
    """Return the spans among the parts of an entry."""
    return tuple(part for part in parts if isinstance(part, Span))


def removals_in(parts: Iterable[EntryPart]) -> tuple[Removal, ...]:
    """Return the removals among the parts of an entry."""
    return tuple(part for part in parts if isinstance(part, Removal))


def _write_span(span: Span) -> dict[str, Any]:
    """Convert a span into its JSON form."""
    return {"p": span.stream, "i": span.index, "c": list(span.types)}


def _restore_order(spans: Iterable[Span], order: str) -> list[Span]:
    """Bring spans that were grouped by stream back into the order of their events.

    Raises `ValueError` or `IndexError` if the order does not fit these spans.
    """
    streams: dict[str, list[tuple[Span, int]]] = {}
    for span in spans:
        streams.setdefault(span.stream, []).append((span, 0))
    rows = [row[::-1] for row in streams.values()]
    started, last, turns = 0, -1, list[Span]()
    for character in order:
        rank = ord(character) - FRESH
        started += rank == 0
        if not 0 <= rank <= started:
            raise ValueError(f"no order: {order!r}")
        row = (rank or started) - 1
        span, taken = rows[row].pop()
        stream, index, types = span
        if taken + 1 < len(types):
            rows[row].append((span, taken + 1))
        if row == last and turns[-1].next == index + taken:
            before = turns[-1]
            turns[-1] = Span(stream, before.index, (*before.types, types[taken]))
        else:
            turns.append(_tuple(Span, (stream, index + taken, types[taken : taken + 1])))
        last = row
    if any(rows):
        raise ValueError(f"the order does not cover all events: {order!r}")
    return turns


_tuple: Final = tuple.__new__


_SPAN: Final = re.compile(r'"p":"([^"\\\x00-\x1f]*)","i":(0|[1-9][0-9]*),"c":\[([^\]]+)\]')
_BEGIN, _NEXT, _APP = ('{"add":[{', '{"add":[],"app":[{'), "},{", '}],"app":[{'
_END: Final = re.compile(r'\}\](,"app":\[\])?(?:,"order":"([^"\\\x00-\x1f]*)")?\}')


def _write_removal(removal: Removal) -> dict[str, Any]:
    """Convert a removal into its JSON form."""
    return {"p": removal.stream, "i": removal.first, "n": removal.end, "k": removal.kind, "at": removal.next}


def _parse_fast(body: bytes) -> tuple[Span, ...] | None:
    """Parse an entry in the usual form by regular expression; return None for any other form.

    The usual form is as `write_entry` writes it, without escapes in names of streams: most of catching up is this.
    Equal types share one tuple.
    """
    begin, *groups = _SPAN.split(body.decode())
    between, end = groups[3:-1:4], _END.fullmatch(groups[-1]) if groups else None
    if end is None or begin not in _BEGIN or not {*between} <= {_NEXT, _APP}:
        return None
    if between.count(_APP) + (begin == _BEGIN[1]) + (end[1] is not None) > 1:
        return None
    types = {names: _check_types(json.loads(f"[{names}]")) for names in {*groups[2::4]}}
    columns = zip(groups[::4], map(int, groups[1::4]), map(types.__getitem__, groups[2::4]), strict=False)
    spans = tuple(map(_tuple, repeat(Span), columns))
    return spans if end[2] is None else tuple(_restore_order(spans, end[2]))


def _parse_spans(fields: dict[str, Any]) -> tuple[Span, ...]:
    """Convert an entry's JSON into spans; raise `ValueError` if it is malformed.

    The types of values are compared, because JSON's true is an int to Python.
    """
    records = fields.get("add", []) + fields.get("app", [])
    spans = tuple(Span(record["p"], record["i"], _check_types(record["c"])) for record in records)
    # An empty name is one: the reserved tag of events without tags.
    if any(type(stream) is not str or type(index) is not int or index < 0 for stream, index, _ in spans):
        raise ValueError(f"no spans: {records!r}")
    order = fields.get("order")
    return spans if order is None else tuple(_restore_order(spans, order))


def _check_types(names: Any) -> tuple[str, ...]:
    """Return event types as a tuple; raise `ValueError` if there are none or one is not text.

    A span without types would take its stream backwards.
    """
    if type(names) is not list or not names or not _all_of_type(str, names):
        raise ValueError(f"no types: {names!r}")
    return tuple(names)


def read_own_metadata(meta: Encoded) -> tuple[int, tuple[Removal, ...], tuple[int, ...]]:
    """Return marks' progress, removals and new streams in metadata; raise `CorruptData` for bad removals.

    Without recorded progress, no marks are assumed to have been written.
    """
    try:
        fields = json.loads(decode_inline(meta)) if meta.data else None
    except (ValueError, CorruptData):
        fields = None
    if not isinstance(fields, dict):
        return 0, (), ()
    marked, removed, new = fields.get("packed"), fields.get("removed"), fields.get("new")
    numbers = new if isinstance(new, list) and _all_of_type(int, new) and min(new, default=0) >= 0 else ()
    return (
        marked if type(marked) is int and marked > 0 else 0,
        () if removed is None else _parse_removals(removed),
        tuple(numbers),
    )


def _parse_removals(removed: Any) -> tuple[Removal, ...]:
    """Convert JSON into removals; raise `CorruptData` if malformed, because a skipped one would be lost."""
    try:
        removals = tuple(
            Removal(
                removal["p"], removal["n"], cast("RemovalKind", removal["k"]), removal["at"], removal["i"]
            )
            for removal in removed
        )
        numbers = chain.from_iterable(
            (removal.end, removal.next, removal.first, removal.mark) for removal in removals
        )
        sound = _all_of_type(int, numbers) and _all_of_type(str, (removal.stream for removal in removals))
    except (ValueError, TypeError, KeyError) as error:
        raise CorruptData("the removals of an Ingested entry cannot be decoded") from error
    if not sound:
        raise CorruptData("the removals of an Ingested entry have values of the wrong type")
    return removals


def _all_of_type(kind: type, values: Iterable[object]) -> bool:
    """Return whether all values are exactly of this type."""
    return {*map(type, values)} <= {kind}


# Reading them back.


def epoch_tip(table: str, partition: int, epoch: int, *, consistent: bool = True) -> Steps[Tip | None]:
    """Read the Tip of an epoch; return None if the epoch has not begun.

    An inconsistent read may return an earlier Tip.
    """
    return load_tip(table, epoch_stream(partition, epoch), consistent=consistent)


def is_closed(tip: Tip | None) -> bool:
    """Return whether the epoch with this Tip has ended."""
    return tip is not None and tip.span.types[-1:] == (CLOSED,)


def stored_entries(spans: Iterable[StoredSpan]) -> Iterator[tuple[int, str, AttributeValue]]:
    """Iterate over an epoch's undecoded entries, `Closed` included: offset, type and event."""
    for span in spans:
        for offset, (kind, event) in enumerate(span.pairs, span.base):
            yield offset, kind, event
