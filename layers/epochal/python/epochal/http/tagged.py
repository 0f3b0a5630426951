"""Tagged events over HTTP: operations that append, query, read and list events and their tags, and their schemas.

    {"type": "Subscribed", "data": {"grade": 1.50}, "tags": ["course:1", "student:7"]}
    {"items": [{"types": ["Subscribed"], "tags": ["course:1"]}]}

The events have the form of stream events, with tags (`events`). A query's items are alternatives; an event matches an
item if it has one of the item's types and all of its tags.

A plug-in has the same operations on its own store (`operation.tagged_operations`). Bodies in the bucket are answered
with a link, since they may be larger than a function's memory. A page ends where the next event has no room, and says
where the next page begins.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

from epochal.deployment import Deployment
from epochal.errors import InvalidInput, TooLarge
from epochal.http import answers, parameters, problems, schemas
from epochal.http.components import Component, Members, Shown
from epochal.http.declarations import operation
from epochal.http.documents import document
from epochal.http.events import (
    CONDITION,
    ID,
    IDS_SHOWN,
    INDEX,
    LARGEST,
    MAX_NAMED,
    MAX_POSITION_BYTES,
    POSITION,
    TAG,
    AnswerSize,
    Link,
    body_bytes,
    shown_bodies,
    tag_of,
    with_bodies,
)
from epochal.http.events import event_of as plain_event
from epochal.http.idempotency import idempotency_key
from epochal.http.metering import measured
from epochal.http.nodes import Node
from epochal.http.operation import Request, Response
from epochal.http.problems import Problem
from epochal.http.query_strings import QueryString
from epochal.http.tag_pages import MAX_LIMIT as MAX_TAGS
from epochal.http.tag_pages import DatedPage, TagPage, TagPages
from epochal.lazy_dataclasses import dataclass, replace
from epochal.model.events import MAX_TAG_BYTES, MAX_TYPE_BYTES, Event, Recorded
from epochal.model.tags import (
    BackwardPage,
    Down,
    Query,
    QueryItem,
    TagCount,
    TagEntry,
    TaggedPage,
    check_tag,
    check_type,
    group_of,
    parse_down,
    parse_event_id,
    parse_place,
    parse_rest,
    read_position,
    write_position,
)
from epochal.model.versions import Appended, Conflict, Position
from epochal.plan.values import Units
from epochal.store.driver import Meter
from epochal.store.listings import Listings, listings_of
from epochal.store.tagged import MAX_EVENTS, TaggedStore

PLACE: Final = schemas.text(
    "Orders events: within each of their tags always as they were appended.", pattern=r"\d{30}"
)
_TYPE: Final = schemas.text("What kind of event it is.", most=MAX_TYPE_BYTES, pattern=r"[^\x00-\x1f\x7f]+")
_NEXT: Final = schemas.text(
    "`next` of the page before; everything else must be as it was.", most=2 * MAX_POSITION_BYTES
)
_STAMP: Final = schemas.words("When it was appended.")
_GOES_ON: Final = "`from` of the page that goes on; null where there is none."


# Schemas and readers of requests.


def _type_of(node: Node) -> str:
    """Read an event type of a query.

    Raises:
        InvalidInput: the value cannot be an event type.
    """
    return check_type(node.text(MAX_TYPE_BYTES), node.name)


EVENT_QUERY_ITEM: Final = Component(
    "EventQueryItem",
    schemas.record(
        {
            "types": schemas.array(_TYPE, "Any of these; none named: any type.", MAX_NAMED),
            "tags": schemas.array(
                TAG,
                "All of these. At least one, unless the deployment lets the types be asked for alone.",
                MAX_NAMED,
            ),
        },
        required=(),
    ),
    reads={"types": _type_of, "tags": tag_of},
)


def _item(node: Node) -> QueryItem:
    """Read one item of a query: its event types and tags."""
    return QueryItem(**{name: frozenset(values) for name, values in EVENT_QUERY_ITEM.read(node).items()})


EVENT_QUERY: Final = Component(
    "EventQuery",
    schemas.record(
        {
            "items": {
                **schemas.array(
                    schemas.ref("EventQueryItem"), "Alternatives: an event matches one of them.", MAX_NAMED
                ),
                "minItems": 1,
            }
        }
    ),
    reads={"items": _item},
)
APPEND: Final = Component(
    "AppendTagged",
    schemas.record(
        {
            "events": {
                **schemas.array(schemas.ref("NewEvent"), "Appended in this order, all or none.", MAX_EVENTS),
                "minItems": 1,
            },
            **CONDITION,
        },
        required=("events",),
        dependentRequired={"after": ["failIf"]},
    ),
)
QUERY: Final = Component(
    "QueryTagged",
    schemas.record(
        {
            "query": schemas.ref("EventQuery"),
            "after": {**POSITION, "description": "Only what is new since this position."},
            "from": _NEXT,
            "limit": schemas.whole("Events at most.", 1, schemas.MAX_LIMIT, default=schemas.DEFAULT_LIMIT),
            "direction": schemas.direction(
                "Backward: newest first. The first page then has the last events."
            ),
            "positions": {**schemas.flag("Whether each event tells its position."), "default": False},
        },
        required=("query",),
    ),
)


def event_of(node: Node) -> Event:
    """Read a tagged event to append.

    Raises:
        InvalidInput: naming the field that breaks a rule.
    """
    event = plain_event(node)
    check_type(event.type, node.below("type"))
    return event if event.id is None else replace(event, id=parse_event_id(event.id, node.below("id")))


def query_of(node: Node, store: TaggedStore) -> Query:
    """Read a query and check that the store can watch its tags and types within one transaction.

    Raises:
        InvalidInput: naming the field that breaks a rule.
        TooLarge: the query has too many different tags and types.
    """
    asked, place = Query(items=EVENT_QUERY.read(node)["items"]), node.below("items")
    try:
        heads = store.heads_watched(asked)
    except InvalidInput as error:
        raise InvalidInput(place, error.rule) from error
    if heads > MAX_NAMED:
        raise TooLarge(place, heads, MAX_NAMED, "different tags and types to watch")
    return asked


def position_of(sent: Mapping[str, Any]) -> Position | None:
    """Return the position to append or read after; None where the request has none."""
    return read_position(sent["after"]) if "after" in sent else None


# Views of events.

EVENT: Final = Component(
    "TaggedEvent",
    schemas.record(
        {
            "id": schemas.words("Its id."),
            "place": PLACE,
            "type": schemas.words("What kind of event it is."),
            "tags": schemas.array(schemas.words(), "What it concerns, in order."),
            "stream": schemas.words("The stream that it was appended to, if it was to one, and"),
            "index": {**INDEX, "description": "its index there."},
            "timestamp": _STAMP,
            **IDS_SHOWN,
            "executedUser": schemas.words("Who did it, where that is kept."),
            **shown_bodies(),
            "position": {
                **POSITION,
                "description": "What had been seen with it, to append after; where `positions` were asked for; "
                "of one event by its id its place in its first tag.",
            },
        },
        required=("id", "place", "type", "tags", "timestamp"),
    ),
)


class Listed:
    """Collects events for an answer, up to a limit and as many as the answer has room for.

    The store calls it with one event after the other.

    Attributes:
        views: JSON values of the collected events.
    """

    def __init__(
        self, limit: int, link: Link, *, positions: bool = False, answer: AnswerSize | None = None
    ) -> None:
        """Start an empty list of events.

        Args:
            limit: most events to collect.
            link: signer of download URLs for bodies in the bucket.
            positions: whether each event shows its position.
            answer: space that is left in the answer; None for an answer of its own.
        """
        self._limit = limit
        self._link = link
        self._positions = positions
        self._answer = answer or AnswerSize()
        self.views: list[Any] = []

    def __call__(self, found: Recorded) -> bool:
        """Add an event to the answer; return false if the limit is reached or the answer is full."""
        if len(self.views) >= self._limit:
            return False
        frame = fields(found)
        if self._positions and found.position is not None:
            frame["position"] = write_position(found.position)
        if body_bytes(found) > LARGEST:
            view = None if self.views else self._answer.omit(frame)
        else:
            shown = with_bodies(frame, found, self._link)
            view = self._answer.fit(shown) if self.views else self._answer.put(shown, frame)
        if view is not None:
            self.views.append(view)
        return view is not None

    def refused(self, rejected: Conflict, units: Units) -> Problem:
        """Return the problem of an append whose condition met the collected events.

        With these events and the position a writer can decide again without another read.

        Args:
            rejected: the conflict.
            units: capacity units that the request used.
        """
        return Problem(
            problems.CONDITION_FAILED,
            "events that match failIf have been appended: decide again with them, and append after this position",
            figures={"Conflicts": 1.0, **answers.consumed(units)},
            events=self.views,
            position=write_position(rejected.position),
            more=rejected.more,
        )


def shown(found: Recorded, link: Link) -> dict[str, Any]:
    """Show an event, with its bodies in the bucket as links."""
    return with_bodies(fields(found), found, link)


def _single(found: Recorded, link: Link) -> Any:
    """Show an event as an answer of its own, with its position in the tag that it was found by."""
    frame = fields(found)
    if found.position is not None:
        frame["position"] = write_position(found.position)
    if body_bytes(found) > LARGEST:
        return AnswerSize().omit(frame)
    return AnswerSize().put(with_bodies(frame, found, link), frame)


def fields(found: Recorded) -> dict[str, Any]:
    """Show an event without its bodies."""
    ids = {"causationId": found.causation_id, "correlationId": found.correlation_id, **found.besides}
    return {
        "id": found.id,
        "place": found.place,
        "type": found.type,
        "tags": list(found.tags),
        "timestamp": found.timestamp,
        **({"stream": found.stream, "index": found.index} if found.stream else {}),
        **{name: value for name, value in ids.items() if value is not None},
    }


# Answers.

_MADE: Final = Shown("", {"id": (ID, "id"), "place": (PLACE, "place"), "timestamp": (_STAMP, "timestamp")})
APPENDED: Final = Shown(
    "AppendedTagged",
    {
        "events": schemas.array(_MADE.schema, "In the order sent."),
        "position": schemas.or_null(
            POSITION,
            "To append after, under the same query; without `failIf` where the append is in the tags of its events."
            " Of a replayed append it may be before the events, or null.",
        ),
        "versions": {
            "type": "object",
            "description": "How many events each tag of these events has with them; that of events without a tag "
            'is "". Of a replayed append there may be later ones among them.',
            "additionalProperties": {"type": "integer", "minimum": 1},
        },
        "replayed": (schemas.flag("Whether an earlier call had appended them."), "replayed"),
        "capacity": schemas.CAPACITY,
    },
)
EVENT_PAGE: Final = Shown(
    "TaggedEventPage",
    {
        "events": schemas.array(
            schemas.ref("TaggedEvent"), "In order of their places; backward, newest first."
        ),
        "position": schemas.or_null(
            POSITION, "To append after; null until the last page, where it is not backward."
        ),
        "next": schemas.or_null(_NEXT, _GOES_ON),
    },
)
LISTED: Final = Shown(
    "ListedEvents",
    {
        "events": schemas.array(schemas.ref("TaggedEvent"), "In order of their places."),
        "next": schemas.or_null(PLACE, _GOES_ON),
    },
)
COUNT: Final = Shown("EventCount", {"events": schemas.whole("How many there are.")})


def appended(made: Appended, units: Units) -> dict[str, Any]:
    """Build the answer to an append of tagged events.

    A replayed append without a condition has read no tag, so its position is null.

    Args:
        units: capacity units that the request used.
    """
    return APPENDED(
        made,
        events=[_MADE(each) for each in made.events],
        position=write_position(made.position) if made.position.seen else None,
        versions=dict(made.versions),
        capacity=answers.capacity(units),
    )


def _page(found: TaggedPage | BackwardPage, listed: Listed) -> dict[str, Any]:
    """Build the answer to a page of a query.

    Only the last page, or each page of a backward read, has the position to append after.
    """
    return EVENT_PAGE(
        events=listed.views,
        position=None if found.position is None else write_position(found.position),
        next=None if found.rest is None else found.rest.text(),
    )


def _listed(found: DatedPage[Recorded], link: Link) -> dict[str, Any]:
    """Build the answer to a page of listed events, cut short where the answer is full.

    A page never ends between events of one place, since no next page could go on from there.
    """
    answer, views, last = AnswerSize(), list[Any](), ""
    for each in found.items:
        # A page never ends between events of one place: no next page could go on from there.
        ends = bool(views) and each.place > last
        if body_bytes(each) > LARGEST:
            view = None if ends else answer.omit(fields(each))
        else:
            view = answer.fit(shown(each, link)) if ends else answer.put(shown(each, link), fields(each))
        if view is None:
            return LISTED(events=views, next=last)
        views.append(view)
        last = each.place
    return LISTED(events=views, next=found.next)


# Tags.

_COUNTED: Final[Members] = {
    "tag": (TAG, "tag"),
    "events": (schemas.whole("How many events have it, also those that have expired."), "events"),
}
_ENTRY: Final[Members] = {
    "id": (schemas.words("Its id."), "event_id"),
    "place": (PLACE, "place"),
    "type": (schemas.words("What kind of event it is."), "event_type"),
    "timestamp": (_STAMP, "created_at"),
}
_INDEX: Final = {
    "type": ["integer", "null"],
    "description": "Its place among the tag's events, from 0; null where another library wrote it.",
}

TAG_COUNT: Final = Shown("", _COUNTED)
_LATEST: Final = Shown("", _ENTRY, description="Its latest event.")
ENTRY: Final = Shown("", {**_ENTRY, "index": (_INDEX, "index")})

TAG_PAGE: Final = Shown(
    "TagPage",
    {
        "tags": schemas.array(TAG_COUNT.schema, "With their numbers of events."),
        "next": (schemas.or_null(schemas.text(""), _GOES_ON), "next"),
    },
)
TAG_SHOWN: Final = Shown(
    "Tag", {**_COUNTED, "group": schemas.words("What precedes its first `:`."), "latest": _LATEST.schema}
)
ENTRIES: Final = Shown(
    "TagEntries",
    {
        "entries": schemas.array(ENTRY.schema, "In order of their places."),
        "next": (schemas.or_null(PLACE, _GOES_ON), "next"),
    },
)


def tag_shown(found: TagCount, latest: TagEntry) -> dict[str, Any]:
    """Show a tag with its number of events, its group and its latest event."""
    return TAG_SHOWN(found, group=group_of(found.tag), latest=_LATEST(latest))


# The operations.

_FROM: Final = parameters.query("from", {**PLACE, "description": "`next` of the page before."})
_TAG: Final = parameters.path("tag", TAG)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tagged:
    """The store and helpers that operations on tagged events run on.

    Attributes:
        store: the store of tagged events.
        link: signer of download URLs for bodies in the bucket.
        event_of: reader of an event that is sent.
    """

    store: TaggedStore
    link: Link
    event_of: Callable[[Node], Event] = event_of

    def on(self, request: Request) -> tuple[TaggedStore, Meter]:
        """Return the store bound to one request's deadline, and the meter of the request's cost."""
        return measured(self.store, request)


def opened(deployment: Deployment, store: str) -> Tagged:
    """Return a deployment's store of tagged events, which leaves bodies in the bucket unread.

    Args:
        store: name of the deployment's property that holds the store.
    """
    found: TaggedStore = getattr(deployment, store)
    return Tagged(store=replace(found, fetch=False), link=deployment.bucket.links.download)


@operation(
    parameters=(parameters.IDEMPOTENCY_KEY,),
    takes=APPEND,
    status=201,
    gives=APPENDED,
    fails=(problems.CONDITION_FAILED,),
)
def append_tagged(tagged: Tagged, request: Request, _: QueryString) -> Response:
    """Append tagged events, unless what they were decided on has changed.

    One transaction: all events or none. With `failIf` it is refused if an event that matches lies beyond `after`; the
    answer has these events, as many as fit, and the position that has seen them. A repeat with the same ids, or the
    same key, is answered like the first, as long as the events are there.
    """
    key = idempotency_key(request)
    sent = APPEND.read(document(request))
    nodes, most = sent["events"], tagged.store.most_events
    if len(nodes) > most:
        raise TooLarge("events", len(nodes), most, "items")
    events = tuple(map(tagged.event_of, nodes))
    fail_if = query_of(sent["failIf"], tagged.store) if "failIf" in sent else None
    after = position_of(sent)
    store, meter = tagged.on(request)
    listed = Listed(schemas.DEFAULT_LIMIT, tagged.link)
    after = None if after is None else store.verify_seals(after)
    outcome = store.try_append(events, fail_if=fail_if, after=after, takes=listed, idempotency_key=key)
    outcome = replace(outcome, position=store.sealed(outcome.position, writes=True))
    if isinstance(outcome, Conflict):
        raise listed.refused(outcome, meter.units)
    view = appended(outcome, meter.units)
    return answers.answer(meter, view, status=201, figures=answers.appends(events, replayed=outcome.replayed))


@operation(takes=QUERY, gives=EVENT_PAGE)
def query_tagged(tagged: Tagged, request: Request, _: QueryString) -> Response:
    """Read the events that match a query, and the position to append after.

    A page ends at its limit, at 4 MB, or after 1,000 events that were looked at, and may be empty: while `next` is not
    null, send the same request with it as `from`. All pages are of one moment.
    """
    sent = QUERY.read(document(request))
    backward, limit = sent["direction"] == "backward", sent["limit"]
    wanted = query_of(sent["query"], tagged.store)
    after, start = position_of(sent), sent.get("from")
    rest = None if start is None else parse_down(start) if backward else parse_rest(start)
    listed = Listed(limit, tagged.link, positions=sent["positions"])
    store, meter = tagged.on(request)
    found: TaggedPage | BackwardPage
    if isinstance(rest, Down) or (backward and rest is None):
        found = store.page_back(wanted, after=after, rest=rest, takes=listed, limit=limit)
    else:
        found = store.page(wanted, after=after, rest=rest, takes=listed, limit=limit)
    if found.position is not None:
        found = replace(found, position=store.sealed(found.position, writes=False))
    return answers.answer(meter, _page(found, listed))


@operation(parameters=(parameters.path("id", ID),), gives=EVENT, fails=(problems.EVENT_NOT_FOUND,))
def read_tagged(tagged: Tagged, request: Request, _: QueryString) -> Response:
    """Read a tagged event by its id.

    Strongly consistent. By an id that its writer has chosen.
    """
    event_id = parse_event_id(request.path["id"])
    store, meter = tagged.on(request)
    found = store.event(event_id)
    if found is None:
        raise Problem(problems.EVENT_NOT_FOUND, f"there is no event {event_id}")
    return answers.answer(meter, _single(found, tagged.link))


@operation(
    parameters=(
        parameters.query("tag", {**TAG, "description": "Only events with this tag."}),
        _FROM,
        parameters.query("limit", schemas.whole("Events at most.", 1, MAX_TAGS, default=MAX_TAGS)),
    ),
    gives=LISTED,
)
def list_tagged(tagged: Tagged, request: Request, asked: QueryString) -> Response:
    """List events, or a tag's, that came after a place.

    In order of their places. A page ends at its limit or at 4 MB, and never between events of one place. A tag's are
    strongly consistent. All events come from the stream that has them, where the stage has one (`tagged_everything`);
    without `tag` it is refused otherwise.
    """
    tag = asked.text("tag")
    if tag is not None:
        check_tag(tag, "tag")
    since, limit = _since(asked), asked.limit()
    store, meter = tagged.on(request)
    pages = TagPages(listings=listings_of(store))
    listed = pages.all_events if tag is None else partial(pages.tagged, tag)
    found = listed(since=since, limit=limit)
    return answers.answer(meter, _listed(found, tagged.link))


def _since(asked: QueryString) -> str | None:
    """Return the query parameter `from` as a place; None where it is absent."""
    since = asked.text("from")
    return None if since is None else parse_place(since, "from")


@operation(
    parameters=(parameters.query("from", {**PLACE, "description": "Only events after this place."}),),
    gives=COUNT,
)
def count_tagged(tagged: Tagged, request: Request, asked: QueryString) -> Response:
    """Count all events, or those that came after a place.

    As the stream of all events says, where the stage has one (`tagged_everything`). Of a tag `readTag` tells the
    number.
    """
    since = _since(asked)
    store, meter = tagged.on(request)
    return answers.answer(meter, COUNT(events=listings_of(store).count(since=since)))


@operation(
    parameters=(
        parameters.query(
            "group", schemas.text("Only tags that have this before their first `:`.", most=MAX_TAG_BYTES)
        ),
        parameters.query("tag", {**TAG, "description": "Only this tag, whatever characters it has."}),
        parameters.query("from", {**TAG, "description": "`next` of the page before."}),
        parameters.query("limit", schemas.whole("Tags at most.", 1, MAX_TAGS, default=MAX_TAGS)),
    ),
    gives=TAG_PAGE,
)
def list_tags(tagged: Tagged, request: Request, asked: QueryString) -> Response:
    """List tags with their numbers of events.

    Those of a group, or of all, by reading through the table of streams, in no order. A page may be empty: go by
    `next`.
    """
    tag, group, start = asked.text("tag"), asked.text("group"), asked.text("from")
    if tag is not None and (group is not None or start is not None):
        raise InvalidInput("tag", "asks for one tag: without group and from")
    if tag is not None:
        check_tag(tag, "tag")
    limit = asked.limit()
    store, meter = tagged.on(request)
    listings = listings_of(store)
    if tag is None:
        found = _tags_from(listings, group, start, limit)
    else:
        counts = () if listings.latest(tag) is None else tuple(listings.counted([tag]))
        found = TagPage(tags=counts, next=None)
    return answers.answer(meter, TAG_PAGE(found, tags=list(map(TAG_COUNT, found.tags))))


def _tags_from(listings: Listings, group: str | None, start: str | None, limit: int) -> TagPage:
    """Read a page of tags; errors name the parameter `from` instead of `after`.

    Args:
        start: `next` of the page before; None for the beginning.
    """
    try:
        return TagPages(listings=listings).tags(group, after=start, limit=limit)
    except InvalidInput as error:
        raise InvalidInput("from" if error.field == "after" else error.field, error.rule) from error


@operation(parameters=(_TAG,), gives=TAG_SHOWN, fails=(problems.TAG_NOT_FOUND,))
def read_tag(tagged: Tagged, request: Request, _: QueryString) -> Response:
    """Read how many events a tag has, and which is the latest.

    Strongly consistent. A path cannot hold every tag: for one with `/` or `%` list it by `?tag=`.
    """
    tag = check_tag(request.path["tag"], "tag")
    store, meter = tagged.on(request)
    listings = listings_of(store)
    latest = listings.latest(tag)
    if latest is None:
        raise Problem(problems.TAG_NOT_FOUND, f"no event has the tag {tag}")
    (count,) = listings.counted([tag])
    return answers.answer(meter, tag_shown(count, latest))


@operation(
    parameters=(
        _TAG,
        _FROM,
        parameters.query("limit", schemas.whole("Entries at most.", 1, MAX_TAGS, default=MAX_TAGS)),
    ),
    gives=ENTRIES,
)
def list_entries(tagged: Tagged, request: Request, asked: QueryString) -> Response:
    """List a tag's entries that came after a place.

    Which events the tag has, without their bodies: what is counted is listed. None where no event has the tag.
    """
    tag = check_tag(request.path["tag"], "tag")
    since, limit = _since(asked), asked.limit()
    store, meter = tagged.on(request)
    found = TagPages(listings=listings_of(store)).entries(tag, since=since, limit=limit)
    return answers.answer(meter, ENTRIES(found, entries=list(map(ENTRY, found.items))))
