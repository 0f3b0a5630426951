"""Many independent appends in one call: each has its own expected version, key and outcome.

    to different streams    in parallel
    to one stream           in their order, with the same results as one after another; consecutive appends are joined
                            in one write, with a frame for each, where that is possible

Each append is compared with the known end of the stream and the appends before it, to decide how it is made:

    version as expected              it is joined to the appends before it
    version not as expected          it gets a conflict with the version after these, once they are written
    under an idempotency key         the key's record is put first (`layout.once`); if there is a record already, or
                                     the version is not as expected, the append is made alone, since an earlier call
                                     may have made it
    with tags, a condition,
    unfolds or ids of events         it is made alone

A joint write is conditional on exactly the known head. After a refusal, the remaining appends are compared with the
head that came back; appends under a key are then made alone, since another process may have made them. If the response
to a joint write is lost, one check finds out whether all of its appends were made.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from contextvars import copy_context
from typing import Any, Final, TypeVar

from epochal.errors import EpochalError, InvalidInput, NotTried, TooLarge
from epochal.layout.key_records import KeyRecord, RecordContents, put_record
from epochal.layout.outcomes import conflict_at, refusing_head
from epochal.layout.streams import (
    NEVER,
    Batch,
    Head,
    JoinedWriters,
    Known,
    accepts,
)
from epochal.lazy_dataclasses import dataclass, replace
from epochal.model.capacity import NOTHING
from epochal.model.events import Event
from epochal.model.expected_version import UNREAD, ExpectedVersion, check_expected, expected_head, state_meets
from epochal.model.kinds import must_be_list, must_be_seconds, must_be_whole
from epochal.model.moments import unix_seconds
from epochal.model.outcomes import Appended, Conflict, Outcome
from epochal.model.positions import Position
from epochal.model.stream_append import StreamAppend
from epochal.model.tag_answers import Takes
from epochal.model.tags import Query
from epochal.model.tokens import Token, version_of
from epochal.plan.ops import Several, Steps
from epochal.settings import REQUEST_SECONDS
from epochal.store.answers import complete, refusals_of
from epochal.store.driver import SIDE_BY_SIDE, pool
from epochal.store.joined import JOINED_APPENDS, JOINED_BYTES, shares
from epochal.store.streams import Streams

T = TypeVar("T")

MAX_APPENDS: Final = 500
"""Largest number of appends in one call, as in a request over HTTP; all of them are in memory at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BulkAppend(StreamAppend):
    """One of the appends that `Bulk.append` makes, with the arguments of `Streams.try_append`.

    Attributes:
        fail_if: a query over tags. If an event that matches is stored, nothing is appended.
        after: position up to which events do not count for `fail_if`; None: all events count.
        takes: function that says whether a conflict returns one more of the matching events; None for all of them.
        idempotency_key: key by which, for 24 hours, repeats of this append to the stream are recognized and not
            appended again.
    """

    fail_if: Query | None = None
    after: Position | None = None
    takes: Takes | None = None
    idempotency_key: str | None = None


Answer = Outcome | EpochalError
"""Result of one append: the outcome that `Streams.try_append` returns, or the error that it raises."""


@dataclass(frozen=True, slots=True)
class Bulk:
    """Makes many appends in one call, each with its own expected version, key and outcome.

    Attributes:
        streams: the store of named streams.
        at_once: number of streams that are appended to in parallel.
        seconds: seconds that one call may take; appends not begun by then are answered with `NotTried`.
    """

    streams: Streams
    at_once: int = SIDE_BY_SIDE
    seconds: float = REQUEST_SECONDS

    def __post_init__(self) -> None:
        must_be_whole(self.at_once, "at_once", 1)
        must_be_seconds(self.seconds, "seconds")

    def append(self, appends: Sequence[BulkAppend]) -> list[Answer]:
        """Make up to 500 appends, those to one stream in order; return an outcome or an error for each.

        The outcomes and errors are in the order of the appends.

        The error of an append is returned as its answer, not raised. The appends of a joint write share its capacity.

        Args:
            appends: the appends, at most 500; several may be to the same stream.

        Raises:
            InvalidInput: an element is no append, or there are more than 500; nothing was written.
        """
        must_be_list(BulkAppend, appends, "appends")
        if len(appends) > MAX_APPENDS:
            raise TooLarge("appends", len(appends), MAX_APPENDS, "items")
        lines = dict[str, list[_Entry]]()
        entries = [_Entry(append=append) for append in appends]
        for entry in entries:
            lines.setdefault(str(entry.append.stream), []).append(entry)
        store = self.streams.within(self.seconds) if self.streams.driver.deadline is None else self.streams
        many = max(1, min(self.at_once, len(lines)))
        store = store.on(replace(store.driver, at_once=max(store.driver.at_once, self.at_once // many)))
        if many == 1:
            for line in lines.values():
                _append_in_order(store, line)
        else:
            with pool(many) as side_by_side:
                futures = [
                    side_by_side.submit(copy_context().run, _append_in_order, store, line)
                    for line in lines.values()
                ]
                for future in futures:
                    future.result()
        return [entry.answer for entry in entries]


@dataclass(slots=True, eq=False)
class _Entry:
    """One append of a call, with its encoded batch and its answer.

    Attributes:
        append: the append as the caller gave it.
        batch: its encoded events, if it can be written together with others.
        alone: whether it is written by itself.
        reserved: whether this call has put the record of its key, with only this call's writes in the stream since.
        result: its outcome or error; None as long as it is not known.
    """

    append: BulkAppend
    batch: Batch | None = None
    alone: bool = False
    reserved: bool = False
    result: Answer | None = None

    @property
    def answer(self) -> Answer:
        """The outcome or the error of the append."""
        assert self.result is not None  # noqa: S101  every append has an answer by now
        return self.result

    @property
    def size(self) -> int:
        """Approximate bytes of the append's encoded events."""
        events = self.batch.events if self.batch else ()
        return sum(len(event.data.data) + len(event.meta.data) + len(event.type) for event in events)


def _append_in_order(store: Streams, entries: Sequence[_Entry]) -> None:
    """Make the appends to one stream in order, jointly where possible, and set the answer of each.

    Appends not begun before the deadline are answered with `NotTried`.
    """
    for entry in entries:
        entry.alone = len(entries) == 1 or not _can_join(store, entry)
    driver = store.driver
    while unanswered := [entry for entry in entries if entry.result is None]:
        if driver.deadline is not None and driver.clock() > driver.deadline:
            for entry in unanswered:
                entry.result = NotTried()
        elif unanswered[0].alone:
            _append_alone(store, unanswered[0])
        else:
            _append_together(store, unanswered)


def _can_join(store: Streams, entry: _Entry) -> bool:
    """Return whether an append may be written together with others.

    Malformed appends may not: their errors are found when they are made alone.
    """
    append = entry.append
    try:
        must_be_list(Event, append.events, "events")
        check_expected(append.expected)
    except InvalidInput:
        return False
    plain = append.unfolds is None and append.fail_if is None and append.after is None
    joins = isinstance(store.layout, JoinedWriters) and bool(append.events)
    return plain and joins and not any(event.tags or event.id for event in append.events)


def _append_alone(store: Streams, entry: _Entry) -> None:
    """Make one append by itself in its own write, and set its outcome or error as its answer."""
    append = entry.append
    try:
        entry.result = store.try_append(
            append.stream,
            append.events,
            unfolds=append.unfolds,
            expected=append.expected,
            fail_if=append.fail_if,
            after=append.after,
            takes=append.takes,
            idempotency_key=append.idempotency_key,
        )
    except EpochalError as error:
        entry.result = error


def _append_together(store: Streams, entries: Sequence[_Entry]) -> None:
    """Make appends to a stream in joint writes, up to one that must go alone, and set their answers.

    The capacity is shared among the appends that were answered.
    """
    for entry in entries:
        if entry.batch is None and not entry.alone:
            try:
                entry.batch = store.batch(
                    entry.append.stream, entry.append.events, key=entry.append.idempotency_key
                )
            except EpochalError as error:
                entry.result = error
    entries = [entry for entry in entries if entry.result is None]
    driver, meter = store.driver.metered()
    line = _Line(table=store.table, layout=store.layout, entries=entries, began=driver.clock())
    try:
        driver.run(line.steps())
    except EpochalError as error:
        line.failed(error)
    answered = [entry for entry in entries if entry.result is not None]
    for entry, capacity in zip(answered, shares(meter.capacity, len(answered) or 1), strict=False):
        if isinstance(entry.result, EpochalError):
            entry.result.capacity = capacity
        elif entry.result is not None:
            entry.result = replace(entry.result, capacity=capacity)


@dataclass(slots=True, kw_only=True)
class _Line:
    """Appends to one stream, in their order, that joint writes make.

    Attributes:
        table: name of the table of streams.
        layout: the layout, which can write several appends at once.
        entries: the appends, with their batches and answers.
        began: clock reading before the first request.
        writing: appends of the request under way.
    """

    table: str
    layout: Any
    entries: Sequence[_Entry]
    began: float
    writing: Sequence[_Entry] = ()

    def steps(self) -> Steps[None]:
        """Run joint writes until all appends are answered or the next append must go alone."""
        self._distrust_keys()
        if not self.entries or self.entries[0].alone:
            return
        # A record's bound must be a version that was read, not one that another append merely expects.
        read = any(entry.append.idempotency_key is not None for entry in self.entries[1:])
        known_head: Any = UNREAD if read else expected_head(self._expected(self.entries[0]))
        while unanswered := [entry for entry in self.entries if entry.result is None]:
            self.writing = unanswered[:1]
            if known_head is UNREAD:
                self._distrust_keys()
                known_head = yield from self.layout.load(self.table, unanswered[0].append.stream)
            chosen = yield from self._reserve_keys(known_head, self._choose_writes(known_head, unanswered))
            if not chosen:
                return
            known_head = yield from self._write(known_head, chosen)

    def failed(self, error: EpochalError) -> None:
        """Set an error as the answer of the failed request's appends, or mark invalid ones to go alone.

        After `InvalidInput` for several appends nothing was written, and each is made alone.
        """
        if isinstance(error, InvalidInput) and len(self.writing) > 1:
            # The fault may be in one append, or in all of them together; in either case nothing was written.
            for entry in self.writing:
                entry.alone = True
            return
        for entry in self.writing:
            entry.result = copy.copy(error)
            entry.result.__cause__ = error.__cause__

    def _distrust_keys(self) -> None:
        """Mark appends with reserved keys to go alone, since other writers may have used the keys."""
        for entry in self.entries:
            entry.alone = entry.alone or entry.reserved

    def _choose_writes(
        self, known_head: Known[Head], unanswered: Sequence[_Entry]
    ) -> list[tuple[_Entry, bool]]:
        """Return the next appends to write or refuse, each with whether its expected version is met.

        Each append is compared with the stream as the appends before it leave it. The list ends at an append that must
        go alone, and at 100 appends or 32 KB. An append under a key whose expected version is not met is marked to go
        alone.

        Args:
            known_head: known head of the stream.
            unanswered: appends without an answer.
        """
        chosen, version, room, count = list[tuple[_Entry, bool]](), version_of(known_head), JOINED_BYTES, 0
        for entry in unanswered:
            if entry.alone or count == JOINED_APPENDS or (count and entry.size > room):
                break
            is_expected = _is_met(self._expected(entry), known_head, version, moved=count > 0)
            if is_expected:
                count, version, room = count + 1, version + len(entry.append.events), room - entry.size
            elif entry.append.idempotency_key is not None:
                entry.alone = True
                break
            chosen.append((entry, is_expected))
        return chosen

    def _reserve_keys(
        self, known_head: Known[Head], chosen: list[tuple[_Entry, bool]]
    ) -> Steps[list[tuple[_Entry, bool]]]:
        """Reserve idempotency keys, by records where needed; return the appends before the first used key.

        That append is marked to go alone.
        """
        keyed = [
            entry for entry, _ in chosen if entry.append.idempotency_key is not None and not entry.reserved
        ]
        keys = [entry.append.idempotency_key for entry in keyed]
        new = [
            self.layout.is_new(known_head, entry.batch.above if entry.batch else NEVER)
            and keys.index(key) == place
            for place, (entry, key) in enumerate(zip(keyed, keys, strict=True))
        ]
        unsure = [entry for entry, is_new in zip(keyed, new, strict=True) if is_new is None]
        records = iter(
            (yield from _run_in_parallel([self._reserve(entry, version_of(known_head)) for entry in unsure]))
        )
        for entry, is_new in zip(keyed, new, strict=True):
            entry.reserved = next(records) is None if is_new is None else is_new
            entry.alone = not entry.reserved
        until = next((place for place, (entry, _) in enumerate(chosen) if entry.alone), len(chosen))
        return chosen[:until]

    def _reserve(self, entry: _Entry, version: int) -> Steps[RecordContents | None]:
        """Put the record of an append's idempotency key; return the record that was there, or None."""
        batch, key = entry.batch, entry.append.idempotency_key
        assert batch is not None  # noqa: S101  it goes out with others
        assert key is not None  # noqa: S101  as was asked
        record = KeyRecord.of(batch.stream, key, unix_seconds(batch.now))
        return put_record(self.table, record, version)

    def _write(self, known_head: Known[Head], chosen: Sequence[tuple[_Entry, bool]]) -> Steps[Any]:
        """Write the appends whose expected version is met, and set answers; return the new known head.

        After a refusal nothing is answered, and the head that came back is returned.
        """
        writes = [entry for entry, is_expected in chosen if is_expected]
        outcomes: Sequence[Outcome] = ()
        if writes:
            self.writing = writes
            outcomes = yield from self.layout.append_together_on(
                self.table, [entry.batch for entry in writes], known_head
            )
        if outcomes and isinstance(refused := outcomes[-1], Conflict):
            self._distrust_keys()
            return refusing_head(refused)
        remaining = iter(outcomes)
        current: Any = known_head
        for entry, is_expected in chosen:
            if is_expected:
                answer = next(remaining)
                current = answer.token if isinstance(answer, Appended) else UNREAD
                if current is not UNREAD or entry.append.idempotency_key is None:
                    entry.result = complete(answer, NOTHING)
            elif current is not UNREAD:
                entry.result = self._conflict(entry, current)
        return current

    def _conflict(self, entry: _Entry, known_head: Known[Head]) -> Conflict:
        """Make the conflict of an append whose expected version is not met.

        Args:
            known_head: head or token of the stream after the appends before it.
        """
        if isinstance(known_head, Token):
            return Conflict(version=known_head.version, token=known_head)
        count, _ = refusals_of(entry.append.expected)
        conflict = complete(conflict_at(known_head), NOTHING, began=self.began, refused=count)
        assert isinstance(conflict, Conflict)  # noqa: S101  it is complete, and no other outcome
        return conflict

    def _expected(self, entry: _Entry) -> ExpectedVersion:
        return refusals_of(entry.append.expected)[1]


def _is_met(expected: ExpectedVersion, known_head: Known[Head], version: int, *, moved: bool) -> bool:
    """Return whether a stream, after the writes ahead of an append, meets its expected version.

    Args:
        known_head: known head of the stream.
        version: version after the writes ahead of this one.
        moved: whether there are writes ahead of this one, so that `known_head` is no longer the end of the stream.
    """
    if not moved and not isinstance(known_head, Token):
        return accepts(expected, known_head)
    return state_meets(
        expected, version, known_head.etag if isinstance(known_head, Token) and not moved else None
    )


def _run_in_parallel(steps: Sequence[Steps[T]]) -> Steps[list[T]]:
    """Run steps of one request each in parallel; return their results in the same order."""
    requests: list[Any] = [next(step) for step in steps]
    replies, answers = (yield Several(ops=tuple(requests))) if requests else [], list[T]()
    for running, reply in zip(steps, replies, strict=True):
        try:
            running.send(reply)
        except StopIteration as end:
            answers.append(end.value)
    return answers
