"""Items of timers, and wake-ups: where a timer that is set waits, and what says that it may be due.

This outlives the code (FORMATS §9). An item says that a timer may be pending, and nothing more: the stream tells.

    p    the shard: two digits, of 16
    s    due#layout#stream#index      of a timer that is set in a named stream
         due#layout##id               of one that is set under tags alone
    t    its tags, where it has no stream

Due times are in order as text. So what is due by now is the beginning of each shard, however much waits behind it, and
however old it is: 16 queries find all that was missed. A stream is in one shard, and its timers are in order there.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from epochal.errors import CorruptData, InvalidInput
from epochal.model.events import END, PER_SECOND, Ticks, format_ticks, parse_time
from epochal.plan.ops import Query
from epochal.plan.values import Item, Key, decodes, read_list, sequence, text

SHARDS: Final = 16
"""Of the whole table, for good: a partition of DynamoDB writes 1,000 items a second, and a wake-up is of one shard, so
that a million timers of one minute are set and fired 16 side by side. A sweep has as many queries."""

MINUTE: Final = 60 * PER_SECOND

NEAR: Final = Ticks(12 * MINUTE)
"""What is due within so long has a message of its own, which a queue keeps back for 15 minutes at most. What is farther
away shares the schedule of its slot, a minute of a shard, and that cannot be at work yet."""


GRACE: Final = Ticks(3 * MINUTE)
"""What has been due for so long, a sweep takes for missed: a wake-up that failed has come again by then."""


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Armed:
    """A timer that may be pending. They are in order of their due times.

    Attributes:
        layout: of the store that has it.
        stream: in which it was set; empty where it is under tags alone.
        place: of its setting: the index in the stream, or the event's id.
        tags: of a timer without a stream.
    """

    due: Ticks
    layout: str
    stream: str
    place: int | str
    tags: tuple[str, ...] = ()

    @property
    def scope(self) -> tuple[str, str, tuple[str, ...]]:
        """What its state is a fold of: timers of one scope are fired together."""
        return self.layout, self.stream, self.tags

    @property
    def shard(self) -> int:
        """The shard of its scope."""
        name = "\0".join((self.layout, self.stream, *self.tags))
        return hashlib.sha256(name.encode()).digest()[0] % SHARDS

    @property
    def key(self) -> Key:
        """Of its item."""
        sort = f"{format_ticks(self.due)}#{self.layout}#{self.stream}#{self.place}"
        return {"p": text(f"{self.shard:02d}"), "s": text(sort)}

    @property
    def item(self) -> Item:
        """Its item."""
        return {**self.key, "t": sequence(map(text, self.tags))} if self.tags else self.key


@decodes("timers")
def read_armed(item: Item) -> Armed:
    """A timer of an item; raises `CorruptData`."""
    due, layout, stream, place = item["s"]["S"].split("#")
    tags = tuple(each["S"] for each in read_list(item, "t"))
    return Armed(
        due=parse_time(due),
        layout=layout,
        stream=stream,
        place=int(place) if stream else place,
        tags=tags,
    )


def due(table: str, shard: int, since: Ticks, until: Ticks, *, limit: int, after: Key | None = None) -> Query:
    """A page of what is due from `since` on and before `until`. It may lag, and costs half for that: what a slot's
    wake-up or a sweep is for was put minutes before it; what was put since has a message of its own.
    """
    # Nothing of the moment `until` is below its own text, and nothing of an earlier one is above it.
    bounds = text(format_ticks(since)), text(format_ticks(until))
    partition = ("p", text(f"{shard:02d}"))
    return Query(
        table=table, partition=partition, sort=("s", *bounds), limit=limit, after=after, consistent=False
    )


BEGINNING: Final = Ticks(0)
NEVER: Final = Ticks(END - 1)
"""Earlier than any timer is due, and later."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wake:
    """Says that timers may be due: one, or those of a shard that are due from `since` on and before `until`."""

    shard: int
    since: Ticks
    until: Ticks
    timer: Armed | None = None

    @classmethod
    def of(cls, timer: Armed) -> Wake:
        """Of one timer."""
        return cls(shard=timer.shard, since=timer.due, until=Ticks(timer.due + 1), timer=timer)

    @classmethod
    def of_slot(cls, timer: Armed) -> Wake:
        """Of all timers of a shard and a minute, among which is this one."""
        minute = Ticks(timer.due - timer.due % MINUTE)
        return cls(shard=timer.shard, since=minute, until=Ticks(minute + MINUTE))

    @property
    def name(self) -> str:
        """Of a slot's schedule, which is one for all timers of the slot: `20261207T0930-03`."""
        minute = format_ticks(self.since)[:16].replace("-", "").replace(":", "")
        return f"{minute}-{self.shard:02d}"

    @property
    def body(self) -> str:
        """As a message has it."""
        if self.timer is not None:
            return json.dumps({"timer": self.timer.key["s"]["S"], "tags": self.timer.tags})
        bounds = {"since": format_ticks(self.since), "until": format_ticks(self.until)}
        return json.dumps({"shard": self.shard, **bounds})


def read_wake_up(body: str) -> Wake:
    """A wake-up of a message; raises `InvalidInput`."""
    try:
        told = json.loads(body)
        if "timer" in told:
            tags = [text(each) for each in told["tags"]]
            return Wake.of(read_armed({"s": text(told["timer"]), "t": sequence(tags)}))
        since, until = (parse_time(told[name], name) for name in ("since", "until"))
        return Wake(shard=int(told["shard"]), since=since, until=until)
    except (CorruptData, AttributeError, KeyError, TypeError, ValueError) as error:
        raise InvalidInput("body", f"is no wake-up of timers: {error!r}") from error


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """Wake-ups to be sent.

    Attributes:
        near: a message each, with the seconds that it is to be kept back; never merged with another.
        far: of slots: a schedule each for its `since`, by its `name`. One that is there already does.
    """

    near: tuple[tuple[Wake, int], ...] = ()
    far: tuple[Wake, ...] = ()

    @classmethod
    def arming(cls, timers: Collection[Armed], now: Ticks) -> Sent:
        """What wakes these timers when they are due."""
        slots = {timer: Wake.of_slot(timer) for timer in timers}
        far = {slot: None for slot in slots.values() if slot.since - now > NEAR}
        near = (Wake.of(timer) for timer, slot in slots.items() if slot not in far)
        return cls(near=tuple((each, seconds_until(each.since, now)) for each in near), far=tuple(far))


def seconds_until(moment: Ticks, now: Ticks) -> int:
    """Whole seconds, not too few, that a message is to be kept back; at most those of a near one and a minute. What is
    farther away, by a clock that is behind, is sent again until then: its schedule may be the one that is at work.
    """
    return -(-min(max(moment - now, 0), NEAR + MINUTE) // PER_SECOND)
