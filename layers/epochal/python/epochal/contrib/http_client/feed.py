"""The feed over HTTP: pages of one partition, and all partitions in turn."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final

from epochal.contrib.http_client.api import ApiClient, Reply
from epochal.contrib.http_client.problems import PREFIX
from epochal.contrib.http_client.received import Omitted, recorded_event
from epochal.errors import CorruptData, MissingBody
from epochal.feed.events import Fault, FeedEvent
from epochal.feed.results import FeedItem, FeedPage, PartitionTail
from epochal.index.checkpoints import (
    FeedPlace,
    FeedPosition,
    FeedStart,
    parse_checkpoint,
    parse_position,
    read_start,
)
from epochal.layout.changes import Removal
from epochal.lazy_dataclasses import dataclass
from epochal.model.kinds import must_be_whole
from epochal.model.moments import Moment
from epochal.store.reading import Direction, check_range

PAGE: Final = 1_000
POLL_SECONDS: Final = 2.0
"""Between looks at a tail, where an answer does not say when to ask again."""

NOWHERE: Final = -1
"""The partition of a batch in which nothing came."""

_OK: Final = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedBatch:
    """Items of one partition, and the position in the whole feed from which to continue after handling them.

    Attributes:
        partition: number of the partition that the items are from; `NOWHERE` if there are no items.
        items: items in the order of the feed; empty if no partition had any.
        position: position in the whole feed after the items of this batch and of all batches before it.
        at_tail: whether the feed had no further items in any partition when the batch was read.
    """

    partition: int
    items: tuple[FeedItem, ...]
    position: FeedPosition
    at_tail: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpFeed:
    """The feed behind an HTTP API. `HttpStreams.feed` returns one.

    Any method may raise `InvalidInput` for a malformed argument, a checkpoint of another index included, `Unavailable`
    and `Refused`.

    Attributes:
        api: the API, with its address, credentials and connections.
    """

    api: ApiClient

    def partitions(self) -> tuple[PartitionTail, ...]:
        """List every partition of the feed with the position of its end."""
        reply = self._got("/feed", ())
        return tuple(
            PartitionTail(partition=one["partition"], tail=parse_checkpoint(one["tail"]))
            for one in reply.document["partitions"]
        )

    def page(
        self,
        partition: int,
        *,
        start: FeedStart | None = None,
        direction: Direction = "forward",
        limit: int = PAGE,
        categories: Collection[str] | None = None,
        data: bool = False,
        removals: bool = False,
        wait: int = 0,
    ) -> FeedPage:
        """Return a page of a partition's items from `start` on: `limit` or more, 4 MB, or up to its end.

        Args:
            partition: number of the partition.
            start: starting point; by default the beginning, or backward the tail.
            direction: `backward` returns what is before `start`, newest first.
            limit: number of items after which the page ends, 1 to 10,000.
            categories: only streams of these categories.
            data: whether items have their events. One that had no room is `omitted`: read it from its stream.
            removals: also items that say which events are gone (`FeedItem.removal`).
            wait: whole seconds to wait at the tail; the deployment may wait fewer.
        """
        must_be_whole(partition, "partition")
        return self._page(
            partition, start, direction, limit, categories, data=data, removals=removals, wait=wait
        )[0]

    def read(
        self,
        *,
        start: Mapping[int, FeedStart] | FeedStart = "beginning",
        limit: int = PAGE,
        categories: Collection[str] | None = None,
        data: bool = True,
        removals: bool = False,
    ) -> Iterator[FeedBatch]:
        """Yield the items of all partitions in batches, from `start` to the end, one partition after another.

        Keep a batch's `position` once its items are handled, and resume from there.

        Args:
            start: a position, or a starting point of all partitions: `beginning`, `tail`, or a moment.
            limit: number of items after which a batch ends, 1 to 10,000.
            categories: only streams of these categories; None for all.
            data: whether items have their events.
            removals: whether items say which events are gone, too.
        """
        places = self._places(start)
        position = _reached(places)
        for partition in places:
            at_tail = False
            while not at_tail:
                page, _ = self._page(
                    partition, places[partition], "forward", limit, categories, data=data, removals=removals
                )
                places[partition] = position[partition] = page.next
                at_tail = page.at_tail
                if page.items:
                    yield FeedBatch(
                        partition=partition,
                        items=page.items,
                        position=FeedPosition(position),
                        at_tail=at_tail and partition == [*places][-1],
                    )

    def follow(
        self,
        *,
        start: Mapping[int, FeedStart] | FeedStart = "beginning",
        limit: int = PAGE,
        categories: Collection[str] | None = None,
        data: bool = True,
        removals: bool = False,
        wait: int = 0,
    ) -> Iterator[FeedBatch]:
        """Yield batches of items of all partitions from `start` on, without end; an empty one at each pause.

        Partitions take turns, a page each. One that is at its tail is asked again after the answer's `Retry-After`;
        where all are, an empty batch comes before the pause, so that the caller may stop.

        Args:
            start: a position, or a starting point of all partitions: `beginning`, `tail`, or a moment.
            limit: number of items after which a batch ends, 1 to 10,000.
            categories: only streams of these categories; None for all.
            data: whether items have their events.
            removals: whether items say which events are gone, too.
            wait: whole seconds that each request may wait in the API for something to come; its function is paid for as
                long. More than 0 is for feeds of one partition, since a partition that waits holds up the others.
        """
        must_be_whole(wait, "wait", 0)
        places = self._places(start)
        position, clock = _reached(places), self.api.clock
        due = dict.fromkeys(places, clock())
        while True:
            for partition in [place for place in places if due[place] <= clock()]:
                page, retry_after = self._page(
                    partition,
                    places[partition],
                    "forward",
                    limit,
                    categories,
                    data=data,
                    removals=removals,
                    wait=wait,
                )
                places[partition] = position[partition] = page.next
                if page.items:
                    yield FeedBatch(
                        partition=partition,
                        items=page.items,
                        position=FeedPosition(position),
                        at_tail=False,
                    )
                elif page.at_tail:
                    due[partition] = clock() + (retry_after or POLL_SECONDS)
            pause = min(due.values(), default=clock() + POLL_SECONDS) - clock()
            if pause > 0:
                yield FeedBatch(partition=NOWHERE, items=(), position=FeedPosition(position), at_tail=True)
                self.api.sleep(pause)

    def wait_for(self, stream: str, version: int, *, wait: int = 5) -> FeedPosition | None:
        """Wait until the feed has a stream's events below `version`; return a position after them, or None.

        The version is that in an append's answer. None means that it took too long; the deployment may wait for less
        than is asked for.

        Args:
            stream: name of the stream.
            version: index after the last event to wait for, such as the version that an append returns; 1 or more.
            wait: whole seconds to wait at most.
        """
        must_be_whole(version, "version", 1)
        query = (("stream", stream), ("version", str(version)), ("wait", str(wait)))
        text = self._got("/feed/position", query).document["position"]
        return None if text is None else parse_position(text)

    def _places(self, start: Mapping[int, FeedStart] | FeedStart) -> dict[int, FeedPlace]:
        """Return where to begin in each partition; at its beginning where a position does not name it."""
        partitions = [one.partition for one in self.partitions()]
        if isinstance(start, Mapping):
            return {partition: read_start(start.get(partition, "beginning")) for partition in partitions}
        return dict.fromkeys(partitions, read_start(start))

    def _page(
        self,
        partition: int,
        start: FeedStart | None,
        direction: Direction,
        limit: int,
        categories: Collection[str] | None,
        *,
        data: bool,
        removals: bool,
        wait: int = 0,
    ) -> tuple[FeedPage, float]:
        """Return a page of a partition, and the seconds after which the API wants to be asked again."""
        check_range(None, limit, direction)
        parameters = {
            "from": None if start is None else read_start(start),
            "limit": None if limit == PAGE else limit,
            "direction": None if direction == "forward" else direction,
            "wait": wait or None,
        }
        pairs = [(name, str(value)) for name, value in parameters.items() if value is not None]
        pairs += [("category", category) for category in categories or ()]
        pairs += [(name, "true") for name, on in (("data", data), ("removals", removals)) if on]
        reply = self._got(f"/feed/{partition}", pairs)
        document = reply.document
        page = FeedPage(
            items=tuple(self._item(shown) for shown in document["items"]),
            next=parse_checkpoint(document["next"], "next"),
            at_tail=document["atTail"],
        )
        retry_after = reply.headers.get("retry-after", "")
        return page, float(retry_after) if retry_after.isdecimal() else 0.0

    def _got(self, path: str, query: Collection[tuple[str, str]]) -> Reply:
        """Return a successful answer; raise the error of any other."""
        reply = self.api.call("GET", path, query=tuple(query))
        if reply.status != _OK:
            raise reply.error
        return reply

    def _item(self, shown: Mapping[str, Any]) -> FeedItem:
        """Return an item of a page, with its event, removal or fault, or the reason why the event is left out."""
        item = FeedItem(stream=shown["stream"], index=shown["index"], type=shown["type"])
        if "removed" in shown:
            gone = shown["removed"]
            kind = shown["type"].removeprefix("$")
            removal = Removal(item.stream, gone["to"], kind, gone["next"], gone["from"])
            return item._replace(removal=removal)
        if "fault" in shown:
            return item._replace(fault=_fault(shown["fault"]))
        if "pruned" in shown or "expired" in shown:
            return item._replace(gone="pruned" if "pruned" in shown else "expired")
        if "timestamp" not in shown:
            return item._replace(omitted=shown.get("omitted", False))
        event = recorded_event(self.api, shown)
        if isinstance(event, Omitted):
            return item._replace(omitted=True)
        return item._replace(
            event=FeedEvent(
                stream=event.stream,
                index=event.index,
                type=event.type,
                data=event.data,
                meta=event.meta,
                timestamp=event.timestamp,
                correlation_id=event.correlation_id,
                causation_id=event.causation_id,
                tags=event.tags,
                id=event.id or None,
                home=shown.get("home", ""),
                user=shown.get("executedUser"),
            )
        )


def _reached(places: Mapping[int, FeedPlace]) -> FeedPosition:
    """Return the position in the feed that the places are, as far as they are checkpoints."""
    return FeedPosition(
        {partition: place for partition, place in places.items() if not isinstance(place, str | Moment)}
    )


def _fault(shown: Mapping[str, Any]) -> Fault:
    """Return the error because of which an event of the feed cannot be read."""
    if shown["type"] == f"{PREFIX}missing-body":
        return MissingBody(shown["detail"])
    return CorruptData(shown["detail"])
