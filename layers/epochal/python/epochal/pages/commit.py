"""One commit: writes to several streams, with checks of others and writes to other items, all or nothing.

    write     extends the last page of a stream; or begins a new page, once the last one is closed
    fence     checks that an open page has the same revision, or that no page follows a full one or exists at all
    record    is written for an id or a key
    also      are the program's writes to its own tables, and its conditions there

A single write is a conditional write; several are a transaction. The reply is one of these:

    done          the commit is applied
    overflow      the commit is retried with new pages instead of extended ones
    refused       the items that refused it come back
      ├ the key's record exists                        an earlier call applied it: the record contains the result
      ├ a page has our stamp                           it is applied: a response was lost
      ├ a response was lost, and no page can tell      it is undetermined
      ├ the change matters to the caller               the commit ends with the caller's result
      ├ a condition of the program's own fails         it is unmet; or unavailable, if a lost try may still arrive
      └ none of these                                  the commit is retried on the pages that came back

Since all is written or nothing, evidence from one page holds for all (`evidence.OwnWrite`), and for the program's own
writes: they are sent again only if no page has had the stamp. A write that was not itself refused is sent again
unchanged.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Mapping, Sequence
from typing import Generic, TypeVar

from epochal.errors import TooLarge, Unavailable
from epochal.layout.streams import NEVER, Known
from epochal.lazy_dataclasses import dataclass, field, replace
from epochal.model.moments import Ticks
from epochal.model.versions import Conflict, version_of
from epochal.pages.batch import Packed
from epochal.pages.evidence import Applied, NotApplied, OwnWrite, Unknowable, Verdict, verdict_of_all
from epochal.pages.frames import time_of
from epochal.pages.items import Page, page_key, read_page
from epochal.pages.reading import last_pages, load_head
from epochal.pages.writes import (
    Blocked,
    Planned,
    can_be_left,
    head_from,
    is_own,
    next_write,
    place_of,
    unchanged,
)
from epochal.plan.batches import settled
from epochal.plan.conditions import Absent
from epochal.plan.effects import holds
from epochal.plan.limits import ITEM_BYTES
from epochal.plan.ops import (
    Check,
    Done,
    Overflow,
    Put,
    Refusal,
    Steps,
    Together,
    Transact,
    TransactGet,
    TransactionWrite,
    Update,
)
from epochal.plan.values import Item

T = TypeVar("T")

Heads = Mapping[str, Page | None]
"""Last pages of streams by name, as they were read; None for a stream that does not exist."""

Writes = Mapping[str, Planned]
"""Planned write of each stream by name, in the order of the transaction."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit(Generic[T]):
    """What to commit, and functions that decide what becomes of it when it is refused.

    Attributes:
        table: name of the table of streams.
        known: last pages of some of the streams, as far as the caller knows them; the others are read.
        writes: streams that get events or unfolds.
        batch: function that returns the batch of a stream, given the writes that are planned for the streams before it.
        fences: streams that are not written, and must still have the last page that is known.
        matters: function that gets the pages that have come back, and returns a result that ends the commit, or None
            to go on from these pages. It is called before the first write, too.
        records: function that returns the records that are written with the pages.
        before: function that is called after a refusal, and returns the result of an earlier call, if a record has it.
            It gets the refusal of the store's own writes; its `failed` is empty if only the program's conditions are
            known to have failed, and then the function reads the record.
        keyed: whether `before` or the caller tells if the commit was applied earlier; otherwise the pages do.
        lasting: streams that are never pruned, so that any of their pages tells whether it has had a stamp.
        one_stamp: whether all pages get the same stamp, above the last one of each.
        also: writes of the program to its own tables, in the same transaction.
        sent: plans that were sent and may have been applied, the latest last. It is emptied once a plan is refused
            without a lost answer.
    """

    table: str
    known: Mapping[str, Known[Page]]
    writes: Sequence[str]
    batch: Callable[[str, Writes], Packed]
    fences: Sequence[str]
    matters: Callable[[Heads], Steps[T | None]]
    records: Callable[[Writes], Sequence[Put]]
    before: Callable[[Writes, Refusal], Steps[T | None]]
    keyed: bool = False
    lasting: Container[str] = ()
    one_stamp: bool = False
    also: Sequence[TransactionWrite] = ()
    sent: list[Plan] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """The result that a commit was applied; if not `certain`, nobody can tell whether it was."""

    writes: Writes
    certain: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """All writes and checks of one try, in the order of the reply: pages, fences, records, own tables."""

    writes: Writes
    checks: Mapping[str, Check]
    records: Sequence[Put]
    also: Sequence[TransactionWrite]

    @property
    def all(self) -> tuple[TransactionWrite, ...]:
        """All writes, in the order of the reply."""
        pages = (planned.write for planned in self.writes.values())
        return (*pages, *self.checks.values(), *self.records, *self.also)


def commit(wanted: Commit[T]) -> Steps[Made | Conflict | T]:
    """Commit to all streams or to none, and retry on the pages that come back, until the caller ends it.

    Returns:
        `Made`; or a conflict that is `unmet`, if a condition of the program's own failed; or the result that a function
        of `wanted` gave.

    Raises:
        TooLarge: the events fit no item, or no transaction; an item of the caller's own would become too large.
        InvalidInput: a stream is full.
        Unavailable: a response was lost, and a condition of the caller's own fails now.
    """
    # 1. Read the last pages that the caller does not know.
    heads, leaving = dict(wanted.known), set[str]()
    unread = [stream for stream in (*wanted.writes, *wanted.fences) if stream not in heads]
    moved: Heads = yield from last_pages(wanted.table, unread)
    while True:
        # 2. Let the caller decide whether these pages end the commit.
        result = yield from wanted.matters(moved)
        if result is not None:
            return result
        # 3. Plan the writes; a page that turns out to be another begins the next round.
        heads |= moved
        leaving.difference_update(moved)
        plan = yield from _planned(wanted, heads, leaving)
        if not isinstance(plan, Plan):
            moved = plan
            continue
        # 4. Send them, as one write or one transaction.
        wanted.sent.append(plan)
        reply: Done | Overflow | Refusal = yield _sent(plan)
        match reply:
            case Done():
                return Made(writes=plan.writes)
            case Overflow():
                leaving |= _too_small(plan, reply)
                moved = {}
            case Refusal():
                # 5. Find out whether a try whose answer was lost was applied, or an earlier call.
                verdict = yield from _was_applied(wanted, plan, reply)
                if not isinstance(verdict, NotApplied):
                    return Made(writes=plan.writes, certain=isinstance(verdict, Applied))
                own, unmet = _apart(plan, reply)
                result = yield from wanted.before(plan.writes, own)
                if result is not None:
                    return result
                # 6. Retry on the pages that came back, unless a condition of the program's own failed.
                moved = yield from _came_back(wanted.table, plan, reply)
                if unmet:
                    check_over(reply, moved)
                    return (yield from wanted.matters(moved)) or Conflict(unmet=unmet)


def fence(table: str, stream: str, known: Known[Page]) -> Steps[Check | Blocked]:
    """Plan a check that nobody has written to a stream since its last page was known.

    Returns:
        The check; or the last page, if the stream is deleted, or what is known of it proves nothing.
    """
    if isinstance(known, Page) and known.deleted:
        return Blocked(page=known)
    state = None if known is None else place_of(known)
    if known is not None and state is not None and not state.full:
        return Check(
            table=table, key=page_key(stream, state.index), condition=unchanged(state, known.version)
        )
    if known is not None and not is_own(table, stream, known):
        # A token of a full page may be forged: no page begins at its version, but maybe none ends there, either.
        return Blocked(page=(yield from load_head(table, stream)))
    return Check(table=table, key=page_key(stream, version_of(known)), condition=Absent("i"))


def unmoved(table: str, reads: Mapping[str, Known[Page]]) -> Steps[Heads]:
    """Check, without a write, that streams had the last pages that are known, all at one moment.

    Returns:
        The last pages of the streams that had not; empty, if all had.
    """
    checks, moved = dict[str, Check](), dict[str, Page | None]()
    for stream, known in reads.items():
        check = yield from fence(table, stream, known)
        if isinstance(check, Blocked) and is_as_known(known, check.page):
            check = yield from fence(table, stream, check.page)
        if isinstance(check, Check):
            checks[stream] = check
        else:
            moved[stream] = check.page
    if moved or not checks:
        return moved
    reply: Together = yield TransactGet(keys=tuple((table, check.key) for check in checks.values()))
    for (stream, check), item in zip(checks.items(), reply.items, strict=True):
        if not holds(check.condition, item):
            moved[stream] = yield from head_from(table, stream, page_of(item, table))
    return moved


def is_as_known(known: Known[Page], head: Page | None) -> bool:
    """Whether the last page of a stream is still the one that is known."""
    if known is None or head is None:
        return known is head
    return not head.deleted and (head.version, head.etag) == (known.version, known.etag)


def page_of(item: Item | None, table: str) -> Page | None:
    """Decode the page that a refusal brought; None if it brought none."""
    return None if item is None else read_page(item, table)


def _sent(plan: Plan) -> TransactionWrite | Transact:
    return plan.all[0] if len(plan.all) == 1 else Transact(writes=plan.all)


def _planned(
    wanted: Commit[T], heads: dict[str, Known[Page]], leaving: Container[str]
) -> Steps[Plan | Heads]:
    """Plan the writes of one try on the last pages that are known.

    A page may have to be closed first, by a write of its own; then `heads` gets the closed page.

    Returns:
        The plan; or pages that turned out to be others than those known.
    """
    checks, moved = dict[str, Check](), dict[str, Page | None]()
    for stream in wanted.fences:
        check = yield from fence(wanted.table, stream, heads[stream])
        if isinstance(check, Check):
            checks[stream] = check
        else:
            moved[stream] = check.page
    if moved:
        return moved
    above = _latest(wanted, heads) if wanted.one_stamp else NEVER
    while True:
        writes = dict[str, Planned]()
        for stream in wanted.writes:
            batch = wanted.batch(stream, writes)
            planned = yield from next_write(
                wanted.table,
                replace(batch, above=above) if wanted.one_stamp else batch,
                heads[stream],
                extending=stream not in leaving,
            )
            if isinstance(planned, Blocked):
                return {stream: (yield from head_from(wanted.table, stream, planned.page))}
            heads[stream], writes[stream] = planned.after, planned
        times = {time_of(write.stamp) for write in writes.values()}
        if len(times) == 1 or not wanted.one_stamp:
            return Plan(writes=writes, checks=checks, records=wanted.records(writes), also=wanted.also)
        # A page had to be closed first, so the write after it has a later stamp. Give all writes that one.
        above = Ticks(max(times) - 1)


def _latest(wanted: Commit[T], heads: Mapping[str, Known[Page]]) -> Ticks:
    written_heads = (heads[stream] for stream in wanted.writes)
    places = (None if head is None else place_of(head) for head in written_heads)
    return max((place.time for place in places if place is not None), default=NEVER)


def _too_small(plan: Plan, reply: Overflow) -> set[str]:
    """Return the streams that must begin a new page, since extending the last one exceeds its size limit.

    They are all streams whose last page was extended.

    Raises:
        TooLarge: no page can be left for a new one, or an item of the program's own would be too large.
    """
    for place, over in enumerate(reply.over[len(plan.all) - len(plan.also) :]):
        if over:
            advice = "it is added to what is there"
            raise TooLarge(f"also[{place}]", ITEM_BYTES + 1, ITEM_BYTES, advice=advice)
    smaller = {
        stream
        for stream, each in plan.writes.items()
        if isinstance(each.write, Update) and can_be_left(each.after)
    }
    if not smaller:
        field = "events" if any(write.count for write in plan.writes.values()) else "unfolds"
        raise TooLarge(field, max(write.token.size for write in plan.writes.values()), ITEM_BYTES)
    return smaller


def check_over(refusal: Refusal, moved: Collection[str]) -> None:
    """Raise `Unavailable` if a try whose answer was lost may still arrive.

    As long as no page has moved, it is applied if it arrives while the conditions of the program's own hold.
    """
    if refusal.ambiguous and not moved:
        raise Unavailable("a response was lost, and by now a condition fails", maybe_applied=True)


def _apart(plan: Plan, refusal: Refusal) -> tuple[Refusal, dict[int, Item | None]]:
    """Split a refusal: that of the store's own writes, and items that failed the program's conditions.

    These items are returned by their place among the program's writes.
    """
    first = len(plan.all) - len(plan.also)
    returned = zip(refusal.items[first:], refusal.failed[first:], strict=True)
    stood = {place: item for place, (item, failed) in enumerate(returned) if failed}
    failed = () if stood else refusal.failed[:first]
    return replace(refusal, items=refusal.items[:first], failed=failed), stood


def _was_applied(wanted: Commit[T], plan: Plan, refusal: Refusal) -> Steps[Verdict]:
    """Decide from the pages of a refused commit whether an earlier try of it was applied.

    Under a key it is the key's record that tells. A refusal may leave out pages that another transaction was at, and
    what a fence met tells nothing. So where the pages that came back do not tell, the others are read: one of them is
    enough, if it is of a stream that is never pruned.
    """
    if not refusal.ambiguous:
        # No answer was lost, so no try was applied. A write of another process at the same time may look the same.
        wanted.sent.clear()
    if wanted.keyed:
        return NotApplied()
    lost = refusal.ambiguous
    answers = list(zip(plan.writes.items(), refusal.items, refusal.failed, strict=False))
    verdicts = [
        _judge(wanted.table, write, item, lost=lost) for (_, write), item, failed in answers if failed
    ]
    unread = [(stream, write) for (stream, write), _, failed in answers if not failed]
    if lost and unread and isinstance(verdict_of_all(verdicts), Unknowable):
        lasting = [(stream, write) for stream, write in unread if stream in wanted.lasting]
        unread = lasting[:1] or unread
        reply: Together = yield TransactGet(keys=tuple((wanted.table, write.key) for _, write in unread))
        for (_, write), item in zip(unread, reply.items, strict=True):
            verdicts.append(_judge(wanted.table, write, item, lost=lost))
    verdict = verdict_of_all(verdicts) if verdicts or lost else NotApplied()
    if isinstance(verdict, Applied) and len(plan.all) > 1:
        # DynamoDB may still be applying the transaction: wait until the caller would see it in every stream.
        yield from settled((wanted.table, write.key) for write in plan.writes.values())
    return verdict


def _judge(table: str, write: Planned, item: Item | None, *, lost: bool) -> Verdict:
    """Decide from the page that a write was for whether the write was applied."""
    return OwnWrite.of(write, lost=lost).judge(page_of(item, table))


def _came_back(table: str, plan: Plan, refusal: Refusal) -> Steps[Heads]:
    """Read the last pages of the streams whose write or fence was refused."""
    heads = dict[str, Page | None]()
    streams = (*plan.writes, *plan.checks)
    for stream, item, failed in zip(streams, refusal.items, refusal.failed, strict=False):
        if failed:
            heads[stream] = yield from head_from(table, stream, page_of(item, table))
    return heads
