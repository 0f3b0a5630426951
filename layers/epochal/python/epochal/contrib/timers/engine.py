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
from epochal.feed.history import FeedEvent
from epochal.layout.port import layouts_in, source_of
from epochal.lazy_dataclasses import dataclass, replace
from epochal.model.events import TAG_STREAMS, TIMER_SET, Event, Ticks, from_unix_nanoseconds, parse_time
from epochal.model.versions import Appended, Conflict
from epochal.plan.ops import Op, Several, Steps
from epochal.reactions.reaction import Delivery, Reaction
from epochal.scheduling import query_of, timer_of
from epochal.store.driver import SIDE_BY_SIDE, Driver, ahead
from epochal.store.streams import Streams
from epochal.store.tagged import TaggedStore

if TYPE_CHECKING:
    from epochal.deployment import Deployment

T = TypeVar("T")

NAME: Final = "timers"
"""Of the reaction that arms."""

NEWEST: Final = 20
"""Of the events about timers under some tags, so many are looked at first for a timer's setting."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    """Arms and fires timers.

    Attributes:
        driver: of the table of timers.
        streams, tagged: the stores, by the names of their layouts.
        send: sends wake-ups: near ones a message each, far ones by schedules. It raises where one was not taken.
        now: nanoseconds since 1970. Nothing is fired before its time by this clock.
        at_once: scopes that are fired side by side.
    """

    driver: Driver
    table: str
    streams: Mapping[str, Streams]
    tagged: Mapping[str, TaggedStore]
    send: Callable[[Sent], object]
    now: Callable[[], int] = time.time_ns
    at_once: int = SIDE_BY_SIDE

    def reaction(self, **options: Any) -> Reaction:
        """What arms timers, as any reaction is run; `options` are a reaction's."""
        sources = frozenset({*self.streams, *self.tagged})
        return Reaction(
            name=NAME, types=frozenset({TIMER_SET}), handler=self.arm, once=True, sources=sources, **options
        )

    def arm(self, delivery: Delivery) -> None:
        """Put items of the timers that were set, and send what wakes them: the handler of the reaction."""
        self.arm_all(armed_of(delivery.events, source_of(delivery.partition)))

    def arm_all(self, timers: Iterable[Armed]) -> None:
        """Put items of timers, and send what wakes them."""
        if given := tuple(timers):
            self._do(arming(self.table, given, self._ticks), inf)

    def work(self, wake_ups: Sequence[Wake], seconds: float = inf, *, worked: Worked | None = None) -> Worked:
        """Do what wake-ups ask for, side by side. What there is no time for is handed to `send`, and scopes that fail
        keep nobody from the others.

        Args:
            worked: what comes of it is added here, also where this raises.

        Raises:
            Unavailable: the table of timers was, or what sends: the wake-ups are not done, and come again.
        """
        worked = Worked() if worked is None else worked
        return self._do(waking(self.table, wake_ups, self._ticks, worked), self.driver.clock() + seconds)

    def sweep(self, seconds: float = inf, *, grace: Ticks = GRACE, worked: Worked | None = None) -> Worked:
        """Fire whatever has been due for longer than `grace`: what a lost wake-up was for. 16 queries where there is
        nothing, however much is pending.
        """
        until = Ticks(self._ticks() - grace)
        return self.work(
            [Wake(shard=shard, since=BEGINNING, until=until) for shard in range(SHARDS)],
            seconds,
            worked=worked,
        )

    def pending_of(self, timers: Sequence[Armed], *, copied: bool = False) -> PendingTimers:
        """What is pending in the scope of these timers, as far as it was set with the first of them or later: what
        fires there, or what is `copied`.
        """
        return self._load(LoadPending(timers=tuple(timers)), copied=copied)

    def try_append(self, scope: Armed, events: Sequence[Event], known: Any) -> Any:
        """Append to a timer's scope, on what is known of it; what came of that, as the store of it answers."""
        if scope.stream:
            return self._of(self.streams, scope).try_append(scope.stream, events, expected=known)
        return self._of(self.tagged, scope).try_append(events, fail_if=query_of(scope.tags), after=known)

    def _ticks(self) -> Ticks:
        return from_unix_nanoseconds(self.now())

    def _do(self, doing: Doing[T], ends: float) -> T:
        """Perform one thing after another."""
        try:
            asked = next(doing)
            while True:
                try:
                    answer = self._answer(asked, ends)
                except EpochalError as error:
                    asked = doing.throw(error)
                else:
                    asked = doing.send(answer)
        except StopIteration as end:
            outcome: T = end.value
            return outcome

    def _answer(self, asked: Op | Several | LoadPending | Fire | Sent | SideBySide, ends: float) -> Any:
        match asked:
            case LoadPending():
                return self._load(asked)
            case Fire():
                return self._fire(asked)
            case Sent():
                return self.send(asked)
            case SideBySide(doings=doings):
                return list(ahead(partial(self._scope, ends=ends), doings, min(self.at_once, len(doings))))
            case _:
                return self.driver.run(_alone(asked))

    def _scope(self, doing: Doing[Came], ends: float) -> Came | None:
        return None if self.driver.clock() >= ends else self._do(doing, ends)

    def _load(self, asked: LoadPending, *, copied: bool = False) -> PendingTimers:
        scope = asked.timers[0]
        if scope.stream:
            first = min(int(each.place) for each in asked.timers)
            # Of an append whose outcome nothing can tell, the stream may still tell what is pending.
            refused = asked.refused if isinstance(asked.refused, Conflict) else None
            load = partial(
                pending_in, self._of(self.streams, scope), scope.stream, first, asked.seen, refused
            )
            # What a replica has of a stream is how it began: whatever ended in it has ended, and an append on it is
            # refused where more has come. So it does, if it has all of the settings.
            new = asked.seen.known is None and refused is None and not copied
            found = load(consistent=not new)
            last = max(int(each.place) for each in asked.timers)
            if new and (found.known is None or found.known.version <= last):
                found = load()
        else:
            places = {each.place for each in asked.timers}
            found = _tagged(self._of(self.tagged, scope), scope, places, asked.seen)
        return replace(found, pending=tuple(each for each in found.pending if each.copied == copied))

    def _fire(self, asked: Fire) -> Any:
        """How many were fired, or what has refused it; of an append that could never be made, the half is tried."""
        some = asked.due
        while True:
            events = [event for each in some for event in each.firing()]
            try:
                came = self.try_append(asked.scope, events, asked.found.known)
            except (InvalidInput, InvalidRequest) as error:
                if len(some) == 1:
                    return error
                some = some[: len(some) // 2]
            else:
                return len(some) if isinstance(came, Appended) else came

    def _of(self, stores: Mapping[str, T], scope: Armed) -> T:
        if scope.layout not in stores:
            raise InvalidInput("layout", f"{scope.layout} has no store here that timers could be fired in")
        return stores[scope.layout]


def _alone(op: Op | Several) -> Steps[Any]:
    return (yield op)


def armed_of(events: Iterable[FeedEvent], layout: str, *, copied: bool = False) -> Iterator[Armed]:
    """The timers that events set, those of copies or the others; what is gone, or sets none, is passed over. One of a
    stream whose body is not in the bucket is taken for due, so that whoever fires it tells of that.

    Raises:
        MissingBody, DeniedBody: a setting cannot be read.
    """
    for event in events:
        if event.gone is not None or isinstance(event.fault, CorruptData):
            continue
        if isinstance(event.fault, MissingBody) and not event.stream.startswith(TAG_STREAMS):
            due = parse_time(event.timestamp) if event.timestamp else BEGINNING
            if not copied:  # which nothing can tell
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
    """What is pending under some tags: of the newest events about timers, if the settings are among them; or of all.
    What was seen before goes on with what came since.
    """
    query, store = query_of(scope.tags), replace(store, fetch=False)
    if seen.known is not None:
        came = store.read(query, after=seen.known)
    else:
        came = store.read(query, limit=NEWEST, direction="backward")
        if len(came.events) == NEWEST and not places <= {each.id for each in came.events}:
            came = store.read(query)
    # Events of more tags are events of these tags, too; their timers are their own.
    found = pending_under(store, seen, came)
    return replace(found, pending=tuple(each for each in found.pending if each.tags == scope.tags))


def engine_of(deployment: Deployment, table: str, send: Callable[[Sent], object], **how: Any) -> Engine:
    """The engine of a deployment, on every store of named streams or tagged events that it has."""
    streams, tagged = dict[str, Streams](), dict[str, TaggedStore]()
    for each in layouts_in(deployment.settings):
        if each.plugin.streams:
            streams[each.name] = getattr(deployment, each.plugin.streams)
        if each.plugin.tagged:
            tagged[each.name] = getattr(deployment, each.plugin.tagged)
    return Engine(driver=deployment.driver, table=table, streams=streams, tagged=tagged, send=send, **how)
