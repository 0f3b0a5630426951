"""Commands on timers: those of a stream that are pending, and calling one off."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Final

import click

from epochal.cli import output
from epochal.cli.errors import TimerMissing
from epochal.cli.target import on_streams
from epochal.errors import InvalidInput
from epochal.http.timers import shown
from epochal.store.streams import Streams
from epochal.store.timers import At, Timer

_UNITS: Final = {"w": "weeks", "d": "days", "h": "hours", "m": "minutes", "s": "seconds"}
_SPAN: Final = re.compile(r"(\d{1,9})([wdhms])", re.ASCII)


@click.group()
def timers() -> None:
    """Look after timers: appends in the future.

    They are set by `epochal append --later`, and by events of any append.
    """


@timers.command("list")
@click.argument("stream")
@on_streams
def list_(streams: Streams, *, stream: str) -> None:
    """Print the pending timers of STREAM, by their due times.

    All of the stream is read.
    """
    output.stream(streams.timers.pending(stream), shown, _line)


@timers.command()
@click.argument("stream")
@click.argument("name")
@on_streams
def cancel(streams: Streams, *, stream: str, name: str) -> None:
    """Call off the timer NAME of STREAM: it never fires.

    An error where none is pending: it has fired, was called off, or never was.
    """
    timer = streams.timers.cancel(stream, name)
    if timer is None:
        raise TimerMissing(stream, name)
    output.document(shown(timer), [f"{stream}: {name} is called off, which was due at {timer.due[:19]}"])


def later_of(text: str) -> tuple[str, At]:
    """The name of a timer and when it is due, written `reminder=14d`, or with a moment in ISO 8601."""
    name, equals, when = text.partition("=")
    if not equals:
        raise InvalidInput("--later", "must be NAME=WHEN: reminder=14d, reminder=2026-06-01T09:00:00Z")
    span = _SPAN.fullmatch(when)
    return name, timedelta(**{_UNITS[span[2]]: int(span[1])}) if span else when


def _line(timer: Timer) -> str:
    events = ", ".join(event.type for event in timer.events)
    return f"{timer.stream}  {timer.name}  {timer.due[:19]}  set at {timer.setting}  {events}"
