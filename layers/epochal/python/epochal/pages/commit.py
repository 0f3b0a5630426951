"""One commit: writes to several streams, with checks of others and writes to other items, all or nothing.

    write     extends the last page of a stream; or begins a new page, once the last one is closed
    fence     checks that an open page has the same revision, or that no page follows a full one or exists at all
    record    is written for an id or a key
    also      are the program's writes to its own tables, and its conditions there

A `CommitPart` has the contents: of named streams, of tags, of both, or unfolds alone under a key. A single write is a
conditional write; several are a transaction. The reply is one of these:

    done          the commit is applied
    overflow      the commit is retried with new pages instead of extended ones
    refused       the items that refused it come back
      ├ the key's record exists                        an earlier call applied it: the record contains the outcome
      ├ a page has our stamp                           it is applied: a response was lost
      ├ a response was lost, and no page can tell      it is undetermined
      ├ a stream is not as its part expects            the commit ends with the part's outcome
      ├ a condition of the program's own fails         it is unmet; or unavailable, if a lost try may still arrive
      └ none of these                                  the commit is retried on the pages that came back, or after
                                                       a pause on pages that are read again (`giving_way`)

Since all is written or nothing, evidence from one page holds for all (`evidence.OwnWrite`), and for the program's own
writes: they are sent again only if no page has had the stamp. A write that was not itself refused is sent again
unchanged.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Mapping, Sequence
from typing import Generic, Protocol, TypeVar

from epochal.errors import TooLarge, Unavailable
from epochal.layout.giving_way import pause_after
from epochal.layout.streams import NEVER, Known
from epochal.lazy_dataclasses import dataclass, replace
from epochal.model.moments import Ticks
from epochal.model.outcomes import Appended, Conflict, Outcome, Undetermined
from epochal.model.tokens import version_of
from epochal.pages.attempts import Blocked, head_from, prepare_write
from epochal.pages.batch import Packed
from epochal.pages.evidence import Applied, NotApplied, OwnWrite, Unknowable, Verdict, verdict_of_all
from epochal.pages.frames import time_of
from epochal.pages.items import Page, page_key, read_page
from epochal.pages.reading import last_pages, load_head
from epochal.pages.writes import Planned, is_own, known_state, may_be_followed, unchanged
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

R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)

Heads = Mapping[str, Page | None]
"""Last pages of streams by name, as they were read; None for a stream that does not exist."""

Writes = Mapping[str, Planned]
"""Planned write of each stream by name, in the order of the transaction."""


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


Tries = Sequence[Plan]
"""Plans that were sent and may have been applied, since an answer was lost; the latest last."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """What to commit.

    Attributes:
        table: name of the table of streams.
        known_heads: last pages that the caller has already, by stream; those of the other streams are read.
        writes: streams that get events or unfolds.
        fences: streams that are not written, but whose last page must still be the known one.
        keyed: whether a key tells if the commit was applied earlier; otherwise the pages do.
        lasting: streams that are never pruned: any page of theirs shows whether a write was applied.
        one_stamp: whether all pages get the same stamp, above the last one of each.
        also: writes of the program to its own tables, in the same transaction.
    """

    table: str
    known_heads: Mapping[str, Known[Page]]
    writes: Sequence[str]
    fences: Sequence[str] = ()
    keyed: bool = False
    lasting: Container[str] = ()
    one_stamp: bool = False
    also: Sequence[TransactionWrite] = ()


class CommitPart(Protocol[R_co]):
    """The contents of a commit, and the conditions that end it: with an `Outcome`, or a refusal of type `R_co`."""

    def batch(self, stream: str, writes: Writes) -> Packed:
        """Return the batch of a stream, given the writes that are planned for the streams before it."""

    def records(self, writes: Writes) -> Sequence[Put]:
        """Make the writes of the records that go with the pages."""

    def ending(self, moved: Heads, tries: Tries) -> Steps[Outcome | R_co | None]:
        """Return the outcome that ends the commit, given the changed pages; None to retry on them.

        It is called before the first write, too.
        """

    def load_earlier_outcome(
        self, writes: Writes, refusal: Refusal, tries: Tries
    ) -> Steps[Outcome | R_co | None]:
        """Return the outcome of an earlier call, if a record has it; None if not.

        Args:
            writes: planned writes that were refused.
            refusal: refusal of the store's own writes. Its `failed` is empty if only the program's conditions are known
                to have failed; then the record is read.
        """

    def appended(self, writes: Writes) -> Appended:
        """Make the outcome of a commit that was applied."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended(Generic[R_co]):
    """The outcome of a commit, with the tries of it that may have been applied.

    Attributes:
        outcome: outcome of the commit, or the part's own refusal.
        tries: tries that may have been applied.
    """

    outcome: Outcome | R_co
    tries: Tries


def run_commit(commit: Commit, part: CommitPart[R]) -> Steps[Ended[R]]:
    """Write to all streams or to none, retrying on changed pages; return the outcome and the tries.

    If a condition of the program's own fails, the outcome is a conflict that is `unmet`.

    Raises:
        TooLarge: the events fit no item, or no transaction; an item of the caller's own would become too large.
        InvalidInput: a stream is full.
        Unavailable: a response was lost, and a condition of the caller's own fails now.
    """
    # 1. Read the last pages that the caller does not know.
    heads, overfull, tries = dict(commit.known_heads), set[str](), tuple[Plan, ...]()
    unread = [stream for stream in (*commit.writes, *commit.fences) if stream not in heads]
    moved: Heads = yield from last_pages(commit.table, unread)
    refusals, pause = 0, None
    while True:
        # 2. Let the part decide whether these pages end the commit.
        outcome = yield from part.ending(moved, tries)
        if outcome is not None:
            return Ended(outcome=outcome, tries=tries)
        # 3. Let other writers finish, and read again what they have written to.
        if pause is not None:
            yield pause
            moved, pause = (yield from last_pages(commit.table, moved)), None
            continue
        # 4. Plan the writes; a page that turns out to be another begins the next round.
        heads |= moved
        overfull.difference_update(moved)
        plan = yield from _plan(commit, part, heads, overfull)
        if not isinstance(plan, Plan):
            moved = plan
            continue
        # 5. Send them, as one write or one transaction.
        tries = (*tries, plan)
        reply: Done | Overflow | Refusal = yield _operation(plan)
        match reply:
            case Done():
                return Ended(outcome=part.appended(plan.writes), tries=tries)
            case Overflow():
                overfull |= _streams_needing_new_page(plan, reply)
                moved = {}
            case Refusal():
                # 6. Find out whether a try whose answer was lost was applied, or an earlier call.
                # If no answer was lost, no try was applied. Another process may have written the same meanwhile.
                tries = tries if reply.ambiguous else ()
                verdict = yield from _was_applied(commit, plan, reply)
                own, unmet = _split_refusal(plan, reply)
                outcome = yield from _known_outcome(part, plan, verdict, own, tries)
                if outcome is not None:
                    return Ended(outcome=outcome, tries=tries)
                # 7. Retry on the pages that came back, unless a condition of the program's own failed.
                moved = yield from _refusing_heads(commit.table, plan, reply)
                if unmet:
                    check_over(reply, moved)
                    outcome = yield from part.ending(moved, tries)
                    return Ended(outcome=Conflict(unmet=unmet) if outcome is None else outcome, tries=tries)
                refusals += 1
                pause = pause_after(refusals)


def fence(table: str, stream: str, known_head: Known[Page]) -> Steps[Check | Blocked]:
    """Plan a check that a stream still has its known last page; return it, or the page that blocks it.

    Returns:
        The check; or the last page, if the stream is deleted, or its token may be forged.
    """
    if isinstance(known_head, Page) and known_head.deleted:
        return Blocked(page=known_head)
    state = None if known_head is None else known_state(known_head)
    if known_head is not None and state is not None and not state.full:
        return Check(
            table=table, key=page_key(stream, state.index), condition=unchanged(state, known_head.version)
        )
    if known_head is not None and not is_own(table, stream, known_head):
        # A token of a full page may be forged: no page begins at its version, but maybe none ends there, either.
        return Blocked(page=(yield from load_head(table, stream)))
    return Check(table=table, key=page_key(stream, version_of(known_head)), condition=Absent("i"))


def moved_heads(table: str, read_heads: Mapping[str, Known[Page]]) -> Steps[Heads]:
    """Compare streams with their known last pages in one read; return the last pages that have changed.

    Returns:
        The last pages of the streams whose last page is no longer the known one; empty if there are none.
    """
    checks, moved = dict[str, Check](), dict[str, Page | None]()
    for stream, known_head in read_heads.items():
        check = yield from fence(table, stream, known_head)
        if isinstance(check, Blocked) and is_unchanged(known_head, check.page):
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


def is_unchanged(known_head: Known[Page], head: Page | None) -> bool:
    """Whether the last page of a stream is still the known one."""
    if known_head is None or head is None:
        return known_head is head
    return not head.deleted and (head.version, head.etag) == (known_head.version, known_head.etag)


def page_of(item: Item | None, table: str) -> Page | None:
    """Decode the page that a refusal returned; None if it returned none."""
    return None if item is None else read_page(item, table)


def _known_outcome(
    part: CommitPart[R], plan: Plan, verdict: Verdict, refusal: Refusal, tries: Tries
) -> Steps[Outcome | R | None]:
    """Return a refused commit's outcome, as pages or a record show it; None if it was not applied."""
    match verdict:
        case Applied():
            return part.appended(plan.writes)
        case Unknowable():
            streams = {stream: Undetermined(first=write.first) for stream, write in plan.writes.items()}
            return Undetermined(streams=streams)
        case NotApplied():
            return (yield from part.load_earlier_outcome(plan.writes, refusal, tries))


def _operation(plan: Plan) -> TransactionWrite | Transact:
    return plan.all[0] if len(plan.all) == 1 else Transact(writes=plan.all)


def _plan(
    commit: Commit, part: CommitPart[R], heads: dict[str, Known[Page]], overfull: Container[str]
) -> Steps[Plan | Heads]:
    """Plan the writes of one try, closing pages where needed; return it, or the last pages that changed.

    A page may have to be closed first, by a write of its own; then `heads` gets the closed page.

    Returns:
        The plan; or the last pages that differ from the known ones.
    """
    checks, moved = dict[str, Check](), dict[str, Page | None]()
    for stream in commit.fences:
        check = yield from fence(commit.table, stream, heads[stream])
        if isinstance(check, Check):
            checks[stream] = check
        else:
            moved[stream] = check.page
    if moved:
        return moved
    above = _latest(commit, heads) if commit.one_stamp else NEVER
    while True:
        writes = dict[str, Planned]()
        for stream in commit.writes:
            batch = part.batch(stream, writes)
            planned = yield from prepare_write(
                commit.table,
                replace(batch, above=above) if commit.one_stamp else batch,
                heads[stream],
                extending=stream not in overfull,
            )
            if isinstance(planned, Blocked):
                return {stream: (yield from head_from(commit.table, stream, planned.page))}
            heads[stream], writes[stream] = planned.onto, planned
        times = {time_of(write.stamp) for write in writes.values()}
        if len(times) == 1 or not commit.one_stamp:
            return Plan(writes=writes, checks=checks, records=part.records(writes), also=commit.also)
        # A page had to be closed first, so the write after it has a later stamp. Give all writes that one.
        above = Ticks(max(times) - 1)


def _latest(commit: Commit, heads: Mapping[str, Known[Page]]) -> Ticks:
    written_heads = (heads[stream] for stream in commit.writes)
    states = (None if head is None else known_state(head) for head in written_heads)
    return max((state.time for state in states if state is not None), default=NEVER)


def _streams_needing_new_page(plan: Plan, reply: Overflow) -> set[str]:
    """Return the streams whose extended page a new one may follow; raise `TooLarge` if there are none.

    They must begin a new page, since extending the last one exceeds its size limit.

    Raises:
        TooLarge: no stream can begin a new page instead, or an item of the program's own would be too large.
    """
    for place, over in enumerate(reply.over[len(plan.all) - len(plan.also) :]):
        if over:
            advice = "with this update, the stored item would exceed the limit"
            raise TooLarge(f"also[{place}]", ITEM_BYTES + 1, ITEM_BYTES, advice=advice)
    smaller = {
        stream
        for stream, planned in plan.writes.items()
        if isinstance(planned.write, Update) and may_be_followed(planned.onto)
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
        raise Unavailable("a response was lost, and now a condition of `also` fails", maybe_applied=True)


def _split_refusal(plan: Plan, refusal: Refusal) -> tuple[Refusal, dict[int, Item | None]]:
    """Return the refusal of the store's own writes, and the items that failed the program's conditions.

    These items are returned by their place among the program's writes.
    """
    first = len(plan.all) - len(plan.also)
    returned = zip(refusal.items[first:], refusal.failed[first:], strict=True)
    stood = {place: item for place, (item, failed) in enumerate(returned) if failed}
    failed = () if stood else refusal.failed[:first]
    return replace(refusal, items=refusal.items[:first], failed=failed), stood


def _was_applied(commit: Commit, plan: Plan, refusal: Refusal) -> Steps[Verdict]:
    """Judge from pages, without a key, if a refused commit was applied; if so, wait until all show it.

    Under a key, the key's record decides. A refusal may leave out pages that another transaction was writing, and a
    fence proves nothing. So if the returned pages do not decide, the others are read; one of them is enough if its
    stream is never pruned.
    """
    if commit.keyed:
        return NotApplied()
    lost = refusal.ambiguous
    answers = list(zip(plan.writes.items(), refusal.items, refusal.failed, strict=False))
    verdicts = [
        _judge(commit.table, write, item, lost=lost) for (_, write), item, failed in answers if failed
    ]
    unread = [(stream, write) for (stream, write), _, failed in answers if not failed]
    if lost and unread and isinstance(verdict_of_all(verdicts), Unknowable):
        lasting = [(stream, write) for stream, write in unread if stream in commit.lasting]
        unread = lasting[:1] or unread
        reply: Together = yield TransactGet(keys=tuple((commit.table, write.key) for _, write in unread))
        for (_, write), item in zip(unread, reply.items, strict=True):
            verdicts.append(_judge(commit.table, write, item, lost=lost))
    verdict = verdict_of_all(verdicts) if verdicts or lost else NotApplied()
    if isinstance(verdict, Applied) and len(plan.all) > 1:
        # DynamoDB may still be applying the transaction: wait until the caller would see it in every stream.
        yield from settled((commit.table, write.key) for write in plan.writes.values())
    return verdict


def _judge(table: str, write: Planned, item: Item | None, *, lost: bool) -> Verdict:
    """Decide from the page that a write was for whether the write was applied."""
    return OwnWrite.of(write, lost=lost).judge(page_of(item, table))


def _refusing_heads(table: str, plan: Plan, refusal: Refusal) -> Steps[Heads]:
    """Read the last pages of the streams whose write or fence was refused."""
    heads = dict[str, Page | None]()
    streams = (*plan.writes, *plan.checks)
    for stream, item, failed in zip(streams, refusal.items, refusal.failed, strict=False):
        if failed:
            heads[stream] = yield from head_from(table, stream, page_of(item, table))
    return heads
