"""Printing: JSON for programs, lines for people. Progress goes to standard error, so that pipes stay clean."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from io import TextIOWrapper
from typing import Any, Final, NoReturn, TypeVar

import click
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from epochal.codec import json
from epochal.feed.events import FeedEvent
from epochal.feed.results import FeedItem
from epochal.http import appends, bodies, events, feed_items
from epochal.http.answers import capacity
from epochal.model.bodies import Body, Claim
from epochal.model.events import Recorded
from epochal.model.outcomes import Appended
from epochal.model.position_text import write_position
from epochal.model.quantities import quantity
from epochal.plan.values import Units
from epochal.store.reading import StreamState

T = TypeVar("T")

_CONTROLS: Final = {code: f"\\x{code:02x}" for code in (*range(0x20), *range(0x7F, 0xA0))}
"""Types and texts are other people's: a terminal obeys none of them."""


_JSON: Final = "--json"


def with_json(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the option `--json` to a command; `as_json` tells whether it was given."""

    def set_json(context: click.Context, _: click.Parameter, value: bool) -> None:
        context.meta[_JSON] = value
        if value and isinstance(sys.stdout, TextIOWrapper):
            sys.stdout.reconfigure(encoding="utf-8")  # JSON is UTF-8, whatever the console's encoding

    help_ = "Print JSON instead of text: one document, or one a line if there may be many."
    return click.option(_JSON, is_flag=True, expose_value=False, callback=set_json, help=help_)(command)


def prepare_streams() -> None:
    """Make the standard streams take any text: input is UTF-8, and output escapes what the console lacks."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    if isinstance(sys.stdin, TextIOWrapper) and not sys.stdin.isatty():
        sys.stdin.reconfigure(encoding="utf-8", errors="strict")


def as_json() -> bool:
    """Whether the running command has to print JSON."""
    return bool(click.get_current_context().meta[_JSON])


def document(view: Any, lines: Iterable[str]) -> None:
    """Print one thing: as JSON with `--json`, else as lines."""
    if as_json():
        click.echo(json.dumps(view).decode())
        return
    for line in lines:
        click.echo(line)


def stream(items: Iterable[T], view: Callable[[T], Any], line: Callable[[T], str]) -> None:
    """Print things as they come, one a line: as JSON with `--json`, else as text cut to the terminal's width."""
    width, shown_as_json = _width(), as_json()
    for item in items:
        click.echo(json.dumps(view(item)).decode() if shown_as_json else _cut(line(item), width))


def fitting(lines: Iterable[str]) -> Iterator[str]:
    """Cut lines to the width of the terminal; without a terminal they stay whole."""
    width = _width()
    return (_cut(line, width) for line in lines)


def complain(words: str, *, has_lines: bool = False) -> None:
    """Print an error to standard error, in colour on a terminal unless NO_COLOR is set.

    Args:
        words: the text of the error, which becomes one line.
        has_lines: whether the error quotes what a program printed, whose lines stay.
    """
    name = "epochal:" if os.environ.get("NO_COLOR") else click.style("epochal:", fg="red")
    lines = [line.translate(_CONTROLS) for line in words.splitlines()]
    text = "\n".join(lines) if has_lines else " ".join(words.split())
    click.echo(f"{name} {text}", err=True)


def _width() -> int | None:
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def table(rows: Iterable[tuple[str, object]]) -> Iterator[str]:
    """Format names and values as aligned lines."""
    listed = [(name, _shown(value)) for name, value in rows]
    width = max((len(name) for name, _ in listed), default=0)
    return (f"{name:<{width}} {value}".rstrip() for name, value in listed)


def _shown(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,}" if isinstance(value, int) else str(value)


@contextmanager
def progress(doing: str) -> Iterator[Callable[[str], None]]:
    """Show on a terminal what is being done and for how long; call the yielded function with each step."""
    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn())
    console = Console(stderr=True)
    shown = Progress(
        *columns,
        console=console,
        transient=True,
        disable=not console.is_terminal,
        # On a terminal what is printed goes above the progress; into a file or a pipe it must go there.
        redirect_stdout=sys.stdout.isatty(),
    )
    with shown:
        task = shown.add_task(doing, total=None)
        yield lambda text: shown.update(task, description=f"{doing}: {text}")


def harmless(text: str) -> list[str]:
    """Split a text into lines, with control characters escaped, so that no terminal obeys them."""
    return [line.translate(_CONTROLS) for line in text.splitlines()]


def _cut(line: str, width: int | None) -> str:
    line = line.translate(_CONTROLS)
    return line if width is None or len(line) <= width else f"{line[: width - 1]}…"


# What is shown: the JSON of the HTTP API, and lines.


def event(recorded: Recorded | FeedEvent) -> dict[str, Any]:
    """An event as JSON."""
    return events.event(recorded, no_link)


def event_line(recorded: Recorded | FeedEvent) -> str:
    """An event as one line of text."""
    tags = "".join(f"  {tag}" for tag in recorded.tags)
    place = f"{recorded.stream}  {recorded.index:>6}  {recorded.timestamp[:19]}"
    return f"{place}  {recorded.type}{tags}  {body_text(recorded.data)}"


def item(feed_item: FeedItem) -> dict[str, Any]:
    """An event of the feed as JSON, with its data where that was asked for."""
    if feed_item.event is not None:
        return event(feed_item.event)
    return feed_items.build_item_frame(feed_item)


def item_line(feed_item: FeedItem) -> str:
    """Return an item of the feed as one line of text, with the reason if its data is missing."""
    if feed_item.event is not None:
        return event_line(feed_item.event)
    why = "" if feed_item.gone is None else f"  ({feed_item.gone})"
    if feed_item.removal is not None:
        why = f"  (events {feed_item.removal.first} to {feed_item.removal.end - 1} are gone)"
    if feed_item.fault is not None:
        why = f"  (cannot be read: {feed_item.fault})"
    return f"{feed_item.stream}  {feed_item.index:>6}  {feed_item.type}{why}"


def state(stream_state: StreamState) -> dict[str, Any]:
    """Return the state of a stream as JSON."""
    return {
        "stream": stream_state.stream,
        "version": stream_state.version,
        "token": stream_state.token.text(),
        "lowWater": stream_state.low_water,
        "deleted": stream_state.deleted,
        "headEvents": len(stream_state.events) or stream_state.token.events,
        "unfolds": [events.unfold(unfold, no_link) for unfold in stream_state.unfolds],
    }


def appended(stream: str, outcome: Appended, units: Units) -> dict[str, Any]:
    """The outcome of an append as JSON; its token makes the next append a single request."""
    reached = {"position": write_position(outcome.position)} if outcome.position.seen else {}
    shown = appends.APPENDED(outcome, stream=stream, capacity=capacity(units), **reached)
    return {**shown, "token": outcome.token.text()}


def of_stream(stream: str, outcome: Appended) -> dict[str, Any]:
    """Return a successful append to one of several streams as JSON."""
    return {
        "stream": stream,
        "first": outcome.first,
        "version": outcome.version,
        "token": outcome.token.text(),
        "replayed": outcome.replayed,
    }


def appended_line(stream: str, outcome: Appended) -> str:
    """The outcome of an append as one line of text."""
    added = outcome.version - outcome.first
    what = quantity(added) if added else "unfolds"
    again = ", appended before" if outcome.replayed else ""
    return f"{stream}: {what}{again}, now at version {outcome.version}"


def appended_lines(stream: str, outcome: Appended) -> list[str]:
    """The outcome of an append as text, with a line for the position that it reached, if it has one."""
    position = [f"position {write_position(outcome.position)}"] if outcome.position.seen else []
    return [appended_line(stream, outcome), *position]


def body_text(body: Body) -> str:
    """The body of an event as one line of text."""
    if isinstance(body, Claim):
        return f"<{body.size:,} bytes in the bucket>"
    text = bodies.json_text(body)
    return f"<{len(body):,} bytes>" if text is None and body else " ".join((text or "").splitlines())


def no_link(claim: Claim, _seconds: int) -> NoReturn:
    """Refuse to make a link to a body: commands fetch bodies while they read."""
    raise AssertionError(f"{claim.key} was not fetched")
