"""The engine of timers: arms those that are set, and fires those that are due, on the stores of a deployment.

What has to wake it is a queue's business and a scheduler's, or a program's own: `send` hands wake-ups over, and may do
so in several ways; `work` takes them when they come, at least once. One that is not done has to come again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from functools import partial
from math import inf
from typing import TYPE_CHECKING, Any, Final, TypeVar

from epochal.contrib.timers.protocol import (
    BEGINNING,
    GRACE,
    SHARDS,
    Armed,
    Came,
    Doing,
    Fire,
    LoadPending,
    Sent,
    SideBySide,
    Wake,
    Worked,
    arming,
    waking,
)
from epochal.contrib.timers.stores import PendingTimers, pending_in, pending_under
from epochal.errors import CorruptData, EpochalError, InvalidInput, InvalidRequest, MissingBody
from epochal.feed.events import FeedEvent
from epochal.layout.registry import layouts_in, source_of
from epochal.lazy_dataclasses import dataclass, replace
from epochal.model.events import Event
from epochal.model.moments import Ticks, from_unix_nanoseconds, parse_time
from epochal.model.outcomes import Appended, Conflict
from epochal.model.stream_names import TAG_STREAMS, TIMER_SET
from epochal.plan.ops import Op, Pause, Several, Steps
from epochal.reactions.definition import Delivery, Reaction
from epochal.scheduling import query_of, timer_of
from epochal.store.driver import SIDE_BY_SIDE, Driver, ahead
from epochal.store.streams import Streams
from epochal.store.tagged import TaggedStore

if TYPE_CHECKING:
    from epochal.deployment import Deployment

T = TypeVar("T")

NAME: Final = "timers"
"""Name of the reaction that arms timers."""

NEWEST: Final = 20
"""Number of the newest events about timers under some tags that are searched first for a timer's setting."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    """Arms timers that were set and fires those that are due, on the stores of a deployment.

    Attributes:
        driver: executes requests to the table of timers.
        table: name of the table of timers.
        streams, tagged: the stores of streams and of tagged events, by the names of their layouts.
        send: function that sends wake-ups: near ones as messages, far ones as schedules. It raises if one was not
            accepted.
        now: clock in nanoseconds since 1970. No timer fires before its time by this clock.
        at_once: maximum number of scopes that are fired concurrently.
    """

    driver: Driver
    table: str
    streams: Mapping[str, Streams]
    tagged: Mapping[str, TaggedStore]
    send: Callable[[Sent], object]
    now: Callable[[], int] = time.time_ns
    at_once: int = SIDE_BY_SIDE

    def reaction(self, **options: Any) -> Reaction:
        """Make the reaction that arms the timers set by new events; `options` are options of `Reaction`."""
        sources = frozenset({*self.streams, *self.tagged})
        return Reaction(
            name=NAME, types=frozenset({TIMER_SET}), handler=self.arm, once=True, sources=sources, **options
        )

    def arm(self, delivery: Delivery) -> None:
        """Arm the timers that the events of a delivery set; this is the reaction's handler."""
        self.arm_all(armed_of(delivery.events, source_of(delivery.partition)))

    def arm_all(self, timers: Iterable[Armed]) -> None:
        """Put the items of timers into the table, then send their wake-ups."""
        if armed := tuple(timers):
            self._do(arming(self.table, armed, self._ticks), inf)

    def work(self, wake_ups: Sequence[Wake], seconds: float = inf, *, worked: Worked | None = None) -> Worked:
        """Fire the timers that wake-ups ask for, concurrently, for at most `seconds`; return the counts.

        Timers for which there is no time are passed to `send` as new wake-ups. A scope that fails does not stop the
        others.

        Args:
            worked: counts to which those of this call are added, even if it raises.

        Raises:
            Unavailable: the table of timers or `send` was unavailable. The wake-ups are not done, and have to come
                again.
        """
        worked = Worked() if worked is None else worked
        return self._do(waking(self.table, wake_ups, self._ticks, worked), self.driver.clock() + seconds)

    def sweep(self, seconds: float = inf, *, grace: Ticks = GRACE, worked: Worked | None = None) -> Worked:
        """Fire each timer due for longer than `grace`, whose wake-up may be lost; return the counts.

        Takes 16 queries if no timer is overdue, however many are pending.

        Args:
            seconds: time limit.
            worked: counts to which those of this call are added, even if it raises.
        """
        until = Ticks(self._ticks() - grace)
        return self.work(
            [Wake(shard=shard, since=BEGINNING, until=until) for shard in range(SHARDS)],
            seconds,
            worked=worked,
        )

    def pending_of(self, timers: Sequence[Armed], *, copied: bool = False) -> PendingTimers:
        """Return the pending timers of a scope that were set by the first of these settings or later.

        Only timers that fire in this scope are returned; with `copied`, only those that fire in its original.
        """
        return self._load(LoadPending(timers=tuple(timers)), copied=copied)

    def try_append(self, scope: Armed, events: Sequence[Event], known_head: Any) -> Any:
        """Append events to a timer's scope if its state is still `known_head`; return the store's outcome."""
        if scope.stream:
            return self._of(self.streams, scope).try_append(scope.stream, events, expected=known_head)
        return self._of(self.tagged, scope).try_append(events, fail_if=query_of(scope.tags), after=known_head)

    def _ticks(self) -> Ticks:
        """Return the current time of the engine's clock, in ticks."""
        return from_unix_nanoseconds(self.now())

    def _do(self, doing: Doing[T], ends: float) -> T:
        """Run a protocol generator to its end: perform each request and send it the answer; return its result.

        Errors of the library are thrown into the generator. Work is not begun after the time `ends`.
        """
        try:
            request = next(doing)
            while True:
                try:
                    answer = self._answer(request, ends)
                except EpochalError as error:
                    request = doing.throw(error)
                else:
                    request = doing.send(answer)
        except StopIteration as end:
            outcome: T = end.value
            return outcome

    def _answer(
        self, request: Op | Several | Pause | LoadPending | Fire | Sent | SideBySide, ends: float
    ) -> Any:
        """Perform one request of a protocol generator, by its type, and return the answer."""
        match request:
            case LoadPending():
                return self._load(request)
            case Fire():
                return self._fire(request)
            case Sent():
                return self.send(request)
            case SideBySide(doings=doings):
                return list(ahead(partial(self._scope, ends=ends), doings, min(self.at_once, len(doings))))
            case _:
                return self.driver.run(_alone(request))

    def _scope(self, doing: Doing[Came], ends: float) -> Came | None:
        """Run the generator of one scope; return None without starting if the time `ends` has passed."""
        return None if self.driver.clock() >= ends else self._do(doing, ends)

    def _load(self, request: LoadPending, *, copied: bool = False) -> PendingTimers:
        """Read pending timers of a scope from its stream or tags: the copied ones if `copied`, else others.

        With `copied`, only timers that fire in the scope's original are returned; without, all others.
        """
        scope = request.timers[0]
        if scope.stream:
            first = min(int(timer.place) for timer in request.timers)
            # If the outcome of an append is undetermined, the stream can still be read for the pending timers.
            refused = request.refused if isinstance(request.refused, Conflict) else None
            load = partial(
                pending_in, self._of(self.streams, scope), scope.stream, first, request.seen, refused
            )
            # A replica has the beginning of a stream: timers that ended there have ended, and an append based on it is
            # refused if the stream has grown. So an eventually consistent read suffices if it has all of the settings.
            new = request.seen.known is None and refused is None and not copied
            loaded = load(consistent=not new)
            last = max(int(timer.place) for timer in request.timers)
            if new and (loaded.known is None or loaded.known.version <= last):
                loaded = load()
        else:
            places = {timer.place for timer in request.timers}
            loaded = _tagged(self._of(self.tagged, scope), scope, places, request.seen)
        return replace(loaded, pending=tuple(timer for timer in loaded.pending if timer.copied == copied))

    def _fire(self, request: Fire) -> Any:
        """Append the events of due timers, fewer if refused; return how many fired, or the conflict or error.

        If an append of several timers is invalid, the first half of them is tried, down to a single one.
        """
        some = request.due
        while True:
            events = [event for timer in some for event in timer.firing()]
            try:
                outcome = self.try_append(request.scope, events, request.found.known)
            except (InvalidInput, InvalidRequest) as error:
                if len(some) == 1:
                    return error
                some = some[: len(some) // 2]
            else:
                return len(some) if isinstance(outcome, Appended) else outcome

    def _of(self, stores: Mapping[str, T], scope: Armed) -> T:
        """Return the store for a timer's layout; raise `InvalidInput` if there is none.

        Raises:
            InvalidInput: the engine has no store of this layout.
        """
        if scope.layout not in stores:
            raise InvalidInput("layout", f"{scope.layout} has no store here in which to fire timers")
        return stores[scope.layout]


def _alone(op: Op | Several | Pause) -> Steps[Any]:
    """Perform one operation as a plan of its own, and return the reply."""
    return (yield op)


def armed_of(events: Iterable[FeedEvent], layout: str, *, copied: bool = False) -> Iterator[Armed]:
    """Yield an armed timer for each event that sets one: the copied ones if `copied`, else all others.

    With `copied`, only timers of copied streams are yielded; without, all others. Events that are gone, and those that
    set no timer, are skipped. A setting in a stream whose body is missing from the bucket counts as due at its own
    timestamp, so that firing it reports the loss.

    Raises:
        MissingBody, DeniedBody: a setting cannot be read.
    """
    for event in events:
        if event.gone is not None or isinstance(event.fault, CorruptData):
            continue
        if isinstance(event.fault, MissingBody) and not event.stream.startswith(TAG_STREAMS):
            due = parse_time(event.timestamp) if event.timestamp else BEGINNING
            if not copied:  # without the body, nothing tells whether it is of a copy
                yield Armed(due=due, layout=layout, stream=event.stream, place=event.index)
            continue
        if event.fault is not None:
            raise event.fault
        with suppress(CorruptData):
            timer = timer_of(event)
            tags = () if timer.stream else timer.tags
            if timer.copied == copied:
                yield Armed(
                    due=timer.ticks, layout=layout, stream=timer.stream, place=timer.setting, tags=tags
                )


def _tagged(
    store: TaggedStore, scope: Armed, places: AbstractSet[int | str], seen: PendingTimers
) -> PendingTimers:
    """Return the pending timers of a timer's exact tags, read from its store of tagged events.

    If `seen` has a position, only the events after it are read. Otherwise the newest `NEWEST` events are read, and all
    of them if those do not include every setting in `places`.
    """
    query, store = query_of(scope.tags), replace(store, fetch=False)
    if seen.known is not None:
        read = store.read(query, after=seen.known)
    else:
        read = store.read(query, limit=NEWEST, direction="backward")
        if len(read.events) == NEWEST and not places <= {event.id for event in read.events}:
            read = store.read(query)
    # The query also matches events with further tags, whose timers are of another scope.
    loaded = pending_under(store, seen, read)
    return replace(loaded, pending=tuple(timer for timer in loaded.pending if timer.tags == scope.tags))


def engine_of(deployment: Deployment, table: str, send: Callable[[Sent], object], **how: Any) -> Engine:
    """Make the engine of a deployment, on each of its stores of streams and of tagged events.

    `send` delivers wake-ups; `how` are further attributes of `Engine`.
    """
    streams, tagged = dict[str, Streams](), dict[str, TaggedStore]()
    for layout in layouts_in(deployment.settings):
        if layout.plugin.streams:
            streams[layout.name] = getattr(deployment, layout.plugin.streams)
        if layout.plugin.tagged:
            tagged[layout.name] = getattr(deployment, layout.plugin.tagged)
    return Engine(driver=deployment.driver, table=table, streams=streams, tagged=tagged, send=send, **how)
