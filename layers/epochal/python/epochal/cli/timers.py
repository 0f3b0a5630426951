"""Commands about timers: which are due and have not fired, and all of them armed anew."""

from __future__ import annotations

from functools import partial
from itertools import takewhile
from typing import Any

import click

from epochal.cli import output
from epochal.cli.errors import must_be_named
from epochal.cli.inputs import Seconds
from epochal.cli.target import OpenedStore, on_store
from epochal.hosting.timers import TimerQueue, told_to_function
from epochal.model.events import PER_SECOND, Ticks, format_ticks, from_unix_nanoseconds
from epochal.timers.care import TimersRebuilt, coming
from epochal.timers.care import rebuild as rebuild_all
from epochal.timers.engine import Engine, engine_of
from epochal.timers.items import Armed


@click.group()
def timers() -> None:
    """Timers: appends in the future."""


@timers.command("due")
@click.option(
    "--within", type=Seconds(min=0), default=0.0, help="Seconds; what is due by then is listed too."
)
@click.option("--limit", type=click.IntRange(min=1), default=100, show_default=True, help="Timers at most.")
@on_store
def due(store: OpenedStore, *, within: float, limit: int) -> None:
    """List timers that are due and have not fired.

    One that was called off since it was set is listed, too, until its time has come.
    """
    engine = _engine(store, lambda _: None)
    now = from_unix_nanoseconds(engine.now())
    found = takewhile(lambda each: each.due <= now + within * PER_SECOND, coming(engine, limit=limit))
    output.stream(found, partial(timer_view, now=now), partial(_line, now=now))


@timers.command()
@click.option(
    "--function", default="", help="That of the deployed reaction; by the table's name if it is not given."
)
@on_store
def rebuild(store: OpenedStore, *, function: str) -> None:
    """Arm every timer that is pending, as the feed and the streams tell.

    After the table was restored, or lost, or the stage had no timers for a while. Safe beside everything else, and
    again. It sends wake-ups as the deployed reaction does, and asks AWS how.
    """
    name = store.deployment.settings.timers_table.removesuffix("-timers")
    send = TimerQueue(
        sqs=store.client("sqs"),
        scheduler=store.client("scheduler"),
        settings=told_to_function(store.client("lambda"), function or f"{name}-reaction-timers"),
    )
    with output.progress("arming") as tell:
        done = rebuild_all(_engine(store, send), store.feed, lambda each: tell(_armed(each)))
    view = {"settings": done.settings, "armed": done.armed, "troubles": done.troubles}
    output.document(view, [*output.harmless("\n".join(done.troubles)), _armed(done)])


def _engine(store: OpenedStore, send: Any) -> Engine:
    table = store.deployment.settings.timers_table
    must_be_named("is needed for timers", timers_table=table)
    return engine_of(store.deployment, table, send)


def _armed(done: TimersRebuilt) -> str:
    return f"{done.armed:,} of {done.settings:,} timers that were set are pending, and armed"


def timer_view(timer: Armed, now: Ticks) -> dict[str, Any]:
    """A timer that waits, as JSON."""
    named = {"stream": timer.stream, "index": timer.place}
    place = named if timer.stream else {"tags": timer.tags, "id": timer.place}
    late = round((now - timer.due) / PER_SECOND, 3)
    return {"due": format_ticks(timer.due), "late": late, "layout": timer.layout, **place}


def _line(timer: Armed, now: Ticks) -> str:
    late = (now - timer.due) / PER_SECOND
    when = f"{late:,.0f} s late" if late >= 0 else f"in {-late:,.0f} s"
    return f"{format_ticks(timer.due)}  {timer.stream or ', '.join(timer.tags)}@{timer.place}  {when}"
