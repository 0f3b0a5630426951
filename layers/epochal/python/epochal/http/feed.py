"""The feed over HTTP: partitions, pages, long polls."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from simplejson import RawJSON

from epochal.deployment import Deployment
from epochal.errors import InvalidInput
from epochal.feed.page_filling import PageBounds
from epochal.feed.reader import FeedReader
from epochal.feed.results import FeedItem, FeedPage
from epochal.feed.waiting import LONGEST_POLL
from epochal.http import parameters, problems, schemas
from epochal.http.answer_size import LARGEST, body_bytes, sent_size
from epochal.http.answers import answer, text_of
from epochal.http.bodies import Link
from epochal.http.components import Shown
from epochal.http.declarations import operation
from epochal.http.events import event
from epochal.http.feed_items import build_item_frame
from epochal.http.metering import driver_for
from epochal.http.operation import Request, Response
from epochal.http.problems import Problem, fault_of
from epochal.http.query_strings import QueryString
from epochal.index.checkpoints import BEGINNING, Checkpoint, parse_place
from epochal.index.entries import ITEM_OVERHEAD, name_bytes
from epochal.layout.registry import partitions_of
from epochal.lazy_dataclasses import dataclass
from epochal.model.stream_names import TAG_STREAMS
from epochal.settings import MAX_WAIT_SECONDS, RESPONSE_BYTES
from epochal.store.driver import Meter

if TYPE_CHECKING:
    from epochal.feed.ordered import OrderedPage

TAIL: Final = "tail"
_CATEGORY: Final = re.compile(rf"({re.escape(TAG_STREAMS)})?[A-Za-z0-9_.:~@+=]{{1,512}}", re.ASCII)
"""Names of categories of streams, and of tags that are streams. A category that holds `-` must be declared."""

_PARTITION: Final = re.compile(r"0|[1-9]\d{0,8}", re.ASCII)
EVENTS: Final = 4.0
"""Seconds of a request reserved for reading events, after the wait at the tail and the walk through the index."""

ANSWER: Final = 2.0
"""Last seconds of a request, in which no more events are read."""

AGAIN: Final = {
    "Retry-After": schemas.text("On an empty page at the tail: seconds to wait before the next request.")
}
MAX_CATEGORY: Final = 512
CATEGORY_NAME: Final = {"type": "string", "pattern": rf"^[A-Za-z0-9$_.:~@+=-]{{1,{MAX_CATEGORY}}}$"}

CHECKPOINT: Final = schemas.text(
    "A position in a partition of the feed, `epoch@offset`.", pattern=r"\d{1,13}@\d{1,7}", examples=["0@17"]
)
PLACE: Final = rf"(beginning|tail|\d{{1,13}}@\d{{1,7}}|\d{{1,19}}|{schemas.MOMENT})"
"""Where a reader begins: `beginning`, `tail`, a checkpoint as text or as an integer, or a moment."""

NUMBER: Final = schemas.whole("Number of the partition.")

PARTITIONS: Final = Shown(
    "PartitionTails",
    {
        "partitions": schemas.array(
            schemas.record({"partition": NUMBER, "tail": CHECKPOINT}),
            "All partitions, each with the checkpoint after its last entry.",
        )
    },
)
FEED_PAGE: Final = Shown(
    "FeedPage",
    {
        "partition": NUMBER,
        "items": schemas.array(
            schemas.ref("FeedItem"), "Items in the order of the feed: within a stream by index, without gaps."
        ),
        "next": CHECKPOINT,
        "atTail": (schemas.flag("Whether the end of the index was reached."), "at_tail"),
    },
)


CATEGORIES: Final = parameters.query(
    "category",
    {
        "type": "array",
        "items": CATEGORY_NAME,
        "description": "Only streams of this category. May be given several times. For tagged events below "
        "`/events`, the category is `$tag-` followed by their group. Any other category with a `-` "
        "must be one that the deployment declares.",
    },
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """The feed reader, partitions and limits that feed operations run on.

    Attributes:
        feed: reader of the feed.
        partitions: numbers of the feed's partitions.
        link: signer of download URLs for bodies in the bucket.
        longest: most seconds that a request may wait at the tail.
    """

    feed: FeedReader
    partitions: Sequence[int]
    link: Link
    longest: int


def opened(deployment: Deployment) -> Reading:
    """Return a deployment's feed reader with its partitions, link signer and longest wait."""
    settings = deployment.settings
    return Reading(
        feed=deployment.feed,
        partitions=partitions_of(settings),
        link=deployment.bucket.links.download,
        longest=settings.feed_wait_seconds,
    )


@operation(gives=PARTITIONS)
def list_partitions(reading: Reading, request: Request, _: QueryString) -> Response:
    """List the partitions of the feed and their tails.

    All events of a stream are in the same partition.
    """
    source, meter = measured(reading.feed, request)
    tails = _tails(source)
    partitions = [
        {"partition": partition, "tail": str(tails.get(partition, BEGINNING))}
        for partition in reading.partitions
    ]
    return answer(meter, PARTITIONS(partitions=partitions))


@operation(
    parameters=(
        parameters.path("partition", schemas.whole("Number of the partition.", 0, 999_999_999)),
        parameters.query(
            "from",
            schemas.text(
                "A checkpoint, as text or an integer; a moment; `tail`; or `beginning`.", pattern=PLACE
            ),
        ),
        parameters.query(
            "direction",
            schemas.direction(
                "Direction in which to read. `backward` returns what comes before `from`, or before the tail, "
                "newest first. `next` then continues backward, and `atTail` means that nothing is older."
            ),
        ),
        parameters.query(
            "limit", {**schemas.LIMIT, "description": "Number of items after which the page ends."}
        ),
        parameters.query("data", schemas.flag("Whether items include the bodies of their events.")),
        parameters.query(
            "removals",
            schemas.flag(
                "Whether to include items that report removed events, at the place of their removal: of the type "
                "`$pruned`, `$emptied` (all events and the state were removed and the stream continues) or "
                "`$deleted`."
            ),
        ),
        CATEGORIES,
        parameters.query(
            "wait",
            schemas.whole(
                "Seconds to wait at the tail for new events. The deployment may set a lower maximum.",
                0,
                MAX_WAIT_SECONDS,
                default=0,
            ),
        ),
    ),
    gives=FEED_PAGE,
    headers=AGAIN,
    fails=(problems.PARTITION_NOT_FOUND,),
)
def read_feed(reading: Reading, request: Request, query: QueryString) -> Response:
    """Read a page of one partition of the feed, and if asked, wait at its tail for new events.

    A page ends with a whole entry of the index, so it may exceed its limit. It also ends at 4 MB; if the events of one
    entry are larger, some bodies are omitted. A filtered page may be empty although more follow: continue with `next`
    until `atTail`.
    """
    start, chosen = query.text("from"), categories_of(reading, query.texts("category"))
    partition = _partition(request.path["partition"])
    backward = query.choice("direction") == "backward"
    place = parse_place(start) if start is not None else TAIL if backward else "beginning"
    limit, data = query.limit(), query.flag("data")
    wait = query.whole("wait") or 0
    if partition not in reading.partitions:
        raise Problem(problems.PARTITION_NOT_FOUND, "this feed has no such partition", partition=partition)
    source, meter = measured(reading.feed, request)
    begin = (
        _tails(source).get(partition, BEGINNING)
        if place == TAIL
        else source.find_checkpoint(partition, place)
    )
    feed_items = FeedItems(reading.link)
    seconds = max(1.0, request.seconds - EVENTS)
    page = source.page_within(
        bounds(source, feed_items, request.seconds),
        partition,
        start=begin,
        direction="backward" if backward else "forward",
        limit=limit,
        categories=chosen,
        data=data,
        removals=query.flag("removals"),
        seconds=seconds,
        # The deployment may let a reader wait for less than is asked for.
        wait=min(float(wait), reading.longest, seconds),
    )
    items = [feed_items.view(item) for item in page.items]
    view = FEED_PAGE(page, partition=partition, items=items, next=str(page.next))
    headers = {} if backward else again(page)
    return answer(meter, view, headers=headers, figures={"Items": float(len(items))})


def again(page: FeedPage | OrderedPage) -> dict[str, str]:
    """Return a `Retry-After` header where a page of the feed is empty and at the tail, else no headers.

    A client at the tail then polls as seldom as a reader of the library does.
    """
    return {"Retry-After": f"{LONGEST_POLL:.0f}"} if page.at_tail and not page.items else {}


class FeedItems:
    """Items of a page of the feed as JSON; each event is rendered once, to be measured and to be sent."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._texts: dict[tuple[str, int], str] = {}

    def size_of(self, item: FeedItem) -> int:
        """Return an item's size in the answer, an estimate if it has no event or a large one; keep its JSON.

        The estimate saves rendering, since a page may have many items without events. An event whose bodies alone
        exceed `LARGEST` is not rendered either.
        """
        event_ = item.event
        if event_ is not None and (bodies := body_bytes(event_)) > LARGEST:
            return bodies
        if event_ is None:
            fault = 0 if item.fault is None else len(text_of(fault_of(item.fault)))
            return ITEM_OVERHEAD + name_bytes(item.stream) + name_bytes(item.type) + fault
        text = self._texts[item.stream, item.index] = text_of(event(event_, self._link))
        return sent_size(text)

    def view(self, item: FeedItem) -> Any:
        """Return the JSON of an item that `size_of` has measured."""
        return build_item_frame(item) if item.event is None else RawJSON(self._texts[item.stream, item.index])


def categories_of(reading: Reading, categories: Sequence[str]) -> frozenset[str] | None:
    """Return the named categories as a set, None for all; raise `InvalidInput` for an impossible name.

    Raises:
        InvalidInput: a name cannot be a category's.
    """
    if not all(_CATEGORY.fullmatch(category) or category in reading.feed.declared for category in categories):
        rule = (
            "must be the part of stream names before their first -, a declared category, or $tag- and a group"
        )
        raise InvalidInput("category", rule)
    return frozenset(categories) or None


def bounds(reader: FeedReader, items: FeedItems, seconds: float) -> PageBounds:
    """Return the limits of a page: the bytes of an answer and the time until which events are read.

    Args:
        items: renders and measures the page's items.
        seconds: seconds until the request must be answered.
    """
    return PageBounds(
        max_bytes=RESPONSE_BYTES,
        largest=LARGEST,
        size_of=items.size_of,
        until=reader.driver.clock() + seconds - ANSWER,
    )


def measured(reader: FeedReader, request: Request) -> tuple[FeedReader, Meter]:
    """Return the feed reader, with all its stores, bound to one request, and the request's meter."""
    driver, meter = driver_for(request, reader.driver)
    return reader.on(driver), meter


def _tails(reader: FeedReader) -> dict[int, Checkpoint]:
    """Return the tail of each partition that has one, by the partition's number."""
    return {partition.partition: partition.tail for partition in reader.partitions()}


def _partition(text: str) -> int:
    """Parse a partition's number from a path, or raise `InvalidInput`."""
    if not _PARTITION.fullmatch(text):
        raise InvalidInput("partition", "must be the number of a partition that GET /feed lists")
    return int(text)
