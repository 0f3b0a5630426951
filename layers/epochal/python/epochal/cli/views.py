"""What commands show: the JSON of the HTTP API, and lines for people."""

from __future__ import annotations

from typing import Any, NoReturn

from epochal.cli import output
from epochal.feed.history import FeedEvent, FeedItem
from epochal.http import events, streams
from epochal.http.shapes import capacity
from epochal.model.events import Body, Claim, Recorded
from epochal.model.tags import write_position
from epochal.model.versions import Appended
from epochal.plan.values import Units
from epochal.store.reading import StreamState


def event(found: Recorded | FeedEvent) -> dict[str, Any]:
    """An event."""
    return events.event(found, no_link)


def event_line(found: Recorded | FeedEvent) -> str:
    """An event in one line."""
    tags = "".join(f"  {tag}" for tag in found.tags)
    return f"{found.stream}  {found.index:>6}  {found.timestamp[:19]}  {found.type}{tags}  {body_text(found.data)}"


def item(found: FeedItem) -> dict[str, Any]:
    """An event of the feed, with its data where that was asked for."""
    if found.event is not None:
        return event(found.event)
    return events.bare(found)


def item_line(found: FeedItem) -> str:
    """An event of the feed in one line."""
    if found.event is not None:
        return event_line(found.event)
    why = "" if found.gone is None else f"  ({found.gone})"
    if found.removal is not None:
        why = f"  (events {found.removal.first} to {found.removal.end - 1} are gone)"
    if found.fault is not None:
        why = f"  (cannot be read: {found.fault})"
    return f"{found.stream}  {found.index:>6}  {found.type}{why}"


def state(found: StreamState) -> dict[str, Any]:
    """A stream's Tip."""
    return {
        "stream": found.stream,
        "version": found.version,
        "token": found.token.text(),
        "lowWater": found.low_water,
        "deleted": found.deleted,
        "headEvents": len(found.events),
        "unfolds": [events.unfold(each, no_link) for each in found.unfolds],
    }


def appended(stream: str, outcome: Appended, units: Units) -> dict[str, Any]:
    """The outcome of an append; its token makes the next one a single request."""
    reached = {"position": write_position(outcome.position)} if outcome.position.seen else {}
    shown = streams.APPENDED(outcome, stream=stream, capacity=capacity(units), **reached)
    return {**shown, "token": outcome.token.text()}


def of_stream(stream: str, outcome: Appended) -> dict[str, Any]:
    """What a stream got of an append to several."""
    return {
        "stream": stream,
        "first": outcome.first,
        "version": outcome.version,
        "token": outcome.token.text(),
        "replayed": outcome.replayed,
    }


def appended_line(stream: str, outcome: Appended) -> str:
    """The outcome of an append in one line."""
    count = outcome.version - outcome.first
    what = output.events(count) if count else "unfolds"
    again = ", appended before" if outcome.replayed else ""
    reached = f"\nposition {write_position(outcome.position)}" if outcome.position.seen else ""
    return f"{stream}: {what}{again}, now at version {outcome.version}{reached}"


def body_text(body: Body) -> str:
    """A body in one line."""
    if isinstance(body, Claim):
        return f"<{body.size:,} bytes in the bucket>"
    text = events.json_text(body)
    return f"<{len(body):,} bytes>" if text is None and body else " ".join((text or "").splitlines())


def no_link(claim: Claim, _seconds: int) -> NoReturn:
    """Bodies are fetched while reading, so no body is left to link to."""
    raise AssertionError(f"{claim.key} was not fetched")
