"""The feed of all partitions at once: streams, newest events, events in write order, and positions of streams."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final, Literal

from epochal.errors import InvalidInput
from epochal.feed.whole import WholeFeed
from epochal.http import parameters, schemas
from epochal.http.answers import answer
from epochal.http.components import Component, Shown
from epochal.http.declarations import operation
from epochal.http.documents import document
from epochal.http.feed import (
    AGAIN,
    CATEGORIES,
    CATEGORY_NAME,
    EVENTS,
    MAX_CATEGORY,
    NUMBER,
    FeedItems,
    Reading,
    again,
    bounds,
    categories_of,
    measured,
    opened,
)
from epochal.http.operation import Request, Response
from epochal.http.query_strings import QueryString
from epochal.index.checkpoints import Checkpoint, parse_place, parse_places, parse_position
from epochal.layout.registry import layout_names, source_of
from epochal.lazy_dataclasses import asdict
from epochal.model.moments import Moment
from epochal.model.tokens import MAX_VERSION
from epochal.plugins import NATIVE
from epochal.settings import MAX_WAIT_SECONDS

if TYPE_CHECKING:
    from epochal.feed.ordered import OrderedCheckpoint
    from epochal.feed.reader import FeedReader
    from epochal.store.driver import Meter

__all__ = ["list_streams", "opened", "read_newest", "read_ordered", "read_position"]

LONGEST_WINDOW: Final = 60
"""Longest window of an ordered read, in seconds: every page reads its window anew."""

NEWEST_PAGE: Final = Shown(
    "NewestPage",
    {
        "items": schemas.array(
            schemas.ref("FeedItem"),
            "Newest first. Items of different partitions are compared by the timestamps of their events.",
        ),
        "next": schemas.words("Position before which the next page continues."),
        "atBeginning": (schemas.flag("Whether nothing is older."), "at_beginning"),
    },
)
ORDERED: Final = Component(
    "OrderedRead",
    schemas.record(
        {
            "within": schemas.whole(
                "Largest number of seconds for which an event is held back.", 0, LONGEST_WINDOW
            ),
            "from": schemas.text(
                "`next` of the previous page, `tail`, a moment, or `beginning`, which is the default.",
                most=1024 * 1024,
                pattern=rf"(\{{.*\}}|beginning|tail|{schemas.MOMENT})",
            ),
            "limit": {**schemas.LIMIT, "description": "Largest number of items on the page."},
            "categories": schemas.array(CATEGORY_NAME, "Only streams of these categories.", 100),
            "wait": schemas.whole(
                "Seconds to wait at the tail for new events.", 0, MAX_WAIT_SECONDS, default=0
            ),
        },
        required=("within",),
    ),
    reads={"categories": lambda node: node.text(MAX_CATEGORY)},
)
ORDERED_PAGE: Final = Shown(
    "OrderedPage",
    {
        "items": schemas.array(
            schemas.ref("FeedItem"), "Items in the order in which they were written, causes before effects."
        ),
        "next": schemas.words("`from` of the next page."),
        "atTail": (
            schemas.flag(
                "Whether the end of the index was reached. Events that are younger than the window are "
                "held back."
            ),
            "at_tail",
        ),
        "early": (
            schemas.whole("Number of items that were returned too early because the window was full."),
            "early",
        ),
    },
)
INDEXED: Final = Shown(
    "Indexed",
    {
        "position": schemas.or_null(
            schemas.text("As `partition:epoch@offset`."),
            "Position of the feed after the events; null if the feed does not have them yet.",
        )
    },
)

STREAMS_PAGE: Final = Shown(
    "StreamsPage",
    {
        "streams": schemas.array(
            schemas.record(
                {
                    "stream": schemas.text("Name of the stream."),
                    "category": schemas.text("Its category."),
                    "type": schemas.text("The type of its first event."),
                    "partition": NUMBER,
                    "created": schemas.text("Time at which that event was indexed."),
                }
            ),
            "Streams in the order of their creation, according to the index.",
        ),
        "next": {
            "type": "string",
            "description": "`from` of the next page: a position of the feed, or a name.",
        },
        "atEnd": (schemas.flag("Whether there are no more streams."), "at_end"),
    },
)
_PLACE: Final = r"\d{1,9}:(\d{1,13}@\d{1,7}|\d{1,19})"
_POSITION: Final = f"({_PLACE}(,{_PLACE})*)?"
_SOURCES: Final = sorted(layout_names(), key=lambda name: name != NATIVE)
_query_parameter: Final = partial(parameters.parameter, "query", required=True)


@operation(
    parameters=(
        parameters.query(
            "before",
            {
                **schemas.words("`next` of the previous page. If left out, the tail."),
                "pattern": f"^{_POSITION}$",
            },
        ),
        parameters.query(
            "limit",
            {**schemas.LIMIT, "default": 100, "description": "Number of items after which the page ends."},
        ),
        parameters.query("data", schemas.flag("Whether items include the bodies of their events.")),
        CATEGORIES,
    ),
    gives=NEWEST_PAGE,
)
def read_newest(reading: Reading, request: Request, query: QueryString) -> Response:
    """Read a page of the feed of all partitions, newest events first.

    Of all partitions, newest first. A page has whole entries of the index, and ends at 4 MB. Its first `limit` items
    are the newest, and the others may be older than the first items of the next page.
    """
    before = query.text("before")
    start = None if before is None else parse_position(before, "before")
    source, meter = measured(reading.feed, request)
    feed_items = FeedItems(reading.link)
    page = WholeFeed(source).newest_within(
        bounds(source, feed_items, request.seconds),
        limit=query.limit(),
        before=start,
        categories=categories_of(reading, query.texts("category")),
        data=query.flag("data"),
        seconds=max(1.0, request.seconds - EVENTS),
    )
    items = [feed_items.view(item) for item in page.items]
    view = NEWEST_PAGE(page, items=items, next=str(page.next))
    return answer(meter, view, figures={"Items": float(len(items))})


@operation(takes=ORDERED, gives=ORDERED_PAGE, headers=AGAIN)
def read_ordered(reading: Reading, request: Request, _: QueryString) -> Response:
    """Read a page of the feed of all partitions, in the order in which events were written.

    Reads all partitions together, with their events, in the order in which they were written. Each event is held back
    for `within` seconds, so that events written before it come first. This is a POST because `next` may be longer than
    a URL allows. Each page reads its window again, so ask for large pages.
    """
    fields = ORDERED.read(document(request))
    if "within" not in fields:
        raise InvalidInput("within", "is required")
    source, meter = measured(reading.feed, request)
    feed_items = FeedItems(reading.link)
    seconds = max(1.0, request.seconds - EVENTS)
    page = WholeFeed(source).ordered_within(
        bounds(source, feed_items, request.seconds),
        within=float(fields["within"]),
        start=_start_in_order(fields.get("from", "beginning")),
        limit=fields["limit"],
        categories=categories_of(reading, fields.get("categories", ())),
        seconds=seconds,
        wait=min(float(fields["wait"]), reading.longest, seconds),
    )
    items = [feed_items.view(item) for item in page.items]
    view = ORDERED_PAGE(page, items=items, next=str(page.next))
    return answer(meter, view, headers=again(page), figures={"Items": float(len(items))})


def _start_in_order(text: str) -> OrderedCheckpoint | Moment | Literal["beginning", "tail"]:
    """Parse where an ordered read begins: `next` of a page, a moment, `beginning` or `tail`.

    Raises:
        InvalidInput: the text is a checkpoint of one partition, or nothing known.
    """
    from epochal.feed.ordered import OrderedCheckpoint  # noqa: PLC0415  ordered reads are rare

    if text.startswith("{"):
        return OrderedCheckpoint.parse(text)
    place = parse_place(text)
    if isinstance(place, Checkpoint):
        raise InvalidInput("from", "must be the `next` of an ordered page, a moment, beginning or tail")
    return place


@operation(
    parameters=(
        _query_parameter("stream", schemas.text("Name of the stream, or `$tag-` followed by a tag.")),
        _query_parameter(
            "version", schemas.whole("Version of the stream, as returned by an append.", 1, MAX_VERSION)
        ),
        parameters.query(
            "source", {"enum": _SOURCES, "default": NATIVE, "description": "Layout of the stream."}
        ),
        parameters.query("wait", schemas.whole("Seconds to wait.", 0, MAX_WAIT_SECONDS, default=0)),
    ),
    gives=INDEXED,
)
def read_position(reading: Reading, request: Request, query: QueryString) -> Response:
    """Wait until events of a stream are in the feed, and get the position after them.

    Returns the position after the events of a stream. A reader that has reached this position has seen them. Null if
    the events are not in the feed by the end of `wait`.
    """
    stream, version, layout = query.text("stream"), query.whole("version"), query.choice("source")
    if not stream or version is None:
        raise InvalidInput("version" if stream else "stream", "is required")
    sources = {source_of(partition) for partition in reading.partitions}
    if layout not in sources:
        raise InvalidInput("source", f"must be {' or '.join(sorted(sources))}")
    source, meter = measured(reading.feed, request)
    seconds = min(float(query.whole("wait") or 0), reading.longest, max(0.0, request.seconds - EVENTS))
    try:
        position = source.wait_for(stream, version, source=layout, seconds=seconds)
    except InvalidInput:  # nothing of that layout has been indexed yet
        position = None
    return answer(meter, INDEXED(position=None if position is None else str(position)))


@operation(
    parameters=(
        parameters.query(
            "from",
            {
                "type": "string",
                "description": "`next` of the previous page, a moment, `beginning` or `tail`. If left out, the "
                "beginning, or backward the tail.",
            },
        ),
        parameters.query(
            "order",
            {
                "enum": ["created", "name"],
                "default": "created",
                "description": "List streams by name, forward only, beginning after the name in `from`.",
            },
        ),
        parameters.query(
            "limit", {**schemas.LIMIT, "description": "Number of streams after which the page ends."}
        ),
        parameters.query("direction", schemas.direction("`backward` lists the newest streams first.")),
        parameters.query(
            "prefix", {"type": "string", "description": "Only streams whose names begin with this text."}
        ),
        CATEGORIES,
    ),
    gives=STREAMS_PAGE,
)
def list_streams(reading: Reading, request: Request, query: QueryString) -> Response:
    """List a page of streams in the order of their creation, or by name.

    Reads the index, so a page may be empty although more follow: continue with `next` until `atEnd`. By name, every
    page reads the whole index, so ask for large pages. With more than some ten million events this takes longer than a
    request may, and is refused.
    """
    start, by_name = query.text("from"), query.choice("order") == "name"
    place = None if start is None or by_name else parse_places(start)
    source, meter = measured(reading.feed, request)
    if by_name:
        return _by_name(source, meter, reading, request, query)
    page = source.streams(
        query.limit(),
        start=place,
        direction="backward" if query.choice("direction") == "backward" else "forward",
        categories=categories_of(reading, query.texts("category")),
        prefix=query.text("prefix") or "",
        seconds=max(1.0, request.seconds - EVENTS),
    )
    streams = [asdict(stream) for stream in page.streams]
    return answer(meter, STREAMS_PAGE(page, streams=streams, next=str(page.next)))


def _by_name(
    source: FeedReader, meter: Meter, reading: Reading, request: Request, query: QueryString
) -> Response:
    """Answer with a page of streams in the order of their names; raise `InvalidInput` for backward.

    Raises:
        InvalidInput: the direction is backward.
    """
    if query.choice("direction") == "backward":
        raise InvalidInput("direction", "must be forward when order is name")
    page = source.streams_by_name(
        query.limit(),
        after=query.text("from") or "",
        categories=categories_of(reading, query.texts("category")),
        prefix=query.text("prefix") or "",
        seconds=max(1.0, request.seconds - EVENTS),
    )
    streams = [asdict(stream) for stream in page.streams]
    return answer(meter, STREAMS_PAGE(page, streams=streams, next=page.next or ""))
