"""Reactions: how far their groups are behind, and what they have parked, which is replayed or discarded from here."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from itertools import takewhile
from typing import Any, Final

from epochal.care.arrivals import arrivals
from epochal.care.status import GroupStanding, PartitionStanding, groups_of, standings
from epochal.contrib.console.page import Plot, Services, clock, plot, whole
from epochal.contrib.timers.care import coming
from epochal.contrib.timers.engine import engine_of
from epochal.contrib.timers.protocol import Armed
from epochal.deployment import Deployment
from epochal.errors import BeyondTheEnd, InvalidInput, InvalidRequest, Refused, Unavailable
from epochal.index.groups import GroupState
from epochal.layout.port import layout_named, partition_of
from epochal.lazy_dataclasses import dataclass
from epochal.model.events import PER_SECOND, Ticks, format_ticks, from_unix_nanoseconds
from epochal.reactions.handling import Member
from epochal.reactions.parking import ParkedStream, Parking
from epochal.reactions.reaction import Start
from epochal.reactions.reactor import Reactor
from epochal.reactions.steering import start_of

# Writes: what a reaction has parked is handled after all, or given up; each is asked for twice.

SECONDS: Final = 30.0
"""A replay here ends after so long; what it has not got to stays parked, and is asked for again."""

ACTS: Final = ("replay", "skip", "discard")


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What is to be done: `act` on a stream that `group` has parked, whose first unhandled event is at `index`."""

    act: str
    group: str
    partition: int
    stream: str
    index: int

    @classmethod
    def of(cls, arguments: Mapping[str, str]) -> Asked:
        """Read it; raises `InvalidInput`."""
        act = arguments.get("act", "")
        if act not in ACTS:
            raise InvalidInput("act", f"must be one of {', '.join(ACTS)}")
        return cls(
            act=act,
            group=arguments.get("group", ""),
            partition=whole(arguments, "partition", -1, 2**31),
            stream=arguments.get("stream", ""),
            index=whole(arguments, "index", -1, 2**53),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled:
    """What came of it: `next` is the first index that is not handled, `cause` what a replay failed at again."""

    next: int
    unparked: bool
    cause: str = ""


def ask(services: Services, deployment: Deployment, arguments: Mapping[str, str]) -> dict[str, Any]:
    """What would be done, by whom, and what it did not get past."""
    asked = Asked.of(arguments)
    return {"asked": asked, "cause": _found(deployment, asked).cause, "by": handler_of(services, asked.group)}


def settle(services: Services, deployment: Deployment, arguments: Mapping[str, str]) -> dict[str, Any]:
    """Do it.

    Raises:
        InvalidInput: the stream is not parked there any more, or nobody can replay it.
        Refused: the credentials may not.
    """
    asked = Asked.of(arguments)
    _found(deployment, asked)
    if asked.act == "replay":
        return {"asked": asked, "settled": _replay(services, deployment, asked)}
    parking = Parking.of(asked.group, deployment.feed)
    if asked.act == "skip":
        settled = Settled(next=parking.skip(asked.partition, asked.stream, asked.index), unparked=False)
    else:
        done = parking.discard(asked.partition, asked.stream)
        settled = Settled(next=done.next, unparked=done.unparked)
    return {"asked": asked, "settled": settled}


def handler_of(services: Services, group: str) -> str:
    """Who handles a replay: a function's name, `here`, or nobody."""
    if group in services.reactions:
        return "here"
    return f"{services.prefix}-reaction-{group}" if services.invoke is not None else ""


def _found(deployment: Deployment, asked: Asked) -> ParkedStream:
    """The stream as it is parked now: a page may be old."""
    member = Parking.of(asked.group, deployment.feed).reactor.member
    state = member.load(asked.partition).state or GroupState()
    index = state.parked.get(asked.stream)
    if index is None:
        raise InvalidInput("stream", f"{asked.stream!r} is not parked by {asked.group!r}")
    if index != asked.index:
        raise InvalidInput("index", f"the stream waits at {index} by now, not at {asked.index}: look again")
    causes = member.causes(asked.partition, GroupState(parked={asked.stream: index}))
    return ParkedStream(
        partition=asked.partition, stream=asked.stream, index=index, cause=causes.get(asked.stream)
    )


def _replay(services: Services, deployment: Deployment, asked: Asked) -> Settled:
    reaction = services.reactions.get(asked.group)
    if reaction is not None:
        reactor = Reactor(member=Member(reaction=reaction, reader=deployment.feed))
        done = Parking(reactor=reactor).replay(asked.partition, asked.stream, seconds=SECONDS)
        return Settled(
            next=done.next, unparked=done.unparked, cause="" if done.failure is None else done.failure.cause
        )
    if services.invoke is None:
        raise InvalidInput("act", f"must be another: nobody here can handle events for {asked.group!r}")
    payload = {"command": "replay", "partition": asked.partition, "stream": asked.stream}
    return _answered(services.invoke(handler_of(services, asked.group), payload))


def _answered(told: Mapping[str, Any]) -> Settled:
    """The answer of a function, whose errors are answers too (`hosting.commands`)."""
    match told.get("error"), str(told.get("detail", "")):
        case None, _:
            failure = told.get("failure") or {}
            return Settled(next=told["next"], unparked=told["unparked"], cause=failure.get("cause", ""))
        case "Refused", detail:
            raise Refused("the function's replay", detail)
        case "Unavailable", detail:
            raise Unavailable(detail)
        case error, detail:
            raise InvalidRequest("replay", str(error), detail)


# Steering a group: asked for twice, and a reset says first what it does.


def ask_group(deployment: Deployment, arguments: Mapping[str, str]) -> dict[str, Any]:
    """What would be done to a group, and who runs it now."""
    act, group, start = _steering(arguments)
    planned = deployment.groups.reset(group, start, dry_run=True) if start is not None else []
    asked = {name: arguments.get(name, "") for name in ("to", "partition", "like")}
    members = [] if act == "begin" else deployment.groups.members(group)
    return {"act": act, "group": group, "planned": planned, "members": members, **asked}


def steer(services: Services, deployment: Deployment, arguments: Mapping[str, str]) -> dict[str, Any]:
    """Do it. A deployed function is woken, or else goes on with its next wake-up."""
    act, group, start = _steering(arguments)
    if act == "reset" and start is None:
        raise InvalidInput("to", "must say where to")
    if start is not None:
        partitions = [each.partition for each in deployment.groups.reset(group, start)]
    elif act == "begin":
        partitions = deployment.groups.begin(group, like=arguments.get("like", ""))
    else:
        partitions = getattr(deployment.groups, act)(group)
    if services.wake is not None and act in ("resume", "reset", "begin"):
        with suppress(Refused, Unavailable, InvalidRequest):
            services.wake(group, deployment.feed.partitions())
    return {"act": act, "group": group, "partitions": partitions}


def _steering(arguments: Mapping[str, str]) -> tuple[str, str, Start | None]:
    """What is to be done to which group, and where a reset goes, once that is said."""
    act, group, to = (arguments.get(name, "") for name in ("act", "group", "to"))
    if act not in ("pause", "resume", "reset", "begin", "delete"):
        raise InvalidInput("act", "must be one of pause, resume, reset, begin, delete")
    if act != "reset" or not to:
        return act, group, None
    partitions = [whole(arguments, "partition", 0, 2**31)] if arguments.get("partition") else []
    return act, group, start_of(to, partitions)


# Reactions: how far their groups are behind, and what they have parked.


def show(services: Services, deployment: Deployment, arguments: Mapping[str, str]) -> dict[str, Any]:
    """The groups that `group` names, with commas, or those that are known; with `find`, all that there are, which reads
    the whole index table.
    """
    table = deployment.settings.index_table
    named = [each.strip() for each in arguments.get("group", "").split(",") if each.strip()]
    finding = "find" in arguments
    groups = groups_of(deployment.driver, table) if finding else named or services.groups()
    found = list(standings(deployment.driver, table, groups)) if groups else []
    rows = [(each, group) for each in found for group in each.groups]
    now = services.now() / 1e9
    return {
        "group": ", ".join(groups),
        "rows": [(at, group, oldest(deployment, at, group, now)) for at, group in rows],
        "indexer": services.indexer_states(found),
        "plots": _plots(services, [group for _, group in rows], now),
        "parked": _parked(deployment, rows),
        "known": not named and not finding,
        "finding": finding,
    }


def oldest(deployment: Deployment, at: PartitionStanding, group: GroupStanding, now: float) -> float | None:
    """Seconds since the first entry was written that the group has not handled; None where there is none."""
    if not group.behind:
        return None
    table = deployment.settings.index_table
    try:
        first = next(arrivals(deployment.driver, table, at.partition, group.checkpoint), None)
    except BeyondTheEnd:  # the index has been rebuilt since
        return None
    return None if first is None else max(0.0, now - first.seconds)


def _plots(services: Services, groups: list[GroupStanding], now: float) -> list[Plot]:
    """Of each group that was looked at more than once, how far it was behind."""
    behind = Counter[str]()
    for each in groups:
        behind[each.group] += each.behind or 0
    looks = {name: services.lags.add(name, now, entries) for name, entries in behind.items()}
    return [
        plot(f"Entries that {name} was behind", [(clock(at), entries) for at, entries in seen])
        for name, seen in looks.items()
        if len(seen) > 1
    ]


def _parked(
    deployment: Deployment, rows: list[tuple[PartitionStanding, GroupStanding]]
) -> dict[str, list[ParkedStream]]:
    parked: dict[str, list[ParkedStream]] = {}
    for at, group in rows:
        if group.parked:
            found = Parking.of(group.group, deployment.feed).streams(at.partition)
            parked.setdefault(group.group, []).extend(found)
    return parked


# Timers: what is due and has not fired, how late it is, and what comes next.

MOST: Final = 1_000
"""Timers of each list; reading them takes a read unit for some hundred."""


def show_timers(services: Services, deployment: Deployment, arguments: Mapping[str, str]) -> dict[str, Any]:
    """What is due, by time and by stream; and what comes next. One that was called off is here until its time."""
    count, table = whole(arguments, "items", 100, MOST), deployment.settings.timers_table
    if not table:
        return {"table": "", "items": count}
    now = from_unix_nanoseconds(services.now())
    engine = engine_of(deployment, table, lambda _: None)
    late = list(takewhile(lambda each: each.due <= now, coming(engine, limit=count + 1)))
    onward = coming(engine, since=Ticks(now + 1), limit=count)
    return {
        "table": table,
        "items": count,
        "more": len(late) > count,
        "late": [_row(deployment, each, now) for each in late[:count]],
        "coming": [_row(deployment, each, now) for each in onward],
        "streams": Counter(each.stream or ", ".join(each.tags) for each in late[:count]).most_common(10),
    }


def _row(deployment: Deployment, timer: Armed, now: Ticks) -> dict[str, Any]:
    """A timer, and where its stream is shown."""
    layout = layout_named(timer.layout)
    partitions = deployment.settings.partitions(layout.partitions)
    return {
        "timer": timer,
        "due": format_ticks(timer.due),
        "late": (now - timer.due) / PER_SECOND,
        "partition": partition_of(timer.stream, partitions, layout.base),
    }
