"""The store of named streams, which appends to streams, and loads, reads, prunes and deletes them, in any layout.

A `Streams` may be shared among threads. It keeps no state between calls: a writer gets the token for its next append
with the outcome of the last one.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import islice
from typing import TYPE_CHECKING

from epochal.codec.bodies import MAX_DECODED
from epochal.errors import EventsPruned, InvalidInput
from epochal.layout.outcomes import combine_outcomes
from epochal.layout.streams import (
    NEVER,
    Also,
    AnyStreamLayout,
    ArchivedStreams,
    Batch,
    Head,
    KeyedStreams,
    Known,
    PrunedStreams,
    PruneProgress,
    TaggedStreams,
    decision_id,
)
from epochal.lazy_dataclasses import dataclass, field, replace
from epochal.model.capacity import Capacity
from epochal.model.events import Event, Recorded, Unfold
from epochal.model.expected_version import ANY, STREAM_EXISTS, ExpectedVersion, check_expected
from epochal.model.kinds import must_be, must_be_list, must_be_whole
from epochal.model.moments import format_ticks, from_unix_nanoseconds, unix_seconds
from epochal.model.outcomes import Appended, Conflict, Outcome
from epochal.model.positions import Position
from epochal.model.stream_append import StreamAppend
from epochal.model.stream_names import TIMERS, no_step, stream_name
from epochal.plan.tables import PlacedName
from epochal.settings import RESPONSE_BYTES, Settings
from epochal.store.answers import REFUSALS, complete, refusals_of
from epochal.store.driver import Driver, Meter
from epochal.store.encoding import (
    BodyCodec,
    check_key,
    identity_of,
    key_digest,
    recorded_events,
    recorded_unfolds,
    store_events,
    store_unfolds,
)
from epochal.store.reading import (
    Direction,
    Hole,
    Pruned,
    Reader,
    Selection,
    StreamPage,
    StreamState,
    check_range,
    small_events,
)

if TYPE_CHECKING:
    from epochal.layout.decision_keys import DecisionKey
    from epochal.model.moments import AsOf
    from epochal.model.tag_answers import Takes
    from epochal.model.tags import Query
    from epochal.store.tagged_pages import TaggedEvents


def streams_of(settings: Settings, driver: Driver, codec: BodyCodec) -> Streams:
    """Open the streams of a deployment, with their archive if the settings name one."""
    from epochal.pages.layout import Pages  # noqa: PLC0415  other layouts do without

    layout, archive = Pages(), settings.streams_archive_table
    return Streams(
        types=settings.tagged_types,
        everything=settings.tagged_everything,
        driver=driver,
        table=settings.table("streams"),
        codec=codec,
        layout=layout,
        archive=Streams(driver=driver, table=archive, codec=codec, layout=layout) if archive else None,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Streams:
    """The store of named streams in one table: appends, reads, prunes and deletes.

    Any method may raise `InvalidInput` for a malformed argument, `Unavailable`, `MissingTable`, `Refused`,
    `CorruptData`, and `MissingBody` if a body is gone from the bucket, in addition to the errors that the method lists.

    Attributes:
        driver: object that sends requests to DynamoDB, counts their capacity (meter) and limits their retries
            (patience).
        table: name of the table of streams.
        layout: storage layout: how streams are stored in the table.
        codec: codec of bodies: where bodies too large for an item go, and whether bodies are compressed. Its
            `compress_from` is that of the layout.
        tombstones: whether deleted streams may keep a tombstone. Equinox appends past a tombstone without notice: where
            its applications use the table too, streams are deleted with `leave_open`.
        archive: store of the archive, with the same streams and layout, from which pruned events are read; None for
            none.
        types: event types that a query may name without a tag, as for `open_tagged_events`.
        everything: whether a query may select all events with tags, as for `open_tagged_events`.
        now: function that returns the time in nanoseconds since 1970.
        fresh: function that returns a given number of random bytes, for etags and append ids.
    """

    driver: Driver
    table: str
    layout: AnyStreamLayout
    codec: BodyCodec = field(default_factory=BodyCodec)
    tombstones: bool = True
    archive: Streams | None = None
    types: tuple[str, ...] = ()
    everything: bool = False
    now: Callable[[], int] = time.time_ns
    fresh: Callable[[int], bytes] = os.urandom

    def __post_init__(self) -> None:
        if self.archive is not None and self.archive.layout.name != self.layout.name:
            raise InvalidInput("archive", f"must have the same layout as the store, {self.layout.name}")
        if self.driver.place is not None:
            object.__setattr__(self, "table", PlacedName(self.table, self.driver.place))
        codec = replace(self.codec, compress_from=self.layout.compress_from)
        object.__setattr__(self, "codec", codec)

    def append(
        self,
        stream: str,
        events: Sequence[Event],
        *,
        unfolds: Sequence[Unfold] | None = None,
        expected: ExpectedVersion = ANY,
        fail_if: Query | None = None,
        after: Position | None = None,
        idempotency_key: str | None = None,
        also: Also = (),
    ) -> Appended:
        """Append events to a stream, replace its unfolds, or both, in one atomic write; raise on a conflict.

        Events may carry tags: then queries of `tagged` find them, with their stream and index. If all events have ids
        and no tags, a repeat of a batch that is stored already gets the outcome of the append that wrote it,
        `replayed`. With an expected version the batch is found however far back; with `ANY` or
        `STREAM_EXISTS`, on the last 8 pages.

        Args:
            stream: name of the stream: at most 512 ASCII letters, digits and `- _ . : ~ @ + =`.
            events: at most what an item holds, 400 KB after encoding; larger bodies go to the bucket first. Where they
                have tags, the different tags of events and condition, the stream and the key are at most 100.
            unfolds: unfolds that replace the stored ones; None keeps those, an empty sequence removes them.
            expected: expected version of the stream; with a token the append takes one request.
            fail_if: a query over tags. If an event that matches is stored, nothing is appended.
            after: the position of a read of that query, or of a broader one: events up to it do not count for
                `fail_if`. None: all events count.
            idempotency_key: key that makes all repeats to the stream one append, for 24 hours: a call with the same
                key, events and unfolds gets the outcome of the first, whatever version it expects, from any caller. A
                key that ends with a UUIDv7 costs nothing where streams are stored as pages, unless something was
                appended to the stream since the key was made.
            also: writes to tables of your own, made with the events, all or nothing (`epochal.store.also`). The append
                is then a transaction, which costs twice as much, of at most 100 items and 4 MB.

        Raises:
            InvalidInput: nothing to write, a malformed name or field, a key used for other contents; tags or a query,
                where the layout has no tags; with `ANY` or `STREAM_EXISTS`, ids of which some are stored
                already.
            TooLarge: the events do not fit an item, or have too many tags.
            ConflictError: the stream is not at the expected version, or events match `fail_if`; carries a `Conflict`.
                `StreamDeleted` is a subclass.
            ConditionUnmet: a condition of `also` does not hold; names its place, and the item in the way.
            OutcomeUndetermined: a response was lost, and the events that would show the outcome have been pruned since.
            Unavailable: see `maybe_applied`.
        """
        outcome = self.try_append(
            stream,
            events,
            unfolds=unfolds,
            expected=expected,
            fail_if=fail_if,
            after=after,
            idempotency_key=idempotency_key,
            also=also,
        )
        if isinstance(outcome, Appended):
            return outcome
        from epochal.store.outcomes import append_error  # noqa: PLC0415  functions never need it

        raise append_error(stream, outcome, expected)

    def try_append(
        self,
        stream: str,
        events: Sequence[Event],
        *,
        unfolds: Sequence[Unfold] | None = None,
        expected: ExpectedVersion = ANY,
        fail_if: Query | None = None,
        after: Position | None = None,
        takes: Takes | None = None,
        idempotency_key: str | None = None,
        also: Also = (),
    ) -> Outcome:
        """Append as `append` does, but return a conflict or an undetermined outcome instead of raising it.

        Args:
            stream, events, unfolds, expected: as for `append`.
            fail_if, after, idempotency_key, also: as for `append`.
            takes: function that says whether a conflict brings one more of the events that match; the first always
                comes. None brings all.
        """
        check_expected(expected)
        must_be_list(Event, events, "events")
        if also or fail_if is not None or after is not None or any(event.tags for event in events):
            from epochal.store import appending  # noqa: PLC0415  most appends need none of it

            one = StreamAppend(stream=stream, events=events, unfolds=unfolds, expected=expected)
            options = appending.AppendOptions(fail_if=fail_if, after=after, takes=takes, also=also)
            return appending.try_append(self, one, options, idempotency_key)
        refused, expected = refusals_of(expected)
        if refusals := REFUSALS.get():
            from epochal.store.refusals import count_refusals  # noqa: PLC0415  few are refused

            refused = max(refused, count_refusals(self.driver, self.table, stream))
        batch = self.batch(stream, events, unfolds, key=idempotency_key)
        if expected is ANY or expected is STREAM_EXISTS:
            from epochal.store import any_version  # noqa: PLC0415  most writers expect a version

            outcome = any_version.append_in_turn(self, batch, expected, idempotency_key)
        else:
            steps = self.layout.append(self.table, batch, expected, idempotency_key)
            began = self.driver.clock()
            outcome, capacity = self.driver.measured(steps)
            outcome = complete(outcome, capacity, began=began, refused=refused)
        if refusals or isinstance(outcome, Conflict):
            from epochal.store.refusals import note_outcomes  # noqa: PLC0415  as above

            note_outcomes(self.driver, self.table, {stream: outcome})
        return outcome

    def append_all(
        self,
        appends: Sequence[StreamAppend],
        *,
        fail_if: Query | None = None,
        after: Position | None = None,
        idempotency_key: str | None = None,
        also: Also = (),
    ) -> Appended:
        """Append to several streams in one transaction, all or nothing; raise on a conflict.

        To one stream alone it appends as `append` does.

        Args:
            appends: at most 100, each of another stream, with an expectation of its own; 4 MB in all.
            fail_if, after: as for `append`; one condition for all appends.
            idempotency_key: as for `append`, for all streams together, which are then at most 99.
            also: as for `append`; these writes count among the 100.

        Raises:
            InvalidInput: as for `append`; a stream is named twice; the layout can append to one stream at a time only.
            TooLarge: the events of a stream do not fit an item, or all of them a transaction.
            ConflictError: a stream is not at its expected version; `outcome` names all such streams. Or events match
                `fail_if`; `outcome` has the events.
            ConditionUnmet: as for `append`.
            OutcomeUndetermined: a response was lost, and the events that would show the outcome are gone from every
                stream.
            Unavailable: see `maybe_applied`.
        """
        outcome = self.try_append_all(
            appends, fail_if=fail_if, after=after, idempotency_key=idempotency_key, also=also
        )
        if isinstance(outcome, Appended):
            return outcome
        from epochal.store.outcomes import append_all_error  # noqa: PLC0415  functions never need it

        raise append_all_error(appends, outcome)

    def try_append_all(
        self,
        appends: Sequence[StreamAppend],
        *,
        fail_if: Query | None = None,
        after: Position | None = None,
        takes: Takes | None = None,
        idempotency_key: str | None = None,
        also: Also = (),
    ) -> Outcome:
        """Append as `append_all` does, but return a conflict or undetermined outcome instead of raising it.

        Args:
            appends, fail_if, after, idempotency_key, also: as for `append_all`.
            takes: function that says whether a conflict brings one more of the events that match `fail_if`; None brings
                all.
        """
        from epochal.store import appending  # noqa: PLC0415  most append to one stream

        options = appending.AppendOptions(fail_if=fail_if, after=after, takes=takes, also=also)
        return appending.try_append_all(self, appends, options, idempotency_key)

    def load(
        self,
        stream: str,
        *,
        start: int | None = None,
        as_of: AsOf | None = None,
        refused: Conflict | None = None,
        fetch: bool = True,
        events: bool = True,
    ) -> StreamState | None:
        """Read a stream's state, current or at `as_of`, with unfolds and events; None without a stream.

        Without `start` and `as_of`, the load takes one strongly consistent request. The state then has the stream's
        unfolds and its newest events, which are all events of a short stream. With `start=0` it has all events of any
        stream.

        If the calling thread or task was refused at its last two appends to the stream, or more, the load waits before
        it reads, as deciders do, so that writers give way to each other.

        Args:
            stream: name of the stream.
            as_of: version or moment whose state is returned: a number, a datetime with a time zone, or ISO 8601 text.
                The state at a moment ends with the last event that happened by then. All its events are included, or
                those from `start` on; unfolds only if they are from then. An append that expects its token gets a
                conflict, unless it is the current state.
            start: index from which on events are included: those that are missing in a state folded before.
            refused: conflict of an append on an earlier state. The head that came with the conflict is not read again,
                so the state is that of the moment of the conflict; from the second refusal in a row on the head is read
                after a wait.
            fetch: False leaves bodies that lie in the bucket as claims.
            events: False leaves out all events, where the version, the token or the unfolds are needed. The load then
                reads one page alone, which costs less where pages are large.

        Raises:
            EventsPruned: some of the events from `start` on are gone.
            InvalidInput: the stream, or its state at `as_of`, ends before `start` or `as_of`; `refused` is of another
                stream; `events` is False although `start` asks for events.
        """
        if start is not None:
            must_be_whole(start, "start", 0)
            if not events:
                raise InvalidInput(
                    "events", "must be True if `start` is given, because `start` asks for events"
                )
        if refused is not None:
            must_be(Conflict, refused, "refused", "the Conflict that an append returned")
        store, meter = self.metered()
        with meter:
            times = store._give_way(stream, refused, as_of)  # noqa: SLF001  its own
            whole = events and (start == 0 or (start is None and as_of is not None))
            head = store.newest(stream, refused, whole=whole, recent=events and not whole)
            if head is None:
                return None
            if not events:
                start = head.version
            if as_of is None:
                state = store._state(head, start, fetch=fetch)  # noqa: SLF001  likewise
            else:
                from epochal.store import earlier  # noqa: PLC0415  few look back

                state = earlier.state_at(store, head, start or 0, as_of, fetch=fetch)
        if times:
            state = replace(state, token=replace(state.token, refused=times))
        return replace(state, capacity=meter.capacity)

    def read(
        self,
        stream: str,
        *,
        start: int | None = None,
        limit: int | None = None,
        direction: Direction = "forward",
        types: Collection[str] | None = None,
        since: datetime | str | None = None,
        until: datetime | str | None = None,
    ) -> Iterator[Recorded]:
        """Yield the events of a stream from `start`, forward or backward, reading pages as they are consumed.

        The head is read first: events appended later are not part of the read. Events that were pruned come from the
        archive; without an archive, a read without `start` begins with the first event there is. A stream that was
        deleted or never existed has no events, archived or not; `page` and `load` tell the difference.

        Args:
            stream: name of the stream.
            start: index of the first event; None is the first, or backward the last.
            limit: number of events at most; None for all.
            direction: `forward` yields the oldest event first, `backward` the newest.
            types: types of the events that are yielded; None for all types. Other events are read all the same, and do
                not count for the limit.
            since: time from which on events are yielded; None for no limit.
            until: time before which events are yielded; None for no limit.

        Raises:
            EventsPruned: the event at `start` is gone, or events between those read, since a prune has overtaken the
                read; where the store has an archive, any requested event that was pruned unarchived. The read can begin
                at `low_water`.
        """
        check_range(start, limit, direction)
        selected = Selection.of(types, since, until)
        reader, name = self.reader(fetch=True), stream_name(stream)
        if selected is None:
            return reader.events(name, start, limit, direction)
        return islice(filter(selected, reader.events(name, start, None, direction)), limit)

    def page(
        self,
        stream: str,
        *,
        start: int | None = None,
        limit: int = 1000,
        direction: Direction = "forward",
        max_bytes: int = RESPONSE_BYTES,
        fetch: bool = True,
        types: Collection[str] | None = None,
        since: datetime | str | None = None,
        until: datetime | str | None = None,
        largest: int = MAX_DECODED,
    ) -> StreamPage:
        """Read one page of a stream: events up to `limit` or `max_bytes`, and the index of the next page.

        Requested events that are gone are named in the page's `hole`.

        Args:
            stream: name of the stream.
            limit: number of events after which the page ends, 1 or more.
            direction: `forward` starts with the oldest event, `backward` with the newest.
            max_bytes: bytes of events after which the page ends, 1 or more.
            types, since, until: as for `read`. Of `limit` events the page has those that are selected, perhaps none.
            start: index of the first event wanted; None is the first, or backward the last.
            fetch: False leaves bodies that lie in the bucket as claims.
            largest: largest bytes of data, or of metadata, in the table; an event with more comes without its bodies,
                as the page's `omitted` says.
        """
        check_range(start, limit, direction)
        must_be_whole(max_bytes, "max_bytes", 1)
        must_be_whole(largest, "largest", 1)
        store, meter = self.metered()
        selected = Selection.of(types, since, until)
        with meter:
            page = store.reader(fetch=fetch).page(
                stream_name(stream), start, limit, direction, max_bytes, largest=min(largest, MAX_DECODED)
            )
        events = page.events if selected is None else tuple(filter(selected, page.events))
        return replace(page, events=events, capacity=meter.capacity)

    def prune(self, stream: str, before: int, *, unarchived: bool = False) -> Pruned | None:
        """Delete the events below `before` permanently; raise if an archive lacks some; None without a stream.

        The result is the progress: a call deletes a part of the items, so call again until it is `done`.

        Args:
            stream: name of the stream.
            before: index of the first event that is kept.
            unarchived: whether to delete events that the store's archive does not have.

        Raises:
            InvalidInput: the archive lacks some of these events, or has other events; nothing was pruned.
        """
        must_be_whole(before, "before")
        store, meter = self.metered()
        with meter:
            if store.archive is not None and not unarchived:
                before = min(before, _archived(store, stream, store.archive, before))
            layout = require_prunable_layout(self.layout)
            progress = store.driver.run(layout.prune(self.table, stream_name(stream), before, self._etag()))
        return None if progress is None else _pruned(progress, meter.capacity)

    def archive_and_prune(self, stream: str, before: int) -> Pruned | None:
        """Copy events below `before` to the archive, then prune the copied ones; None without a stream.

        Without an archive it only prunes.

        Where time runs out, a part may be copied and nothing pruned; another call goes on.

        Args:
            stream: name of the stream.
            before: index of the first event that is kept.

        Raises:
            InvalidInput: as `copy_to_archive` does.
        """
        store, meter = self.metered()
        with meter:
            if self.archive is not None:
                # Events appended meanwhile are not in the archive, and so must not be pruned.
                before = min(before, store.copy_to_archive(stream, before))
            pruned = store.prune(stream, before, unarchived=True)
        return None if pruned is None else replace(pruned, capacity=meter.capacity)

    def delete(self, stream: str, *, expected: ExpectedVersion = ANY, leave_open: bool = False) -> Pruned:
        """Delete a stream's events and unfolds; leave a tombstone unless `leave_open`; raise on a conflict.

        A tombstone refuses further appends. A call deletes a part of the items: call again until the result is `done`.

        Args:
            stream: name of the stream.
            expected: expected version of the stream.
            leave_open: whether to leave no tombstone; the stream then continues at its next index.

        Raises:
            InvalidInput: a tombstone in a table that Equinox applications use too.
            ConflictError: the stream is not at the expected version, or does not exist.
        """
        outcome = self.try_delete(stream, expected=expected, leave_open=leave_open)
        if isinstance(outcome, Pruned):
            return outcome
        from epochal.store.outcomes import append_error  # noqa: PLC0415  functions never need it

        raise append_error(stream, outcome, expected)

    def try_delete(
        self, stream: str, *, expected: ExpectedVersion = ANY, leave_open: bool = False
    ) -> Pruned | Conflict:
        """Delete as `delete` does, but return a conflict instead of raising it.

        Args:
            stream, expected, leave_open: as for `delete`.
        """
        check_expected(expected)
        if not leave_open and not self.tombstones:
            rule = "must be True, because other applications of this table ignore tombstones"
            raise InvalidInput("leave_open", rule)
        layout = require_prunable_layout(self.layout, "deleted")
        steps = layout.delete(self.table, stream_name(stream), expected, self._etag(), leave_open=leave_open)
        result, capacity = self.driver.measured(steps)
        if isinstance(result, Conflict):
            return replace(result, refused=None, capacity=capacity)
        return _pruned(result, capacity)

    def copy_to_archive(self, stream: str, before: int) -> int:
        """Copy the events below `before` to the archive, for a later prune; return the archive's version.

        Args:
            stream: name of the stream.
            before: index of the first event that is not copied.

        Raises:
            InvalidInput: there is no archive, its stream was deleted or has other events, or events were pruned before
                they were archived.
        """
        must_be_whole(before, "before")
        if self.archive is None:
            raise InvalidInput("archive", "is required, but the store was opened without one")
        if not isinstance(self.layout, ArchivedStreams):
            raise _unable(self.layout, "archived")
        _archived(self, stream, self.archive)
        into, etags = self.archive.table, iter(self._etag, "")
        return self.driver.run(self.layout.archive(self.table, into, stream_name(stream), before, etags))

    def within(self, seconds: float) -> Streams:
        """Return a copy of the store whose calls give up `seconds` from now.

        Args:
            seconds: time from now until calls give up, retries included.
        """
        archive = self.archive and self.archive.within(seconds)
        return replace(self, driver=self.driver.within(seconds), archive=archive)

    def metered(self) -> tuple[Streams, Meter]:
        """Return a copy of the store, and a meter of the capacity that the copy consumes.

        The meter serves `read`, which has no outcome, and several calls together. The meter of this store counts the
        same requests, too.
        """
        driver, meter = self.driver.metered()
        return self.on(driver), meter

    def on(self, driver: Driver) -> Streams:
        """Return a copy of the store that sends all requests, also those to its archive, through the given driver.

        Args:
            driver: driver that runs the requests of the copy.
        """
        return replace(self, driver=driver, archive=self.archive and self.archive.on(driver))

    def reader(self, *, fetch: bool = True, consistent: bool = True) -> Reader:
        """Make a reader of this table and its archive.

        Args:
            fetch: False leaves bodies in the bucket as claims.
            consistent: as of `Reader`.
        """
        archive = None if self.archive is None else self.archive.reader(fetch=fetch, consistent=consistent)
        return Reader(
            driver=self.driver,
            table=self.table,
            layout=self.layout,
            codec=self.codec,
            fetch=fetch,
            archive=archive,
            consistent=consistent,
        )

    def head(
        self, stream: str, *, consistent: bool = True, whole: bool = False, recent: bool = False
    ) -> Head | None:
        """Read a stream's head (its last item) in its layout's form; None if there is no such stream.

        It is `load` for stores built on this one.

        Args:
            stream: name of the stream.
            whole: whether all events are wanted; those of a short stream may come with the head.
            recent: whether the newest events are wanted; more than the head carries may come with it.
            consistent: False may return an older head.
        """
        steps = self.layout.load(
            self.table, stream_name(stream), consistent=consistent, whole=whole, recent=recent
        )
        head: Head | None = self.driver.run(steps)
        return head

    def append_on(
        self,
        known: Mapping[str, Known[Head]],
        appends: Sequence[StreamAppend],
        *,
        key: DecisionKey | str | None = None,
        also: Also = (),
    ) -> Outcome:
        """Append to streams only if their heads (last items) are the given ones; return one outcome for all.

        Heads of streams without an append are only checked. A conflict carries the current heads. Without appends, the
        heads are checked against the store. The outcome of an earlier decision under the key is `replayed`.

        Args:
            known: known head of each stream, by name.
            appends: appends to some of these streams.
            key: key of the decision that the appends form: of one stream, on a head that `layout.once` has returned.
            also: writes to other tables in the same transaction.

        Raises:
            ConditionUnmet: a condition of `also` does not hold.
        """
        if any(event.tags for append in appends for event in append.events):
            from epochal.store import appending  # noqa: PLC0415  most appends need none of it

            return appending.append_tagged_on(self, known, appends, key, also)
        batches = list[Batch]()
        if len(known) == len(appends) == 1 and not isinstance(key, str):
            (only,) = appends
            batch = self.batch(only.stream, only.events, only.unfolds)
            if key is not None:
                batch = key.on(batch)
            if not also:
                steps = self.layout.append_on(self.table, batch, known[only.stream])
                return combine_outcomes({only.stream: self.driver.run(steps)})
            batches.append(batch)
        from epochal.store import appending  # noqa: PLC0415  as above

        writes = [(batch, known[batch.stream]) for batch in batches or appending.batches(self, appends)]
        return appending.append_all_on(self, writes, known, key if isinstance(key, str) else None, also)

    def decision_key(self, stream: str, key: str) -> DecisionKey:
        """Make the key of a decision on a stream from the caller's idempotency key.

        Args:
            stream: name of the stream.
            key: idempotency key that the caller chose.
        """
        from epochal.layout.decision_keys import DecisionKey  # noqa: PLC0415  few decisions have one
        from epochal.layout.key_records import KeyRecord  # noqa: PLC0415  few decisions have one

        check_key(key)
        layout, now = require_keyed_layout(self.layout), from_unix_nanoseconds(self.now())
        return DecisionKey(
            layout=layout,
            table=self.table,
            stream=stream,
            record=KeyRecord.of(stream_name(stream), key, unix_seconds(now)),
            append_id=decision_id(key_digest(stream, key), 0),
            above=layout.moment_of_key(key, now),
        )

    @property
    def tagged(self) -> TaggedEvents:
        """The store of all events with tags in this table: those of streams, and those without a stream.

        Raises:
            InvalidInput: the layout has no tags.
        """
        from epochal.store.tagged_pages import tagged_events_of  # noqa: PLC0415  most streams have no tags

        return tagged_events_of(self)

    def decided_all(self, streams: Sequence[str], key: str) -> Outcome | None:
        """Return the outcome of an earlier decision on streams under the same key; None if there was none.

        Args:
            streams: names of the streams.
            key: idempotency key of the decision.
        """
        from epochal.store.appending import require_transactional_layout  # noqa: PLC0415  most append to one stream

        now = from_unix_nanoseconds(self.now())
        return self.driver.run(
            require_transactional_layout(self.layout).decided_all(self.table, streams, key, now)
        )

    def batch(
        self,
        stream: str,
        events: Sequence[Event],
        unfolds: Sequence[Unfold] | None = None,
        now: int | None = None,
        *,
        key: str | None = None,
        tagged: bool = False,
    ) -> Batch:
        """Check and encode one append for the layout; raise for its arguments what `append` raises.

        Args:
            stream: name of the stream.
            events: events to append, without tags unless `tagged`.
            unfolds: unfolds that replace the stored ones; None keeps those.
            now: time of the append, in nanoseconds since 1970; None reads the clock.
            key: idempotency key that the append id derives from; None for a random id.
            tagged: whether events may have tags.
        """
        no_step(stream_name(stream), "stream")
        must_be_list(Event, events, "events")
        if unfolds is not None:
            must_be_list(Unfold, unfolds, "unfolds")
            if not self.layout.keeps_unfolds:
                raise InvalidInput("unfolds", f"are not supported by the layout {self.layout.name}")
        if not events and unfolds is None:
            raise InvalidInput("events", "must not be empty unless unfolds are given")
        if not self.layout.keeps_ids:
            for place, event in enumerate(events):
                if event.id is not None:
                    rule = f"is not supported by the layout {self.layout.name}"
                    raise InvalidInput(f"events[{place}].id", rule)
        if key is not None:
            check_key(key)
        ticks = from_unix_nanoseconds(self.now() if now is None else now)
        timestamp = format_ticks(ticks)
        if not TIMERS.isdisjoint(event.type for event in events):
            from epochal.scheduling import check_all  # noqa: PLC0415  few appends set a timer

            check_all(events, ticks, tags=isinstance(self.layout, TaggedStreams))
        stored_unfolds = None if unfolds is None else store_unfolds(unfolds, timestamp, self.codec)
        room = self.layout.room(stored_unfolds or ())
        stored = store_events(events, timestamp, self.codec, room, tagged=tagged)
        return Batch(
            stream=stream,
            events=stored,
            unfolds=stored_unfolds,
            now=ticks,
            etag=self._etag(),
            append_id=self.fresh(16)
            if key is None
            else identity_of([StreamAppend(stream=stream, events=events, unfolds=unfolds)], key),
            keyed=key is not None,
            above=NEVER if key is None else require_keyed_layout(self.layout).moment_of_key(key, ticks),
            dated=any(
                event.timestamp is not None and encoded.timestamp == timestamp
                for event, encoded in zip(events, stored, strict=True)
            ),
        )

    def _etag(self) -> str:
        return self.fresh(16).hex()

    def _give_way(self, stream: str, refused: Conflict | None, as_of: AsOf | None) -> int:
        """Wait before a load if the caller's appends to the stream were refused; return how many in a row.

        Args:
            refused: conflict that the caller has; None for what is remembered of the caller's appends.
            as_of: earlier state that is loaded, on which nobody can append; None for the current one.
        """
        times = 0 if refused is None or refused.token is None else refused.token.refused
        if REFUSALS.get():
            from epochal.store.refusals import forget_refusals, give_way  # noqa: PLC0415  few are refused

            if refused is not None:
                forget_refusals(self.driver, self.table, stream)
            elif as_of is None:
                times = give_way(self.driver, self.table, stream)
        return times

    def newest(
        self, stream: str, refused: Conflict | None, *, whole: bool, recent: bool = False
    ) -> Head | None:
        """Return the head of the conflict `refused`, or read it, perhaps after a wait; None without a stream.

        Args:
            stream: name of the stream.
            refused: conflict of an append; None for none.
            whole: whether all events are wanted.
            recent: whether the newest events are wanted.
        """
        if refused is not None:
            from epochal.store.backing_off import back_off  # noqa: PLC0415  few are refused

            refusal = refused.refused
            if refusal is not None:
                head: Head | None = refusal.head
                if head is not None and head.stream != stream:
                    raise InvalidInput("refused", f"is a conflict of another stream: {head.stream}")
                if back_off(self.driver, refusal.times, refusal.began):
                    return head
        return self.head(stream, whole=whole, recent=recent)

    def _state(self, head: Head, start: int | None, *, fetch: bool) -> StreamState:
        """Make the state of a stream from a head, with the events that came with it or those from `start` on."""
        if start is None or head.deleted:
            span = head.span
            indices = range(span.base, span.next)
            stored = [span.read(index - span.base) for index in indices]
            events = tuple(recorded_events(head.stream, indices, stored, self.codec, fetch=fetch))
            if head.earlier_spans and not head.deleted:
                events = (*self._events_before(head), *events)
        else:
            events = tuple(self._events_from(head, start, fetch=fetch))
        return StreamState(
            stream=head.stream,
            version=head.version,
            token=head.token(),
            unfolds=recorded_unfolds(head.read_unfolds(), self.codec, fetch=fetch),
            events=events,
            low_water=head.low_water,
            deleted=head.deleted,
        )

    def _events_before(self, head: Head) -> list[Recorded]:
        """Return the events that came with a head before its own and need no further request, without gaps."""
        events = list[Recorded]()
        for span in reversed(head.earlier_spans):
            before = small_events(head.stream, span, self.codec)
            if before is None:
                break
            events = [*before, *events]
        return events

    def _events_from(self, head: Head, start: int, *, fetch: bool) -> Iterator[Recorded]:
        """Yield a stream's events from `start`; raise `EventsPruned` at a hole, `InvalidInput` past the end.

        The events in the head take no request.

        Raises:
            EventsPruned: one of them is gone.
            InvalidInput: `start` is beyond the end.
        """
        if start > head.version:
            raise InvalidInput("start", f"is beyond the end of {head.stream}, at version {head.version}")
        for event in self.reader(fetch=fetch).onward(head, start, "forward"):
            if isinstance(event, Hole):
                raise EventsPruned(head.stream, event.first, event.end)
            yield event


def require_keyed_layout(layout: AnyStreamLayout) -> KeyedStreams:
    """Return the layout if it supports idempotency keys; else raise `InvalidInput`.

    Raises:
        InvalidInput: it does not.
    """
    if isinstance(layout, KeyedStreams):
        return layout
    raise InvalidInput("idempotency_key", f"is not supported by the layout {layout.name}")


def require_prunable_layout(layout: AnyStreamLayout, done: str = "pruned") -> PrunedStreams:
    """Return the layout if it can prune; else raise `InvalidInput`.

    Args:
        done: participle that names the operation in the error message, such as `pruned`.

    Raises:
        InvalidInput: it cannot.
    """
    if isinstance(layout, PrunedStreams):
        return layout
    raise _unable(layout, done)


def _unable(layout: AnyStreamLayout, done: str) -> InvalidInput:
    return InvalidInput("stream", f"cannot be {done}, because the layout {layout.name} does not support it")


def _archived(store: Streams, stream: str, archive: Streams, before: int = 0) -> int:
    """Return an archive's version; raise if its last event differs, or it lacks events below `before`.

    The archive's version only grows, so a stream may be pruned up to it. If one of the tables was restored, the archive
    may have events of another history, so its last event is compared with the store's.

    Raises:
        InvalidInput: the archive has other events, or lacks some below `before`.
    """
    copy = archive.head(stream)
    reached = 0 if copy is None or copy.deleted else copy.version
    head = store.head(stream) if reached or before else None
    if copy is not None and reached and head is not None and not head.deleted:
        copied, original = (
            next(side.reader(fetch=False).onward(side_head, reached - 1, "forward", 1), None)
            for side, side_head in ((archive, copy), (store, head))
        )
        if isinstance(copied, Recorded) and copied != original:
            raise InvalidInput("archive", f"differs in event {copied.index} of {stream}, as after a restore")
    if reached < before and head is not None and reached < head.version:
        rule = f"the archive has only the events below {reached}: copy the others, or set `unarchived`"
        raise InvalidInput("before", rule)
    return reached


def _pruned(pruned: PruneProgress, capacity: Capacity) -> Pruned:
    """Convert a layout's progress of a prune to a result, with the capacity consumed."""
    return Pruned(low_water=pruned.low_water, deleted=pruned.deleted, done=pruned.done, capacity=capacity)
