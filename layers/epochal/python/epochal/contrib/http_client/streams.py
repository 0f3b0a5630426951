"""Named streams over HTTP: the store for programs that may call the API and have no rights on its tables.

The methods are those of `store.streams.Streams`, with the same arguments, outcomes and errors, as far as the API has
them. What it has not, this class has not: writes to tables of your own beside an append (`also`), states of earlier
moments, archives. So a type checker says at once what a program needs DynamoDB for.

Every append carries an `Idempotency-Key`, a new UUIDv7 unless one is given, and is repeated under it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from datetime import datetime
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, Self

from epochal.contrib.http_client.api import ApiClient, Reply, segment
from epochal.contrib.http_client.problems import name_of
from epochal.contrib.http_client.received import (
    Omitted,
    capacity_of,
    outcome_of,
    outcome_of_all,
    recorded_event,
    recorded_unfold,
    refusal_of,
    token_of,
)
from epochal.contrib.http_client.sent import (
    event_member,
    expected_member,
    query_member,
    unfold_member,
    with_uploads,
)
from epochal.errors import (
    CorruptData,
    EpochalError,
    EventsPruned,
    InvalidInput,
    TooLarge,
    Unavailable,
)
from epochal.lazy_dataclasses import dataclass, field
from epochal.model.events import Event, Recorded, Unfold
from epochal.model.expected_version import ANY, Expected, ExpectedVersion, check_expected
from epochal.model.kinds import must_be_list, must_be_whole
from epochal.model.moments import format_ticks, read_moment
from epochal.model.outcomes import Appended, Conflict, Outcome
from epochal.model.position_text import write_position
from epochal.model.positions import Position
from epochal.model.stream_append import StreamAppend
from epochal.model.stream_names import stream_name
from epochal.model.tags import Query
from epochal.model.tokens import Token
from epochal.store.bulk import Answer, BulkAppend
from epochal.store.context import new_key
from epochal.store.encoding import check_key, with_metadata
from epochal.store.outcomes import append_all_error, append_error
from epochal.store.reading import Direction, Hole, Pruned, StreamPage, StreamState, check_range

if TYPE_CHECKING:
    from epochal.contrib.http_client.feed import HttpFeed
    from epochal.contrib.http_client.tagged import HttpTaggedEvents

MOST_KEYED: Final = 99
"""Most streams of one append with a key; 100 without."""

MOST_IN_BULK: Final = 500
PAGE: Final = 1_000

_OK: Final = 200
_MISSING: Final = "stream-not-found"
_DELETED: Final = "stream-deleted"


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpStreams:
    """The store of named streams behind an HTTP API.

    Any method may raise `InvalidInput` for a malformed argument, `Unavailable`, `Refused`, `CorruptData` and
    `MissingBody`, besides the errors that the method names. `open_http_streams` opens one; it is safe to share between
    threads.

    Attributes:
        api: the API, with its address, credentials and connections.
        connections: connections to the API that `close` closes; None for none.
    """

    api: ApiClient
    connections: Any = field(default=None, repr=False, compare=False)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Close the connections."""
        self.close()

    def close(self) -> None:
        """Close the idle connections to the API."""
        if self.connections is not None:
            self.connections.close()

    @property
    def tagged(self) -> HttpTaggedEvents:
        """The store of all events with tags behind the HTTP API of these streams."""
        from epochal.contrib.http_client.tagged import HttpTaggedEvents  # noqa: PLC0415  most streams have no tags

        return HttpTaggedEvents(api=self.api)

    @property
    def feed(self) -> HttpFeed:
        """The feed of all events behind the HTTP API of these streams."""
        from epochal.contrib.http_client.feed import HttpFeed  # noqa: PLC0415  most programs do not follow it

        return HttpFeed(api=self.api)

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
    ) -> Appended:
        """Append events, replace unfolds, or both, in one atomic write; raise `ConflictError` on a conflict.

        Args:
            stream: name of the stream.
            events: at most 1,000. Bodies that are too large for a request are uploaded first.
            unfolds: unfolds that replace the stored ones; None keeps those, an empty sequence removes them.
            expected: expected version of the stream; with a token the append takes one request to DynamoDB.
            fail_if: a query over tags. If an event that matches is stored, nothing is appended.
            after: the position of a read of that query, or of a broader one: events up to it do not count.
            idempotency_key: key that makes all repeats to the stream one append, for 24 hours. None makes a new
                UUIDv7, which costs nothing: repeats within this call are one append all the same.

        Raises:
            InvalidInput: nothing to write, a malformed name or field, a key used for other contents.
            TooLarge: the events do not fit an item, or have too many tags.
            ConflictError: the stream is not at the expected version, or events match `fail_if`; carries a `Conflict`.
                `StreamDeleted` is a subclass.
            OutcomeUndetermined: a response was lost, and the events that would show the outcome have been pruned since.
            Unavailable: see `maybe_applied`: repeating the call is safe under a key of your own.
        """
        outcome = self.try_append(
            stream,
            events,
            unfolds=unfolds,
            expected=expected,
            fail_if=fail_if,
            after=after,
            idempotency_key=idempotency_key,
        )
        if isinstance(outcome, Appended):
            return outcome
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
        idempotency_key: str | None = None,
    ) -> Outcome:
        """Append as `append` does, but return a `Conflict` or `Undetermined` instead of raising an error.

        Args:
            stream, events, unfolds, expected, fail_if, after, idempotency_key: as for `append`.
        """
        append = StreamAppend(stream=stream, events=events, unfolds=unfolds, expected=expected)
        body = {**self._contents(append), **condition_members(fail_if, after)}
        reply = self.api.call(
            "POST", f"{_path(stream)}/events", body, key=key_of(idempotency_key), writes=True
        )
        return outcome_of(self.api, reply)

    def append_all(
        self,
        appends: Sequence[StreamAppend],
        *,
        fail_if: Query | None = None,
        after: Position | None = None,
        idempotency_key: str | None = None,
    ) -> Appended:
        """Append to several streams in one transaction, all or nothing; raise `ConflictError` on a conflict.

        Args:
            appends: at most 99, each of another stream, with an expectation of its own. With 100 the request has no key
                of its own making, and is not repeated where its answer was lost.
            fail_if, after: as for `append`; one condition for all appends.
            idempotency_key: as for `append`, for all streams together.

        Raises:
            InvalidInput: as for `append`; a stream is named twice.
            TooLarge: the events of a stream do not fit an item, or all of them a transaction.
            ConflictError: a stream is not at its expected version; `outcome` names all such streams. Or events match
                `fail_if`; `outcome` has the events.
            OutcomeUndetermined: as for `append`, of every stream.
            Unavailable: see `maybe_applied`.
        """
        outcome = self.try_append_all(appends, fail_if=fail_if, after=after, idempotency_key=idempotency_key)
        if isinstance(outcome, Appended):
            return outcome
        raise append_all_error(appends, outcome)

    def try_append_all(
        self,
        appends: Sequence[StreamAppend],
        *,
        fail_if: Query | None = None,
        after: Position | None = None,
        idempotency_key: str | None = None,
    ) -> Outcome:
        """Append as `append_all` does, but return a `Conflict` or `Undetermined` instead of raising an error.

        Args:
            appends, fail_if, after, idempotency_key: as for `append_all`.
        """
        must_be_list(StreamAppend, appends, "appends")
        members = [self._member(append) for append in appends]
        key = idempotency_key
        if key is not None or len(appends) <= MOST_KEYED:
            key = key_of(key)
        body = {"appends": members, **condition_members(fail_if, after)}
        reply = self.api.call("POST", "/streams", body, key=key, writes=True, repeatable=key is not None)
        return outcome_of_all(self.api, reply)

    def append_each(self, appends: Sequence[BulkAppend]) -> list[Answer]:
        """Make up to 500 independent appends; return an outcome or an error for each, in the same order.

        Appends to the same stream are made in order. The error of an append is returned as its answer, not raised.

        Args:
            appends: the appends, at most 500, without `takes`.

        Raises:
            InvalidInput: an element is no append, has `takes`, or there are more than 500; nothing was written.
        """
        must_be_list(BulkAppend, appends, "appends")
        if len(appends) > MOST_IN_BULK:
            raise TooLarge("appends", len(appends), MOST_IN_BULK, "items")
        if not appends:
            return []
        members = []
        for place, append in enumerate(appends):
            if append.takes is not None:
                rule = "must be None: the API decides what a response contains"
                raise InvalidInput(f"appends[{place}].takes", rule)
            key = {"idempotencyKey": key_of(append.idempotency_key)}
            condition = condition_members(append.fail_if, append.after)
            members.append({**self._member(append), **condition, **key})
        return [one_answer(self.api, result) for result in self._results(members)]

    def _results(self, members: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        """Send appends until each has a result, or the time is over; return the results in order.

        Where the store was not available for an append, all those to its stream are sent again under their keys, since
        a later one may have been refused for lack of an earlier one.
        """
        results = dict[int, dict[str, Any]]()
        places, tries, begun = [*range(len(members))], 0, self.api.clock()
        while places:
            body = {"appends": [members[place] for place in places]}
            reply = self.api.call("POST", "/appends", body, writes=True)
            if reply.status != _OK:
                raise reply.error
            results.update(zip(places, reply.document["results"], strict=True))
            waiting = {members[place]["stream"] for place in places if _is_unavailable(results[place])}
            places = [place for place in places if members[place]["stream"] in waiting]
            tries += 1
            if places and not self.api.pause(tries, begun):
                break
        return [results[place] for place in range(len(members))]

    def load(self, stream: str, *, start: int | None = None, events: bool = True) -> StreamState | None:
        """Return a stream's current state, strongly consistent, also of a deleted one; None without a stream.

        The state has the stream's unfolds and newest events. The token is that of this state, also where events before
        those of the newest item are read with further requests.

        Args:
            stream: name of the stream.
            start: index from which on events are included: 0 for all of them.
            events: False leaves out all events, for a smaller answer.

        Raises:
            EventsPruned: some of the events from `start` on are gone.
            InvalidInput: the stream ends before `start`.
        """
        if start is not None:
            must_be_whole(start, "start", 0)
        reply = self.api.call("GET", _path(stream), query=(("events", "true"),) if events else ())
        if reply.problem == _MISSING:
            return None
        if reply.problem == _DELETED:
            version = reply.document["version"]
            return StreamState(
                stream=stream,
                version=version,
                token=Token(version=version),
                unfolds=(),
                events=(),
                low_water=version,
                deleted=True,
            )
        if reply.status != _OK:
            raise reply.error
        document = reply.document
        version, low_water, token = document["version"], document["lowWater"], token_of(document)
        if token is None:
            raise CorruptData(f"the state of {stream} arrived without its token")
        unfolds = [recorded_unfold(self.api, shown) for shown in document["unfolds"]]
        if None in unfolds:
            raise InvalidInput("stream", f"{stream} has unfolds of over 5.5 MB, too large for a response")
        carried = [self._whole(recorded_event(self.api, shown)) for shown in document.get("events", ())]
        if start is not None and events:
            carried = self._from(stream, start, carried, version, low_water)
        return StreamState(
            stream=stream,
            version=version,
            token=token,
            unfolds=tuple(unfold for unfold in unfolds if unfold is not None),
            events=tuple(carried),
            low_water=low_water,
            deleted=False,
            capacity=capacity_of(document),
        )

    def page(
        self,
        stream: str,
        *,
        start: int | None = None,
        limit: int = PAGE,
        direction: Direction = "forward",
        types: Collection[str] | None = None,
        since: datetime | str | None = None,
        until: datetime | str | None = None,
    ) -> StreamPage:
        """Read one page of a stream: events up to `limit` or 4 MB, and the index of the next page.

        Requested events that are gone are named in the page's `hole`; those whose bodies had no room in `omitted`.

        Args:
            stream: name of the stream.
            start: index of the first event wanted; None is the first, or backward the last.
            limit: number of events at most, 1 to 10,000.
            direction: `forward` starts with the oldest event, `backward` with the newest.
            types, since, until: as for `Streams.read`. Of `limit` events the page has those that are selected.
        """
        check_range(start, limit, direction)
        parameters = {
            "from": start,
            "limit": None if limit == PAGE else limit,
            "direction": None if direction == "forward" else direction,
            "since": _time(since, "since"),
            "until": _time(until, "until"),
        }
        pairs = [(name, str(value)) for name, value in parameters.items() if value is not None]
        pairs += [("type", kind) for kind in types or ()]
        reply = self.api.call("GET", f"{_path(stream)}/events", query=pairs)
        if reply.problem in (_MISSING, _DELETED):
            deleted = reply.problem == _DELETED
            version = reply.document["version"] if deleted else 0
            return StreamPage(
                events=(), version=version, low_water=version, next=None, exists=deleted, deleted=deleted
            )
        if reply.status != _OK:
            raise reply.error
        document = reply.document
        read = [recorded_event(self.api, shown) for shown in document["events"]]
        hole = document.get("hole")
        return StreamPage(
            events=tuple(event.event if isinstance(event, Omitted) else event for event in read),
            omitted=frozenset(event.event.index for event in read if isinstance(event, Omitted)),
            version=document["version"],
            low_water=document["lowWater"],
            next=document["next"],
            hole=None if hole is None else Hole(first=hole["first"], end=hole["end"]),
            exists=True,
            deleted=False,
        )

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
        page_size: int = PAGE,
    ) -> Iterator[Recorded]:
        """Yield a stream's events from `start` on, page by page; raise `EventsPruned` where events are gone.

        Each page is of the moment when it is read, so a long read may include events that are appended meanwhile. A
        read without `start` begins with the first event there is. A stream that was deleted or never existed has no
        events; `page` and `load` tell the difference.

        Args:
            stream: name of the stream.
            start: index of the first event; None is the first, or backward the last.
            limit: number of events at most; None for all.
            direction: `forward` yields the oldest event first, `backward` the newest.
            types, since, until: as for `Streams.read`.
            page_size: number of events that one answer has at most, 1 to 10,000.

        Raises:
            EventsPruned: the event at `start` is gone, or events between those read.
            InvalidInput: an event has more than 5.5 MB, which no answer holds.
        """
        check_range(start, limit, direction)
        must_be_whole(page_size, "page_size", 1)
        page = partial(self.page, stream, direction=direction, types=types, since=since, until=until)
        most = None if types or since or until else limit
        return islice(self._events(stream, page, start, most, page_size), limit)

    def prune(self, stream: str, before: int) -> Pruned | None:
        """Delete the events below index `before` permanently; return the progress, or None without a stream.

        Where the deployment has an archive, they are copied to it first.

        Args:
            stream: name of the stream.
            before: index of the first event that is kept.
        """
        must_be_whole(before, "before")
        reply = self.api.call("POST", f"{_path(stream)}/prune", {"before": before}, writes=True)
        return None if reply.problem == _MISSING else _pruned(reply)

    def delete(self, stream: str, *, expected: ExpectedVersion = ANY, leave_open: bool = False) -> Pruned:
        """Delete a stream, with a tombstone that bars new events unless `leave_open`; return the progress.

        The name of a stream with a tombstone takes no more events. The request is not repeated where its answer was
        lost, since it carries no key.

        Args:
            stream: name of the stream.
            expected: expected version of the stream: `ANY`, `STREAM_EXISTS`, a version or a token.
            leave_open: whether to leave no tombstone; the stream then continues at its next index.

        Raises:
            ConflictError: the stream is not at the expected version, or does not exist.
            Unavailable: see `maybe_applied`.
        """
        outcome = self.try_delete(stream, expected=expected, leave_open=leave_open)
        if isinstance(outcome, Pruned):
            return outcome
        raise append_error(stream, outcome, expected)

    def try_delete(
        self, stream: str, *, expected: ExpectedVersion = ANY, leave_open: bool = False
    ) -> Pruned | Conflict:
        """Delete as `delete` does, but return a `Conflict` instead of raising `ConflictError`.

        Args:
            stream, expected, leave_open: as for `delete`.
        """
        check_expected(expected)
        if expected is Expected.NO_STREAM:
            raise InvalidInput("expected", "must not be NO_STREAM: there would be nothing to delete")
        match_ = None
        if expected is Expected.STREAM_EXISTS:
            match_ = "*"
        elif expected is not ANY:
            match_ = f'"{expected_member(expected)}"'
        reply = self.api.call(
            "DELETE",
            _path(stream),
            query=(("leaveOpen", "true"),) if leave_open else (),
            headers={} if match_ is None else {"If-Match": match_},
            writes=True,
            repeatable=False,
        )
        if reply.problem == _MISSING:
            return Conflict()
        refused = refusal_of(self.api, reply)
        return refused if isinstance(refused, Conflict) else _pruned(reply)

    def _contents(self, append: StreamAppend) -> dict[str, Any]:
        """Return what an append sends: its events, unfolds and expectation, large bodies uploaded."""
        must_be_list(Event, append.events, "events")
        if append.unfolds is not None:
            must_be_list(Unfold, append.unfolds, "unfolds")
        events, unfolds = with_uploads(self.api, with_metadata(append.events), append.unfolds)
        return {
            "events": [event_member(event) for event in events],
            **({} if unfolds is None else {"unfolds": [unfold_member(unfold) for unfold in unfolds]}),
            **({} if append.expected is ANY else {"expected": expected_member(append.expected)}),
        }

    def _member(self, append: StreamAppend) -> dict[str, Any]:
        """Return an append to one of several streams as a request has it."""
        return {"stream": stream_name(append.stream), **self._contents(append)}

    def _events(
        self,
        stream: str,
        read_page: Callable[..., StreamPage],
        start: int | None,
        limit: int | None,
        size: int,
    ) -> Iterator[Recorded]:
        """Yield the events of all pages from `start` on, and raise where some of them are gone.

        Args:
            read_page: reads the page that begins at its argument `start`.
            limit: number of events that are wanted at most; None for all.
            size: number of events of a page at most.
        """
        following, remaining = start, limit
        while remaining is None or remaining > 0:
            page = read_page(start=following, limit=size if remaining is None else min(remaining, size))
            hole = page.hole
            if hole is not None and (hole.first > 0 or (start is not None and start < hole.end)):
                raise EventsPruned(stream, hole.first, hole.end)
            for event in page.events:
                yield self._whole(Omitted(event) if event.index in page.omitted else event)
            if page.next is None:
                return
            following, remaining = page.next, None if remaining is None else remaining - len(page.events)

    def _from(
        self, stream: str, start: int, carried: Sequence[Recorded], version: int, low_water: int
    ) -> list[Recorded]:
        """Return a stream's events from `start` on: earlier ones, which are read, then those in `carried`."""
        if start > version:
            raise InvalidInput("start", f"is beyond the end of {stream}, at version {version}")
        if start < low_water:
            raise EventsPruned(stream, start, low_water)
        head = version - len(carried)
        earlier = self.read(stream, start=start, limit=head - start) if start < head else ()
        return [*earlier, *carried[max(0, start - head) :]]

    def _whole(self, event: Recorded | Omitted) -> Recorded:
        """Return an event with its bodies, reading it alone where an answer had no room for them."""
        if isinstance(event, Recorded):
            return event
        stream, index = event.event.stream, event.event.index
        alone = self.page(stream, start=index, limit=1)
        if not alone.events or alone.omitted:
            raise InvalidInput(
                "stream", f"{stream} has an event of over 5.5 MB, too large for a response, at index {index}"
            )
        return alone.events[0]


def one_answer(api: ApiClient, result: dict[str, Any]) -> Answer:
    """Return the outcome of one of many appends, or its error."""
    if _is_unavailable(result):
        tried = result.get("tried", True)
        return Unavailable(str(result.get("detail") or result["title"]), maybe_applied=tried)
    reply = Reply(status=result["status"], document=result, headers={}, action="POST /appends", size=0)
    try:
        return outcome_of(api, reply)
    except EpochalError as error:
        return error


def _is_unavailable(result: dict[str, Any]) -> bool:
    """Return whether one of many appends may succeed if it is sent again."""
    return name_of(result) == "unavailable"


def condition_members(fail_if: Query | None, after: Position | None) -> dict[str, Any]:
    """Return the condition of an append as a request has it; empty without one.

    Raises:
        InvalidInput: `after` without a query.
    """
    if fail_if is None:
        if after is not None:
            raise InvalidInput("after", "must not be given without `fail_if`")
        return {}
    reached = {} if after is None else {"after": write_position(after)}
    return {"failIf": query_member(fail_if), **reached}


def _path(stream: str) -> str:
    """Return the path of a stream; raise `InvalidInput` unless it is the name of one."""
    return f"/streams/{segment(stream_name(stream))}"


def key_of(key: str | None) -> str:
    """Return the given idempotency key, or a new one for None; raise `InvalidInput` if it is malformed."""
    if key is None:
        return new_key()
    check_key(key)
    if not (key.isascii() and key.isprintable() and " " not in key):
        raise InvalidInput("idempotency_key", "must be visible ASCII characters to be sent in a header")
    return key


def _time(moment: datetime | str | None, name: str) -> str | None:
    """Return a moment as a query string has it; raise `InvalidInput` where it is none."""
    return None if moment is None else format_ticks(read_moment(moment, name))


def _pruned(reply: Reply) -> Pruned:
    """Return the progress of a prune or deletion that an answer tells, or raise the answer's error."""
    if reply.status != _OK:
        raise reply.error
    document = reply.document
    return Pruned(
        low_water=document["lowWater"],
        deleted=document["deletedItems"],
        done=document["done"],
        capacity=capacity_of(document),
    )
