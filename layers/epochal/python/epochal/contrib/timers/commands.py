"""Commands on timers: of a stream, those that are pending; of a store, those that are due, and all armed anew."""

from __future__ import annotations

from functools import partial
from itertools import takewhile
from typing import Any, Final

import click

from epochal.cli import output
from epochal.cli.inputs import Seconds, must_be_named, there
from epochal.cli.target import OpenedStore, on_store, on_streams
from epochal.contrib.timers.care import TimersRebuilt, coming
from epochal.contrib.timers.care import rebuild as rebuild_all
from epochal.contrib.timers.care import take_over as take_over_all
from epochal.contrib.timers.engine import Engine, engine_of
from epochal.contrib.timers.hosting import TimerQueue, read_function_settings
from epochal.contrib.timers.http import shown
from epochal.contrib.timers.protocol import Armed
from epochal.contrib.timers.stores import timers_of
from epochal.errors import InvalidInput
from epochal.model.moments import PER_SECOND, Ticks, format_ticks, from_unix_nanoseconds
from epochal.scheduling import Timer
from epochal.store.streams import Streams


@click.group()
def timers() -> None:
    """Look after timers: appends in the future.

    They are set by `epochal append --later`, and by events of any append.
    """


_TAGS: Final = click.option(
    "--tag", "tags", multiple=True, help="Tag of the timers, instead of STREAM. May be repeated."
)


@timers.command("list")
@click.argument("stream", required=False)
@_TAGS
@on_streams
def list_(streams: Streams, *, stream: str | None, tags: tuple[str, ...]) -> None:
    """Print the pending timers of STREAM or of --tag, by due time.

    The whole stream is read, or all events with the tags.
    """
    if (stream is None) is not bool(tags):
        raise InvalidInput("STREAM", "must be given, or --tag in its place, but not both")
    pending = (
        timers_of(streams.tagged).pending(tags) if stream is None else timers_of(streams).pending(stream)
    )
    output.stream(pending, shown, _line)


@timers.command(short_help="Cancel the pending timer NAME of STREAM or of --tag.")
@click.argument("named", nargs=-1, required=True, metavar="[STREAM] NAME")
@_TAGS
@on_streams
def cancel(streams: Streams, *, named: tuple[str, ...], tags: tuple[str, ...]) -> None:
    """Cancel the pending timer NAME of STREAM or of --tag, and print it; fail if none is pending.

    No timer is pending if it has fired, was cancelled, or was never set.
    """
    *scope, name = named
    if len(scope) != (0 if tags else 1):
        raise InvalidInput("STREAM", "must be given before NAME, or every --tag in its place")
    where = scope[0] if scope else ", ".join(sorted(set(tags)))
    cancelled = (
        timers_of(streams).cancel(where, name) if scope else timers_of(streams.tagged).cancel(tags, name)
    )
    timer = there(cancelled, f"{where}: no timer {name} is pending; the events show what happened to it")
    output.document(shown(timer), [f"{where}: cancelled {name}, which was due at {timer.due[:19]}"])


def _line(timer: Timer) -> str:
    """Return the line that the list of pending timers has for a timer."""
    events = ", ".join(event.type for event in timer.events)
    copied = "  a copy, which fires only in the original stream" if timer.copied else ""
    where = timer.stream or ", ".join(timer.tags)
    return f"{where}  {timer.name}  {timer.due[:19]}  set at {timer.setting}  {events}{copied}"


# Commands on the whole deployment: they list due timers, and arm all timers anew.


@timers.command("due", short_help="List timers that are due, now or --within, and not fired.")
@click.option(
    "--within",
    type=Seconds(min=0),
    default=0.0,
    help="Also list timers that are due within this many seconds.",
)
@click.option(
    "--limit", type=click.IntRange(min=1), default=100, show_default=True, help="Maximum number of timers."
)
@on_store
def due(store: OpenedStore, *, within: float, limit: int) -> None:
    """List at most --limit timers that are due, now or --within, and not fired.

    A cancelled timer is listed, too, until its due time.
    """
    engine = _engine(store, lambda _: None)
    now = from_unix_nanoseconds(engine.now())
    due_timers = takewhile(lambda timer: timer.due <= now + within * PER_SECOND, coming(engine, limit=limit))
    output.stream(due_timers, partial(due_view, now=now), partial(_due_line, now=now))


@timers.command()
@click.option(
    "--function",
    default="",
    help="Function of the deployed reaction. The default follows from the name of the table.",
)
@on_store
def rebuild(store: OpenedStore, *, function: str) -> None:
    """Arm every pending timer again, and print how many there are.

    Run it after the table was restored or lost, or after the stage had no timers for a while. It is safe at any time,
    and can be repeated. It sends wake-ups as the deployed reaction does, with settings that it reads from AWS.
    """
    name = _table(store).removesuffix("-timers")
    send = TimerQueue(
        sqs=store.client("sqs"),
        scheduler=store.client("scheduler"),
        settings=read_function_settings(store.client("lambda"), function or f"{name}-reaction-timers"),
    )
    with output.progress("arming") as tell:
        rebuilt = rebuild_all(
            _engine(store, send), store.feed, lambda progress: tell(_format_progress(progress))
        )
    view = {"settings": rebuilt.settings, "armed": rebuilt.armed, "troubles": rebuilt.troubles}
    output.document(view, [*output.harmless("\n".join(rebuilt.troubles)), _format_progress(rebuilt)])


@timers.command("take-over", short_help="Set timers of copied or imported streams again, to fire here.")
@on_store
def take_over(store: OpenedStore) -> None:
    """Set pending timers of copied or imported streams again, to fire here, and print their number.

    Run it after the last copy, once nothing fires the original timers any more. Each pending timer is set again with
    the same due time. The command is safe at any time, and can be repeated.
    """
    with output.progress("taking over") as tell:
        taken_over = take_over_all(
            _engine(store, lambda _: None), store.feed, lambda progress: tell(_taken(progress))
        )
    view = {"settings": taken_over.settings, "taken": taken_over.armed, "troubles": taken_over.troubles}
    output.document(view, [*output.harmless("\n".join(taken_over.troubles)), _taken(taken_over)])


def _taken(done: TimersRebuilt) -> str:
    """Return the progress line of a take-over: how many timers of copies were set anew."""
    return f"{done.armed:,} of {done.settings:,} timers of copies were pending, and are set again"


def _engine(store: OpenedStore, send: Any) -> Engine:
    """Make an engine on the opened deployment, with `send` to deliver wake-ups."""
    return engine_of(store.deployment, _table(store), send)


def _table(store: OpenedStore) -> str:
    """Return the name of the deployment's table of timers; raise `InvalidInput` if it is not named.

    Raises:
        InvalidInput: the settings name no such table.
    """
    table = store.deployment.settings.timers_table
    must_be_named("is needed for timers", timers_table=table)
    return table


def _format_progress(done: TimersRebuilt) -> str:
    """Return the progress line of a rebuild: how many timers were armed."""
    return f"{done.armed:,} of {done.settings:,} timers that were set are pending and armed"


def due_view(timer: Armed, now: Ticks) -> dict[str, Any]:
    """Return an armed timer as JSON: due time, seconds late, layout, and the event that set it."""
    members = {"stream": timer.stream, "index": timer.place}
    place = members if timer.stream else {"tags": timer.tags, "id": timer.place}
    late = round((now - timer.due) / PER_SECOND, 3)
    return {"due": format_ticks(timer.due), "late": late, "layout": timer.layout, **place}


def _due_line(timer: Armed, now: Ticks) -> str:
    """Return the line that the list of due timers has for an armed timer."""
    late = (now - timer.due) / PER_SECOND
    when = f"{late:,.0f} s late" if late >= 0 else f"in {-late:,.0f} s"
    return f"{format_ticks(timer.due)}  {timer.stream or ', '.join(timer.tags)}@{timer.place}  {when}"


COMMANDS: Final = (timers,)
