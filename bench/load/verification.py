"""What is stored against what was sent: every acknowledged event once, where and as it was acknowledged; nothing that
was refused; nothing that was never sent.

Pure: it is given what was read, and says in words what differs. An event whose append was never answered may be there,
once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from bench.load.ledger import Digest, Sent


@dataclass(frozen=True, slots=True)
class Found:
    """An event as it was read."""

    index: int
    digest: Digest


def stream_differs(stream: str, sent: Sent, events: Sequence[Found]) -> Iterator[str]:
    """Yield what is wrong with one stream as it was read."""
    for position, event in enumerate(events):
        if event.index != position:
            yield f"{stream}: #{event.index} came where #{position} was to come"
            break
    places: dict[Digest, int] = {}
    for event in events:
        if event.digest in places:
            yield f"{stream}: #{event.index} is #{places[event.digest]} again"
        places.setdefault(event.digest, event.index)
        yield from _known(stream, sent, event)
    yield from _acknowledged(stream, sent, places)


def _known(stream: str, sent: Sent, event: Found) -> Iterator[str]:
    if event.digest in sent.refused:
        yield f"{stream}: #{event.index} was refused, and is there"
    elif event.digest not in sent.acknowledged and event.digest not in sent.unanswered:
        yield f"{stream}: #{event.index} was never sent as it is"


def _acknowledged(stream: str, sent: Sent, places: Mapping[Digest, int]) -> Iterator[str]:
    last: dict[str, int] = {}
    for digest, place in sent.acknowledged.items():
        index = places.get(digest)
        if index is None:
            where = "" if place.index is None else f" at #{place.index}"
            yield f"{stream}: an event of {place.writer}'s was acknowledged{where}, and is missing"
            continue
        if place.index not in (None, index):
            yield f"{stream}: #{index} was acknowledged at #{place.index}"
        if index < last.get(place.writer, -1):
            yield f"{stream}: #{index} stands before what {place.writer} had appended earlier"
        last[place.writer] = index


def feed_differs(stream: str, stored: Sequence[Found], fed: Sequence[Found]) -> Iterator[str]:
    """Yield what is wrong with a stream in the feed, compared with the events in the store."""
    if len(fed) != len(stored):
        yield f"{stream}: the feed has {len(fed)} events, the store {len(stored)}"
    for there, here in zip(stored, fed, strict=False):
        if there.index != here.index:
            yield f"{stream}: the feed has #{here.index} where #{there.index} was to come"
            return
        if there.digest != here.digest:
            yield f"{stream}: #{here.index} is another event in the feed than in the store"


def followed_differs(stream: str, count: int, indices: Sequence[int]) -> Iterator[str]:
    """Yield what is wrong with the events of a stream as a follower received them during the writes."""
    if list(indices) != list(range(count)):
        wrong = next(
            (f"#{index} where #{at} was to come" for at, index in enumerate(indices) if at != index),
            f"{len(indices)} of {count} events",
        )
        yield f"{stream}: a follower met {wrong}"
