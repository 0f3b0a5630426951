"""Reactions: how far their groups are behind, and what they have parked, which is replayed or discarded from here."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from itertools import takewhile
from typing import Any, Final

from epochal.care.arrivals import arrivals
from epochal.care.status import GroupStanding, PartitionStanding, groups_of, standings
from epochal.contrib.console.events_behind import EventsBehind, events_behind
from epochal.contrib.console.page import Plot, Services, clock, plot, whole
from epochal.contrib.timers.care import coming
from epochal.contrib.timers.engine import engine_of
from epochal.contrib.timers.protocol import Armed
from epochal.deployment import Deployment
from epochal.errors import BeyondTheEnd, InvalidInput, InvalidRequest, Refused, Unavailable
from epochal.index.group_state import GroupState
from epochal.layout.registry import layout_named, partition_of
from epochal.lazy_dataclasses import dataclass
from epochal.model.moments import PER_SECOND, Ticks, format_ticks, from_unix_nanoseconds
from epochal.reactions.definition import Start
from epochal.reactions.group_member import Member
from epochal.reactions.parking import ParkedStream, Parking
from epochal.reactions.reactor import Reactor
from epochal.reactions.steering import start_of

# Writes: parked events are handled after all, skipped or discarded; each write is confirmed on a second page.

SECONDS: Final = 30.0
"""Seconds after which a replay on this machine ends; events that it has not reached stay parked."""

ACTS: Final = ("replay", "skip", "discard")
"""What can be done with a parked stream."""

STEERING_ACTS: Final = ("pause", "resume", "reset", "begin", "delete")
"""What can be done with a group."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ParkedAction:
    """A requested action on a stream that a group has parked.

    Attributes:
        act: `replay`, `skip` or `discard`.
        index: index of the stream's first unhandled event, as the page showed it.
    """

    act: str
    group: str
    partition: int
    stream: str
    index: int

    @classmethod
    def of(cls, arguments: Mapping[str, str]) -> ParkedAction:
        """Return the action that the arguments of a page name; raise `InvalidInput` if they name none.

        Raises:
            InvalidInput: the action is unknown, or a number is none.
        """
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
class ActionResult:
    """Result of an action on a parked stream: next index, whether unparked, error of a replay.

    Attributes:
        next: index of the first event that is not handled.
        unparked: whether the stream is no longer parked.
        cause: error at which a replay failed again; empty for none.
    """

    next: int
    unparked: bool
    cause: str = ""


def show_confirmation(
    services: Services, deployment: Deployment, arguments: Mapping[str, str]
) -> dict[str, Any]:
    """Return data of the page that confirms an action on a parked stream: its cause, what replays it.

    Raises:
        InvalidInput: the stream is not parked there any more.
    """
    action = ParkedAction.of(arguments)
    return {
        "action": action,
        "cause": _find_parked_stream(deployment, action).cause,
        "by": handler_of(services, action.group),
    }


def apply_parked_action(
    services: Services, deployment: Deployment, arguments: Mapping[str, str]
) -> dict[str, Any]:
    """Replay, skip or discard events of a parked stream, and return the action with its result.

    Raises:
        InvalidInput: the stream is not parked there any more, or nobody can replay it.
        Refused: the credentials do not permit the action.
    """
    action = ParkedAction.of(arguments)
    _find_parked_stream(deployment, action)
    if action.act == "replay":
        return {"action": action, "result": _replay(services, deployment, action)}
    parking = Parking.of(action.group, deployment.feed)
    if action.act == "skip":
        result = ActionResult(
            next=parking.skip(action.partition, action.stream, action.index), unparked=False
        )
    else:
        discarded = parking.discard(action.partition, action.stream)
        result = ActionResult(next=discarded.next, unparked=discarded.unparked)
    return {"action": action, "result": result}


def handler_of(services: Services, group: str) -> str:
    """Return what replays events for a group: a function's name, `here`, or empty for nothing."""
    if group in services.reactions:
        return "here"
    return f"{services.prefix}-reaction-{group}" if services.invoke is not None else ""


def _find_parked_stream(deployment: Deployment, request: ParkedAction) -> ParkedStream:
    """Return the parked stream that an action names; raise `InvalidInput` if that is out of date.

    It is read in its present state: a page may be old.

    Raises:
        InvalidInput: the group has not parked the stream, or not at this index.
    """
    member = Parking.of(request.group, deployment.feed).reactor.member
    state = member.load(request.partition).state or GroupState()
    index = state.parked.get(request.stream)
    if index is None:
        raise InvalidInput("stream", f"{request.stream!r} is not parked by {request.group!r}")
    if index != request.index:
        raise InvalidInput(
            "index", f"the stream now waits at {index}, not at {request.index}: list parked streams again"
        )
    causes = member.causes(request.partition, GroupState(parked={request.stream: index}))
    return ParkedStream(
        partition=request.partition, stream=request.stream, index=index, cause=causes.get(request.stream)
    )


def _replay(services: Services, deployment: Deployment, request: ParkedAction) -> ActionResult:
    """Replay a parked stream by a reaction here, or else by its deployed function; return the result.

    Raises:
        InvalidInput: there is neither.
    """
    reaction = services.reactions.get(request.group)
    if reaction is not None:
        reactor = Reactor(member=Member(reaction=reaction, reader=deployment.feed))
        replayed = Parking(reactor=reactor).replay(request.partition, request.stream, seconds=SECONDS)
        return ActionResult(
            next=replayed.next,
            unparked=replayed.unparked,
            cause="" if replayed.failure is None else replayed.failure.cause,
        )
    if services.invoke is None:
        raise InvalidInput(
            "act", f"must not be replay: this console cannot handle events for {request.group!r}"
        )
    payload = {"command": "replay", "partition": request.partition, "stream": request.stream}
    return _read_replay_answer(services.invoke(handler_of(services, request.group), payload))


def _read_replay_answer(answer: Mapping[str, Any]) -> ActionResult:
    """Turn a function's answer to a replay into a result, and its error into an exception.

    A function returns errors in its answers, too (`hosting.commands`).

    Raises:
        Refused: the function's credentials do not permit the replay.
        Unavailable: a service does not respond.
        InvalidRequest: any other error.
    """
    match answer.get("error"), str(answer.get("detail", "")):
        case None, _:
            failure = answer.get("failure") or {}
            return ActionResult(
                next=answer["next"], unparked=answer["unparked"], cause=failure.get("cause", "")
            )
        case "Refused", detail:
            raise Refused("the function's replay", detail)
        case "Unavailable", detail:
            raise Unavailable(detail)
        case error, detail:
            raise InvalidRequest("replay", str(error), detail)


# Steering a group: confirmed on a second page, which shows what a reset does.


def show_group_confirmation(deployment: Deployment, arguments: Mapping[str, str]) -> dict[str, Any]:
    """Return data of the page that confirms an action on a group: planned reset, running members."""
    act, group, start = _steering(arguments)
    planned = deployment.groups.reset(group, start, dry_run=True) if start is not None else []
    values = {name: arguments.get(name, "") for name in ("to", "partition", "like")}
    members = [] if act == "begin" else deployment.groups.members(group)
    return {"act": act, "group": group, "planned": planned, "members": members, **values}


def steer(services: Services, deployment: Deployment, arguments: Mapping[str, str]) -> dict[str, Any]:
    """Pause, resume, reset, begin or delete a group, and return the affected partitions.

    After a resume, reset or begin a deployed function is woken, or else goes on with its next wake-up.

    Raises:
        InvalidInput: the action is unknown, or a reset has no start.
    """
    act, group, start = _steering(arguments)
    if act == "reset" and start is None:
        raise InvalidInput("to", "must be given: `beginning`, `tail`, a time or a checkpoint")
    if start is not None:
        partitions = [reset.partition for reset in deployment.groups.reset(group, start)]
    elif act == "begin":
        partitions = deployment.groups.begin(group, like=arguments.get("like", ""))
    else:
        partitions = getattr(deployment.groups, act)(group)
    if services.wake is not None and act in ("resume", "reset", "begin"):
        with suppress(Refused, Unavailable, InvalidRequest):
            services.wake(group, deployment.feed.partitions())
    return {"act": act, "group": group, "partitions": partitions}


def _steering(arguments: Mapping[str, str]) -> tuple[str, str, Start | None]:
    """Read the action, the group and the start of a reset, if there is one, from the arguments.

    Raises:
        InvalidInput: the action is unknown, or the start is none.
    """
    act, group, to = (arguments.get(name, "") for name in ("act", "group", "to"))
    if act not in STEERING_ACTS:
        raise InvalidInput("act", f"must be one of {', '.join(STEERING_ACTS)}")
    if act != "reset" or not to:
        return act, group, None
    partitions = [whole(arguments, "partition", 0, 2**31)] if arguments.get("partition") else []
    return act, group, start_of(to, partitions)


# Reactions: the lag of their groups, and the streams that they have parked.


def show(services: Services, deployment: Deployment, arguments: Mapping[str, str]) -> dict[str, Any]:
    """Return the lag, plots and parked streams of the chosen groups, and the indexer's state.

    `group` names groups, separated by commas; without it they are the known ones. With `find` they are all groups,
    which takes a read of the whole index table.
    """
    table = deployment.settings.index_table
    names = [name.strip() for name in arguments.get("group", "").split(",") if name.strip()]
    finding = "find" in arguments
    groups = groups_of(deployment.driver, table) if finding else names or services.groups()
    partitions = list(standings(deployment.driver, table, groups)) if groups else []
    rows = [(standing, group) for standing in partitions for group in standing.groups]
    now = services.now() / 1e9
    behind = events_behind(services, deployment.groups, partitions)
    return {
        "group": ", ".join(groups),
        "rows": [
            (
                partition,
                group,
                oldest(deployment, partition, group, now)
                if behind[group.group, partition.partition].count
                else None,
            )
            for partition, group in rows
        ],
        "indexer": services.indexer_states(partitions),
        "plots": _plots(services, behind, now),
        "behind": behind,
        "parked": _parked(deployment, rows),
        "known": not names and not finding,
        "finding": finding,
    }


def oldest(
    deployment: Deployment, partition: PartitionStanding, group: GroupStanding, now: float
) -> float | None:
    """Return the seconds since a group's first unhandled entry was written; None if there is none.

    None as well where the group's checkpoint is beyond the end of a rebuilt index.
    """
    if not group.behind:
        return None
    table = deployment.settings.index_table
    try:
        first = next(arrivals(deployment.driver, table, partition.partition, group.checkpoint), None)
    except BeyondTheEnd:  # the index has been rebuilt since the checkpoint
        return None
    return None if first is None else max(0.0, now - first.seconds)


def _plots(services: Services, behind: Mapping[tuple[str, int], EventsBehind], now: float) -> list[Plot]:
    """Record how many events each group is behind; return plots of groups with more than one record."""
    totals = Counter[str]()
    for (name, _), events in behind.items():
        totals[name] += events.count or 0
    looks = {name: services.lags.add(name, now, count) for name, count in totals.items()}
    return [
        plot(
            f"Events that {name} was behind",
            [(clock(second), count) for second, count in looks_at_group],
        )
        for name, looks_at_group in looks.items()
        if len(looks_at_group) > 1
    ]


def _parked(
    deployment: Deployment, rows: list[tuple[PartitionStanding, GroupStanding]]
) -> dict[str, list[ParkedStream]]:
    """Return the parked streams of each group that has any, by the name of the group."""
    parked: dict[str, list[ParkedStream]] = {}
    for partition, group in rows:
        if group.parked:
            streams = Parking.of(group.group, deployment.feed).streams(partition.partition)
            parked.setdefault(group.group, []).extend(streams)
    return parked


# Timers: those that are due and have not fired, with their delays, and the next ones.

MOST: Final = 1_000
"""Timers of each list, at most; some hundred of them take a read unit."""


def show_timers(services: Services, deployment: Deployment, arguments: Mapping[str, str]) -> dict[str, Any]:
    """Return the overdue timers, their number by stream, and the next timers.

    A timer that was cancelled is listed until its time has come.
    """
    count, table = whole(arguments, "items", 100, MOST), deployment.settings.timers_table
    if not table:
        return {"table": "", "items": count}
    now = from_unix_nanoseconds(services.now())
    engine = engine_of(deployment, table, lambda _: None)
    late = list(takewhile(lambda timer: timer.due <= now, coming(engine, limit=count + 1)))
    onward = coming(engine, since=Ticks(now + 1), limit=count)
    return {
        "table": table,
        "items": count,
        "more": len(late) > count,
        "late": [_row(deployment, timer, now) for timer in late[:count]],
        "coming": [_row(deployment, timer, now) for timer in onward],
        "streams": Counter(timer.stream or ", ".join(timer.tags) for timer in late[:count]).most_common(10),
    }


def _row(deployment: Deployment, timer: Armed, now: Ticks) -> dict[str, Any]:
    """Return a timer with its due time, its delay in seconds, and the partition of its stream."""
    layout = layout_named(timer.layout)
    partitions = deployment.settings.partitions(layout.partitions)
    return {
        "timer": timer,
        "due": format_ticks(timer.due),
        "late": (now - timer.due) / PER_SECOND,
        "partition": partition_of(timer.stream, partitions, layout.base),
    }
