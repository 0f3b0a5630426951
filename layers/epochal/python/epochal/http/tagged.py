"""Appending tagged events, querying them, reading one, listing them and their tags.

The same operations are there for those in pages, below `/events` and `/tags`, and for those in Sekiban's tables, below
`/dcb`. Bodies in the bucket are answered with a link: they may be larger than a function's memory. Pages of what a
store lists are bounded; each says where the next one goes on.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from epochal.deployment import Deployment
from epochal.errors import InvalidInput
from epochal.http import problems, tagged_shapes
from epochal.http.bodies import Link, answer, appends, measured
from epochal.http.fields import (
    DEFAULT_LIMIT,
    MAX_LIMIT,
    Node,
    QueryString,
    document,
    idempotency_key,
    required,
)
from epochal.http.operation import Request, Response
from epochal.http.problems import Problem
from epochal.http.shapes import IDEMPOTENCY_KEY, MEGABYTES, operation, path, query, text, whole
from epochal.http.stream_shapes import ID, MAX_POSITION_BYTES, TAG
from epochal.http.tagged_shapes import (
    APPEND,
    APPENDED,
    COUNT,
    ENTRIES,
    ENTRY,
    EVENT,
    EVENT_PAGE,
    LISTED,
    PLACE,
    QUERY,
    TAG_COUNT,
    TAG_PAGE,
    TAG_SHOWN,
    Listed,
    event_of,
    position_of,
    query_of,
)
from epochal.model.dcb import check_tag, parse_event_id, parse_place
from epochal.model.events import Event
from epochal.model.names import MAX_TAG_BYTES
from epochal.model.outcomes import Conflict
from epochal.model.tagged_results import BackwardPage, Down, TaggedPage, parse_down, parse_rest
from epochal.store.driver import Meter
from epochal.store.listings import Listings
from epochal.store.tag_pages import MAX_LIMIT as MAX_TAGS
from epochal.store.tag_pages import TagPage, TagPages
from epochal.store.tagged_store import TaggedStore

_FROM: Final = query("from", {**PLACE, "description": "`next` of the page before."})
_TAG: Final = path("tag", TAG)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tagged:
    """What the operations run on.

    Attributes:
        link: signs downloads from the bucket.
        event_of: reads an event that is sent.
    """

    store: TaggedStore
    link: Link
    event_of: Callable[[Node], Event] = event_of

    def on(self, request: Request) -> tuple[TaggedStore, Meter]:
        """The store for one request."""
        return measured(self.store, request)


def opened(deployment: Deployment, store: str) -> Tagged:
    """A store of tagged events of a deployment, by its name there."""
    found: TaggedStore = getattr(deployment, store)
    return Tagged(store=replace(found, fetch=False), link=deployment.bucket.links.download)


@operation(
    "Append tagged events, unless what they were decided on has changed",
    "One transaction: all events or none. With `failIf` it is refused if an event that matches lies "
    "beyond `after`; the answer has these events, as many as fit, and the position that has seen them. A repeat "
    "with the same ids, or the same key, is answered like the first, as long as the events are there.",
    parameters=(IDEMPOTENCY_KEY,),
    takes=APPEND,
    status=201,
    gives=APPENDED,
    fails=(problems.CONDITION_FAILED,),
)
def append_tagged(tagged: Tagged, request: Request, _: QueryString) -> Response:
    """Append events, unless one that matches a query has been appended since a position."""
    key = idempotency_key(request)
    root = document(request)
    fields = root.members(APPEND.names)
    nodes = required(root, fields, "events").items(tagged.store.most_events)
    events = tuple(map(tagged.event_of, nodes))
    if not events:
        raise InvalidInput("events", "must not be empty")
    given = fields.get("failIf")
    fail_if = None if given is None else query_of(given, tagged.store)
    after = position_of(fields)
    store, meter = tagged.on(request)
    listed = Listed(DEFAULT_LIMIT, tagged.link)
    after = None if after is None else store.believed(after)
    outcome = store.try_append(events, fail_if=fail_if, after=after, takes=listed, idempotency_key=key)
    outcome = replace(outcome, position=store.sealed(outcome.position, writes=True))
    if isinstance(outcome, Conflict):
        raise listed.refused(outcome, meter.units)
    view = tagged_shapes.appended(outcome, meter.units)
    return answer(meter, view, status=201, figures=appends(events, replayed=outcome.replayed))


@operation(
    "Read the events that match a query, and the position to append after",
    f"A page ends at its limit, at {MEGABYTES} MB, or after 1,000 events that were looked at, and may "
    "be empty: while `next` is not null, send the same request with it as `from`. All pages are of one moment.",
    takes=QUERY,
    gives=EVENT_PAGE,
)
def query_tagged(tagged: Tagged, request: Request, _: QueryString) -> Response:
    """A page of the events that match a query."""
    root = document(request)
    fields = root.members(QUERY.names)
    backward = "direction" in fields and _is_backward(fields["direction"])
    wanted = query_of(required(root, fields, "query"), tagged.store)
    after = position_of(fields)
    start = fields["from"].text(2 * MAX_POSITION_BYTES) if "from" in fields else None
    rest = None if start is None else parse_down(start) if backward else parse_rest(start)
    limit = fields["limit"].whole(1, MAX_LIMIT) if "limit" in fields else DEFAULT_LIMIT
    positions = "positions" in fields and fields["positions"].flag()
    listed = Listed(limit, tagged.link, positions=positions)
    store, meter = tagged.on(request)
    found: TaggedPage | BackwardPage
    if isinstance(rest, Down) or (backward and rest is None):
        found = store.page_back(wanted, after=after, rest=rest, takes=listed, limit=limit)
    else:
        found = store.page(wanted, after=after, rest=rest, takes=listed, limit=limit)
    if found.position is not None:
        found = replace(found, position=store.sealed(found.position, writes=False))
    return answer(meter, tagged_shapes.page(found, listed))


def _is_backward(node: Node) -> bool:
    if node.value not in ("forward", "backward"):
        raise InvalidInput(node.name, "must be forward or backward")
    return bool(node.value == "backward")


@operation(
    "Read a tagged event by its id",
    "Strongly consistent. By an id that its writer has chosen; below `/dcb` by any.",
    parameters=(path("id", ID),),
    gives=EVENT,
    fails=(problems.EVENT_NOT_FOUND,),
)
def read_tagged(tagged: Tagged, request: Request, _: QueryString) -> Response:
    """One event by its id."""
    event_id = parse_event_id(request.path["id"])
    store, meter = tagged.on(request)
    found = store.event(event_id)
    if found is None:
        raise Problem(problems.EVENT_NOT_FOUND, f"there is no event {event_id}")
    return answer(meter, tagged_shapes.single(found, tagged.link))


@operation(
    "List events, or a tag's, that came after a place",
    f"In order of their places. A page ends at its limit or at {MEGABYTES} MB, and never between "
    "events of one place. A tag's are strongly consistent. All events come from the stream that has them, where the "
    "stage has one (`tagged_everything`); without `tag` it is refused otherwise. Below `/dcb` all events come "
    "through an index that lags by moments; what an append that is under way brings later may sort before what was "
    "listed; and events that have expired are missing.",
    parameters=(
        query("tag", {**TAG, "description": "Only events with this tag."}),
        _FROM,
        query("limit", whole("Events at most.", 1, MAX_TAGS, default=MAX_TAGS)),
    ),
    gives=LISTED,
)
def list_tagged(tagged: Tagged, request: Request, asked: QueryString) -> Response:
    """A page of all events, or of a tag's, after a place."""
    tag = asked.text("tag")
    if tag is not None:
        check_tag(tag, "tag")
    since, limit = _since(asked), asked.limit()
    store, meter = tagged.on(request)
    pages = TagPages(listings=store.listings)
    listed = pages.all_events if tag is None else partial(pages.tagged, tag)
    found = listed(since=since, limit=limit)
    return answer(meter, tagged_shapes.listed(found, tagged.link))


def _since(asked: QueryString) -> str | None:
    since = asked.text("from")
    return None if since is None else parse_place(since, "from")


@operation(
    "Count all events, or those that came after a place",
    "As the stream of all events says, where the stage has one (`tagged_everything`). Below `/dcb` by "
    "walking an index that lags by moments, which costs what it holds. Of a tag `readTag` tells the number.",
    parameters=(query("from", {**PLACE, "description": "Only events after this place."}),),
    gives=COUNT,
)
def count_tagged(tagged: Tagged, request: Request, asked: QueryString) -> Response:
    """How many events there are after a place."""
    since = _since(asked)
    store, meter = tagged.on(request)
    return answer(meter, COUNT(events=store.listings.count(since=since)))


@operation(
    "List tags with their numbers of events",
    "Those of a group, or of all, by reading through the table of streams. A page may be empty: go by "
    "`next`. Below `/dcb` an index has those of a group, in order; it lags by moments.",
    parameters=(
        query("group", text("Only tags that have this before their first `:`.", most=MAX_TAG_BYTES)),
        query("tag", {**TAG, "description": "Only this tag, whatever characters it has."}),
        query("from", {**TAG, "description": "`next` of the page before."}),
        query("limit", whole("Tags at most.", 1, MAX_TAGS, default=MAX_TAGS)),
    ),
    gives=TAG_PAGE,
)
def list_tags(tagged: Tagged, request: Request, asked: QueryString) -> Response:
    """A page of tags: of a group, of all, or the one that is asked for."""
    tag, group, start = asked.text("tag"), asked.text("group"), asked.text("from")
    if tag is not None and (group is not None or start is not None):
        raise InvalidInput("tag", "asks for one tag: without group and from")
    if tag is not None:
        check_tag(tag, "tag")
    limit = asked.limit()
    store, meter = tagged.on(request)
    listings = store.listings
    if tag is None:
        found = _tags_from(listings, group, start, limit)
    else:
        counts = () if listings.latest(tag) is None else tuple(listings.counted([tag]))
        found = TagPage(tags=counts, next=None)
    return answer(meter, TAG_PAGE(found, tags=list(map(TAG_COUNT, found.tags))))


def _tags_from(listings: Listings, group: str | None, start: str | None, limit: int) -> TagPage:
    try:
        return TagPages(listings=listings).tags(group, after=start, limit=limit)
    except InvalidInput as error:
        raise InvalidInput("from" if error.field == "after" else error.field, error.rule) from error


@operation(
    "Read how many events a tag has, and which is the latest",
    "Strongly consistent. A path cannot hold every tag: for one with `/` or `%` list it by `?tag=`.",
    parameters=(_TAG,),
    gives=TAG_SHOWN,
    fails=(problems.TAG_NOT_FOUND,),
)
def read_tag(tagged: Tagged, request: Request, _: QueryString) -> Response:
    """How many events a tag has, and the latest of them."""
    tag = check_tag(request.path["tag"], "tag")
    store, meter = tagged.on(request)
    listings = store.listings
    latest = listings.latest(tag)
    if latest is None:
        raise Problem(problems.TAG_NOT_FOUND, f"no event has the tag {tag}")
    (count,) = listings.counted([tag])
    return answer(meter, tagged_shapes.tag(count, latest))


@operation(
    "List a tag's entries that came after a place",
    "Which events the tag has, without their bodies: what is counted is listed. Below `/dcb` also "
    "those that have expired, of which the entry is all that is left. None where no event has the tag.",
    parameters=(_TAG, _FROM, query("limit", whole("Entries at most.", 1, MAX_TAGS, default=MAX_TAGS))),
    gives=ENTRIES,
)
def list_entries(tagged: Tagged, request: Request, asked: QueryString) -> Response:
    """A page of a tag's entries: which events it has had, without their bodies."""
    tag = check_tag(request.path["tag"], "tag")
    since, limit = _since(asked), asked.limit()
    store, meter = tagged.on(request)
    found = TagPages(listings=store.listings).entries(tag, since=since, limit=limit)
    return answer(meter, ENTRIES(found, entries=list(map(ENTRY, found.items))))
