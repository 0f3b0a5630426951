"""Was it applied? What the pages of a stream show of an append, case by case, and what its caller is told then.

Each case is a stream as it is found, and what is looked for there: our own write, whose answer may have been lost; what
any process has appended under a key; or events by their ids. No case depends on how the library looks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pytest

from epochal.errors import CorruptData, InvalidInput
from epochal.layout.decision_keys import DecisionKey
from epochal.layout.key_records import KeyRecord
from epochal.layout.queries import IdTaken
from epochal.layout.streams import Batch, decision_id
from epochal.model.expected_version import ANY, AtVersion, ExpectedVersion
from epochal.model.moments import Ticks
from epochal.model.outcomes import Appended, Conflict, Undetermined
from epochal.pages.batch import packed
from epochal.pages.frames import stamp_of
from epochal.pages.items import STREAMS, Page, read_page, write_page
from epochal.pages.layout import Pages
from epochal.plan.ops import Op, Put, Refusal, Steps, Transact, Update
from epochal.testing.memory import MemoryTables
from tests.simulation.page_actors import STREAM, TABLE, batch_of

PAGES = Pages()
KEY_MOMENT = 3
"""Of a key that tells one."""


def own(events: int = 1, unfolds: str | None = None) -> Batch:
    """What we append: at clock 5, so after an event of clock 1 its stamp has time 5."""
    return batch_of("ours", STREAM, events=events, unfolds=unfolds)


def keyed(events: int = 1, *, above: int = 0, other_contents: bool = False) -> Batch:
    """The same, under a key."""
    batch = batch_of("ours", STREAM, events=events, key="k", above=above)
    if not other_contents:
        return batch
    return replace(batch, append_id=batch.append_id[:8] + b"\0" * 8)


def frames(batch: Batch, time: int) -> Any:
    """What a page holds of a batch that was appended then."""
    pack = packed(batch)
    return pack.frames(stamp_of(Ticks(time), pack.rest))


def other(time: int, events: int = 1) -> Any:
    """What a page holds of another process's append."""
    return frames(batch_of(f"other at {time}", STREAM, events=events), time)


def page(index: int, *batches: Any, pruned: int = 0, full: bool = False, written: Any = None) -> Page:
    """A page of these appends, behind pruned events; `written` is the stamp of a later write without events."""
    held = tuple(frame for each in batches for frame in each)
    version = index + pruned + sum(frame.count for frame in held)
    low_water = index + pruned if pruned else 0
    return Page(
        table=TABLE,
        stream=STREAM,
        index=index,
        version=version,
        frames=held,
        full=full,
        low_water=low_water,
        stamp=written,
    )


def marked(batch: Batch, time: int) -> bytes:
    """The stamp of a batch of unfolds alone, or of what closed a page for it."""
    return stamp_of(Ticks(time), packed(batch).mark)


OTHERS_MARK = stamp_of(Ticks(9), b"\xee" * 8)
BEFORE = page(0, other(1))
"""The stream before our append: one event, on a page that takes more."""

OUR_STAMP = marked(own(0, "u"), 5)


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A stream, and what is told of an append to it.

    Attributes:
        claim: in words, which name the test.
        append: runs the append or the search.
        pages: the stream as it is found.
        lost: an answer to the append was lost, or none; it is refused by the page at index `met`.
        told: the first index and, where the append was made, the version; or the error.
    """

    claim: str
    append: Callable[[], Steps[Any]]
    pages: Sequence[Page]
    told: tuple[type[Any], *tuple[int, ...]]
    lost: bool = False
    met: int | None = 0
    reads: int = 0


def on_known(batch: Batch) -> Callable[[], Steps[Any]]:
    """Append on exactly the stream as it was before."""
    return lambda: PAGES.append_on(TABLE, batch, BEFORE)


def joined(*batches: Batch) -> Callable[[], Steps[Any]]:
    """Append batches as one write; what is told of the first of them."""

    def steps() -> Steps[Any]:
        return (yield from PAGES.append_together_on(TABLE, batches, BEFORE))[0]

    return steps


def as_expected(batch: Batch, expected: ExpectedVersion = ANY) -> Callable[[], Steps[Any]]:
    return lambda: PAGES.append(TABLE, batch, expected)


def decision(since: int, above: int = 0) -> Callable[[], Steps[Any]]:
    """Look for a decision under the key, from an index on."""
    key = DecisionKey(
        layout=PAGES,
        table=TABLE,
        stream=STREAM,
        record=KeyRecord.of(STREAM, "k", 0),
        append_id=decision_id(keyed().append_id, 0),
        above=Ticks(above),
    )

    def steps() -> Steps[Any]:
        head = yield from PAGES.load(TABLE, STREAM)
        return (yield from PAGES.decided(key, head, since))

    return steps


def decided(events: int, time: int) -> Any:
    """What a page holds of a decision under the key."""
    batch = keyed(events)
    return frames(replace(batch, append_id=decision_id(batch.append_id, events)), time)


def with_ids(*ids: int) -> Batch:
    return batch_of("with ids", STREAM, ids=ids)


def other_with_ids(time: int, *ids: int) -> Any:
    return frames(batch_of(f"another with ids at {time}", STREAM, ids=ids), time)


FIRST, SECOND = (batch_of(name, STREAM) for name in ("first", "second"))
KEYED_SECOND = replace(batch_of("second", STREAM), append_id=keyed().append_id, keyed=True)


def both(first: Batch = FIRST, second: Batch = SECOND) -> Any:
    """Frames of two that went out together: one tick apart."""
    return (*frames(first, 5), *frames(second, 6))


OUR_OWN = [
    Case(
        claim="our stamp is on the page",
        append=on_known(own()),
        pages=[page(0, other(1), frames(own(), 5))],
        lost=True,
        told=(Appended, 1, 2),
    ),
    Case(
        claim="our stamp is on the page, behind which others have appended",
        append=on_known(own()),
        pages=[page(0, other(1), frames(own(), 5), other(7))],
        lost=True,
        told=(Appended, 1, 2),
    ),
    Case(
        claim="our stamp is on the page, and the next one has been begun",
        append=on_known(own()),
        pages=[page(0, other(1), frames(own(), 5), full=True), page(2, other(7))],
        lost=True,
        told=(Appended, 1, 2),
        reads=1,
    ),
    Case(
        claim="another's event is at our index",
        append=on_known(own()),
        pages=[page(0, other(1), other(7))],
        lost=True,
        told=(Conflict,),
    ),
    Case(
        claim="the page ends at our index, with a later write that has no events",
        append=on_known(own()),
        pages=[page(0, other(1), written=OTHERS_MARK)],
        lost=True,
        told=(Conflict,),
    ),
    Case(
        claim="our index is pruned",
        append=on_known(own()),
        pages=[page(0, other(9), pruned=2)],
        lost=True,
        told=(Undetermined, 1),
    ),
    Case(
        claim="our index is pruned, and the stream goes on",
        append=on_known(own()),
        pages=[page(0, pruned=2, full=True, written=OTHERS_MARK), page(2, other(11))],
        lost=True,
        told=(Undetermined, 1),
        reads=1,
    ),
    Case(
        claim="our index is pruned, but the page is older than our write",
        append=on_known(own()),
        pages=[page(0, other(3), pruned=2)],
        lost=True,
        told=(Conflict,),
    ),
    Case(
        claim="what was before our index is pruned",
        append=on_known(own()),
        pages=[page(0, frames(own(), 5), pruned=1)],
        lost=True,
        told=(Appended, 1, 2),
    ),
    Case(
        claim="no page is there",
        append=on_known(own()),
        pages=[],
        met=None,
        lost=True,
        told=(Conflict,),
        reads=1,
    ),
    Case(
        claim="our index is pruned, but no answer was lost",
        append=on_known(own()),
        pages=[page(0, other(9), pruned=2)],
        told=(Conflict,),
    ),
    Case(
        claim="several of our events are there",
        append=on_known(own(3)),
        pages=[page(0, other(1), frames(own(3), 5), other(7))],
        lost=True,
        told=(Appended, 1, 4),
    ),
]

UNFOLDS_ALONE = [
    Case(
        claim="the latest write of the page is ours",
        append=on_known(own(0, "u")),
        pages=[page(0, other(1), written=OUR_STAMP)],
        lost=True,
        told=(Appended, 1, 1),
    ),
    Case(
        claim="another has written later",
        append=on_known(own(0, "u")),
        pages=[page(0, other(1), written=OTHERS_MARK)],
        lost=True,
        told=(Undetermined, 1),
    ),
    Case(
        claim="another has written, before our write",
        append=on_known(own(0, "u")),
        pages=[page(0, other(1), written=stamp_of(Ticks(3), b"\xee" * 8))],
        lost=True,
        told=(Conflict,),
    ),
    Case(
        claim="another has written, but no answer was lost",
        append=on_known(own(0, "u")),
        pages=[page(0, other(1), written=OTHERS_MARK)],
        told=(Conflict,),
    ),
    Case(
        claim="another has written later, and unfolds may be written twice",
        append=as_expected(own(0, "u")),
        pages=[page(0, other(1), written=OTHERS_MARK)],
        lost=True,
        told=(Appended, 1, 1),
        reads=2,
    ),
]

JOINED = [
    Case(
        claim="all of the joined appends are there",
        append=joined(FIRST, SECOND),
        pages=[page(0, other(1), both())],
        lost=True,
        told=(Appended, 1, 2),
    ),
    Case(
        claim="one of the joined appends is not at its index",
        append=joined(FIRST, SECOND),
        pages=[page(0, other(1), frames(FIRST, 5), other(7))],
        lost=True,
        told=(Conflict,),
    ),
    Case(
        claim="the first of the joined appends is pruned, the second is there",
        append=joined(FIRST, SECOND),
        pages=[page(0, frames(SECOND, 6), pruned=2)],
        lost=True,
        told=(Appended, 1, 2),
    ),
    Case(
        claim="the first of the joined appends is pruned, and only one with a key is there",
        append=joined(FIRST, KEYED_SECOND),
        pages=[page(0, frames(KEYED_SECOND, 6), pruned=2)],
        lost=True,
        told=(Undetermined, 1),
    ),
    Case(
        claim="a joined append with a key is there with the other",
        append=joined(FIRST, KEYED_SECOND),
        pages=[page(0, other(1), both(second=KEYED_SECOND))],
        lost=True,
        told=(Appended, 1, 2),
    ),
    Case(
        claim="all of the joined appends are pruned",
        append=joined(FIRST, SECOND),
        pages=[page(0, other(9), pruned=3)],
        lost=True,
        told=(Undetermined, 1),
    ),
    Case(
        claim="all of the joined appends are pruned, but the page is older than they are",
        append=joined(FIRST, SECOND),
        pages=[page(0, other(3), pruned=3)],
        lost=True,
        told=(Conflict,),
    ),
    Case(
        claim="joined appends are pruned, but no answer was lost",
        append=joined(FIRST, SECOND),
        pages=[page(0, other(9), pruned=3)],
        told=(Conflict,),
    ),
]

UNDER_A_KEY = [
    Case(
        claim="the page has the key where we tried",
        append=on_known(keyed()),
        pages=[page(0, other(1), frames(keyed(), 5))],
        told=(Appended, 1, 2),
    ),
    Case(
        claim="the page has the key later, by another process",
        append=on_known(keyed()),
        pages=[page(0, other(1), other(4), frames(keyed(), 5))],
        told=(Appended, 2, 3),
    ),
    Case(
        claim="a page between has the key",
        append=on_known(keyed()),
        pages=[
            page(0, other(1), other(2), full=True),
            page(2, frames(keyed(), 5), full=True),
            page(3, other(7)),
        ],
        told=(Appended, 2, 3),
        reads=2,
    ),
    Case(
        claim="the key is below the index that is searched from",
        append=decision(2),
        pages=[page(0, other(1), decided(1, 5), other(7))],
        told=(type(None),),
        reads=1,
    ),
    Case(
        claim="the key was used for other contents",
        append=on_known(keyed()),
        pages=[page(0, other(1), frames(keyed(other_contents=True), 5))],
        told=(InvalidInput,),
    ),
    Case(
        claim="no page from our index on has the key",
        append=on_known(keyed()),
        pages=[page(0, other(1), other(2), full=True), page(2, other(7))],
        told=(Conflict,),
        reads=1,
    ),
    Case(
        claim="the index that the search begins at is pruned",
        append=on_known(keyed()),
        pages=[page(0, other(7), pruned=2)],
        told=(Undetermined, 1),
    ),
    Case(
        claim="a page on the way is pruned",
        append=on_known(keyed()),
        pages=[
            page(0, pruned=2, full=True, written=OTHERS_MARK),
            page(2, other(11), full=True),
            page(3, other(12)),
        ],
        told=(Undetermined, 1),
        reads=2,
    ),
    Case(
        claim="the last page is pruned first, as the stream is being deleted",
        append=decision(0),
        pages=[
            page(0, other(1), decided(1, 5), full=True),
            page(2, pruned=1, written=stamp_of(Ticks(9), b"r" * 8)),
        ],
        told=(Undetermined, 2),
        reads=1,
    ),
    Case(
        claim="a page is as old as the moment of the key",
        append=decision(0, above=KEY_MOMENT),
        pages=[page(0, decided(1, 2), full=True), page(1, other(3), full=True), page(2, other(7))],
        told=(type(None),),
        reads=2,
    ),
    Case(
        claim="a decision is there with as many events as it came to",
        append=decision(0),
        pages=[page(0, other(1), decided(3, 5), other(7))],
        told=(Appended, 1, 4),
        reads=1,
    ),
    Case(
        claim="a page is missing on the way",
        append=decision(0),
        pages=[page(2, other(7), full=True), page(4, other(8))],
        told=(CorruptData,),
        reads=2,
    ),
]

BY_IDS = [
    Case(
        claim="all ids are at the expected place",
        append=on_known(with_ids(1, 2)),
        pages=[page(0, other(1), other_with_ids(5, 1, 2))],
        told=(Appended, 1, 3),
    ),
    Case(
        claim="all ids are at the expected place, on pages that have been left",
        append=on_known(with_ids(1, 2)),
        pages=[
            page(0, other(1), other_with_ids(5, 1), full=True),
            page(2, other_with_ids(6, 2), full=True),
            page(3, other(7)),
        ],
        told=(Appended, 1, 3),
        reads=3,
    ),
    Case(
        claim="other ids are at the expected place",
        append=on_known(with_ids(1, 2)),
        pages=[page(0, other(1), other_with_ids(5, 2, 1))],
        told=(Conflict,),
    ),
    Case(
        claim="the stream ends before the last of the ids would be",
        append=on_known(with_ids(1, 2)),
        pages=[page(0, other(1), other_with_ids(5, 1))],
        told=(Conflict,),
    ),
    Case(
        claim="the first of the ids is pruned, and the last is there",
        append=on_known(with_ids(1, 2)),
        pages=[page(0, other_with_ids(6, 2), pruned=2)],
        told=(Undetermined, 1),
    ),
    Case(
        claim="the first of the ids is pruned, and the last is another",
        append=on_known(with_ids(1, 2)),
        pages=[page(0, other_with_ids(6, 3), pruned=2)],
        told=(Conflict,),
    ),
    Case(
        claim="a stream that is deleted has none of the ids",
        append=on_known(with_ids(1)),
        met=2,
        pages=[
            page(0, other(1), other_with_ids(5, 1), full=True),
            replace(page(2, written=OTHERS_MARK), full=True, deleted=True),
        ],
        told=(Conflict,),
    ),
    Case(
        claim="all ids are in a row, anywhere",
        append=as_expected(with_ids(1, 2)),
        pages=[page(0, other_with_ids(2, 1), full=True), page(1, other_with_ids(3, 2), other(5))],
        told=(Appended, 0, 2),
        reads=1,
    ),
    Case(
        claim="all ids are there, not in a row",
        append=as_expected(with_ids(1, 2)),
        pages=[page(0, other_with_ids(2, 2, 1))],
        told=(IdTaken,),
        reads=1,
    ),
    Case(
        claim="one of the ids is there",
        append=as_expected(with_ids(1, 2)),
        pages=[page(0, other_with_ids(2, 2))],
        told=(IdTaken,),
        reads=1,
    ),
    Case(
        claim="the ids are at the expected version",
        append=as_expected(with_ids(1), AtVersion(version=1)),
        pages=[page(0, other(1), other_with_ids(5, 1))],
        told=(Appended, 1, 2),
        reads=1,
    ),
]

CASES = [*OUR_OWN, *UNFOLDS_ALONE, *JOINED, *UNDER_A_KEY, *BY_IDS]


def perform(case: Case) -> tuple[Any, int]:
    """What is told, and how many requests it took besides the write that was refused."""
    tables = MemoryTables({TABLE: STREAMS})
    for each in case.pages:
        tables.execute(Put(table=TABLE, item=write_page(each)))
    items = {read_page(item).index: item for item in tables.items(TABLE)}
    steps, reads, reply, refused = case.append(), 0, None, False
    while True:
        try:
            op: Op = steps.send(reply)
        except StopIteration as end:
            return end.value, reads
        if isinstance(op, Put | Update | Transact) and not refused:
            refused = True
            met = None if case.met is None else items[case.met]
            reply = Refusal(items=(met,), ambiguous=case.lost)
        else:
            reads += 1
            reply = tables.execute(op)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.claim)
def test_what_the_pages_show_decides_what_is_told(case: Case) -> None:
    kind, *numbers = case.told
    if issubclass(kind, Exception):
        with pytest.raises(kind):
            perform(case)
        return

    outcome, reads = perform(case)

    assert type(outcome) is kind
    told = [outcome.first] if kind in (Appended, Undetermined) else []
    told += [outcome.version] if kind is Appended else []
    assert (told, reads) == (numbers, case.reads)
