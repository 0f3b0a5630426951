"""Tagged events over HTTP: operations that append, query, read and list events and their tags.

A plug-in has the same operations on its own store (`operation.tagged_operations`).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

from epochal.deployment import Deployment
from epochal.errors import InvalidInput, TooLarge
from epochal.http import answers, parameters, problems, schemas
from epochal.http.answer_size import LARGEST
from epochal.http.bodies import Link
from epochal.http.components import Shown
from epochal.http.declarations import operation
from epochal.http.documents import document
from epochal.http.event_fields import TAG
from epochal.http.idempotency import idempotency_key
from epochal.http.metering import measured
from epochal.http.nodes import Node
from epochal.http.operation import Request, Response
from epochal.http.problems import Problem
from epochal.http.query_strings import QueryString
from epochal.http.sent_events import ID
from epochal.http.tag_pages import MAX_LIMIT as MAX_TAGS
from epochal.http.tag_pages import TagPage, TagPages
from epochal.http.tag_views import ENTRIES, ENTRY, TAG_COUNT, TAG_PAGE, TAG_SHOWN, build_tag_view
from epochal.http.tagged_requests import APPEND, PLACE, QUERY, event_of, position_of, query_of
from epochal.http.tagged_views import (
    APPENDED,
    EVENT,
    EVENT_PAGE,
    LISTED,
    Listed,
    build_append_view,
    build_listing_view,
    build_page_view,
    build_single_event_view,
)
from epochal.lazy_dataclasses import dataclass, replace
from epochal.model.events import MAX_TAG_BYTES, Event
from epochal.model.outcomes import Conflict
from epochal.model.tag_answers import BackwardPage, Down, TaggedPage, parse_down, parse_rest
from epochal.model.tags import check_tag, parse_event_id, parse_place
from epochal.store.driver import Meter
from epochal.store.listings import Listings, listings_of
from epochal.store.tagged import TaggedStore

COUNT: Final = Shown("EventCount", {"events": schemas.whole("Number of events.")})

_FROM: Final = parameters.query("from", {**PLACE, "description": "`next` of the previous page."})
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
    """Return a deployment's store of tagged events, without fetching from the bucket, and its link signer.

    Args:
        store: name of the deployment's property that holds the store.
    """
    tagged: TaggedStore = getattr(deployment, store)
    return Tagged(
        store=replace(tagged, fetch=False).with_body_limit(LARGEST), link=deployment.bucket.links.download
    )


@operation(
    parameters=(parameters.IDEMPOTENCY_KEY,),
    takes=APPEND,
    status=201,
    gives=APPENDED,
    fails=(problems.CONDITION_FAILED,),
)
def append_tagged(tagged: Tagged, request: Request, _: QueryString) -> Response:
    """Append tagged events, unless events match an optional condition.

    Appends all events or none. With `failIf`, the append is refused if a matching event lies beyond `after`; the answer
    then contains as many of these events as fit, and the position after them. A request with the same ids or the same
    key gets the answer of the first one, as long as the events exist.
    """
    key = idempotency_key(request)
    members = APPEND.read(document(request))
    nodes, most = members["events"], tagged.store.most_events
    if len(nodes) > most:
        raise TooLarge("events", len(nodes), most, "items")
    events = tuple(map(tagged.event_of, nodes))
    fail_if = query_of(members["failIf"], tagged.store) if "failIf" in members else None
    after = position_of(members)
    store, meter = tagged.on(request)
    listed = Listed(schemas.DEFAULT_LIMIT, tagged.link)
    after = None if after is None else store.verify_seals(after)
    outcome = store.try_append(events, fail_if=fail_if, after=after, takes=listed, idempotency_key=key)
    outcome = replace(outcome, position=store.seal_position(outcome.position, writes=True))
    if isinstance(outcome, Conflict):
        raise listed.refused(outcome, meter.units)
    view = build_append_view(outcome, meter.units)
    return answers.answer(meter, view, status=201, figures=answers.appends(events, replayed=outcome.replayed))


@operation(takes=QUERY, gives=EVENT_PAGE)
def query_tagged(tagged: Tagged, request: Request, _: QueryString) -> Response:
    """Read a page of the events that match a query, and the position to append after.

    A page ends at its limit, at 4 MB, or after 1,000 examined events, and may be empty. While `next` is not null,
    repeat the request with it as `from`. All pages show the same moment.
    """
    members = QUERY.read(document(request))
    backward, limit = members["direction"] == "backward", members["limit"]
    query = query_of(members["query"], tagged.store)
    after, start = position_of(members), members.get("from")
    rest = None if start is None else parse_down(start) if backward else parse_rest(start)
    listed = Listed(limit, tagged.link, positions=members["positions"])
    store, meter = tagged.on(request)
    page: TaggedPage | BackwardPage
    if isinstance(rest, Down) or (backward and rest is None):
        page = store.page_back(query, after=after, rest=rest, takes=listed, limit=limit)
    else:
        page = store.page(query, after=after, rest=rest, takes=listed, limit=limit)
    if page.position is not None:
        page = replace(page, position=store.seal_position(page.position, writes=False))
    return answers.answer(meter, build_page_view(page, listed))


@operation(parameters=(parameters.path("id", ID),), gives=EVENT, fails=(problems.EVENT_NOT_FOUND,))
def read_tagged(tagged: Tagged, request: Request, _: QueryString) -> Response:
    """Read a tagged event by its id.

    A strongly consistent read by the id that the writer has chosen.
    """
    event_id = parse_event_id(request.path["id"])
    store, meter = tagged.on(request)
    event = store.event(event_id)
    if event is None:
        raise Problem(problems.EVENT_NOT_FOUND, f"there is no event {event_id}")
    return answers.answer(meter, build_single_event_view(event, tagged.link))


@operation(
    parameters=(
        parameters.query("tag", {**TAG, "description": "Only events with this tag."}),
        _FROM,
        parameters.query("limit", schemas.whole("Largest number of events.", 1, MAX_TAGS, default=MAX_TAGS)),
    ),
    gives=LISTED,
)
def list_tagged(tagged: Tagged, request: Request, query: QueryString) -> Response:
    """List a page of all events, or of the events of a tag, after a place.

    Lists events in the order of their places. A page ends at its limit or at 4 MB, and never between events of the same
    place. With `tag`, the read is strongly consistent. Without `tag`, the stage must have the setting
    `tagged_everything`; otherwise the request is refused.
    """
    tag = query.text("tag")
    if tag is not None:
        check_tag(tag, "tag")
    since, limit = _since(query), query.limit()
    store, meter = tagged.on(request)
    pages = TagPages(listings=listings_of(store))
    listed = pages.all_events if tag is None else partial(pages.tagged, tag)
    page = listed(since=since, limit=limit)
    return answers.answer(meter, build_listing_view(page, tagged.link))


def _since(query: QueryString) -> str | None:
    """Return the query parameter `from` as a place; None where it is absent."""
    since = query.text("from")
    return None if since is None else parse_place(since, "from")


@operation(
    parameters=(parameters.query("from", {**PLACE, "description": "Only events after this place."}),),
    gives=COUNT,
)
def count_tagged(tagged: Tagged, request: Request, query: QueryString) -> Response:
    """Count all events, or the events after a place.

    Available if the stage has the setting `tagged_everything`. For the number of events of a tag, use `readTag`.
    """
    since = _since(query)
    store, meter = tagged.on(request)
    return answers.answer(meter, COUNT(events=listings_of(store).count(since=since)))


@operation(
    parameters=(
        parameters.query(
            "group",
            schemas.text("Only tags of this group, the text before the first `:`.", most=MAX_TAG_BYTES),
        ),
        parameters.query("tag", {**TAG, "description": "Only this tag, which may contain any characters."}),
        parameters.query("from", {**TAG, "description": "`next` of the previous page."}),
        parameters.query("limit", schemas.whole("Largest number of tags.", 1, MAX_TAGS, default=MAX_TAGS)),
    ),
    gives=TAG_PAGE,
)
def list_tags(tagged: Tagged, request: Request, query: QueryString) -> Response:
    """List a page of tags, or one tag, with their numbers of events.

    Lists the tags of a group, or all tags, by scanning the table of streams, in no particular order. A page may be
    empty although more follow: continue with `next`.
    """
    tag, group, start = query.text("tag"), query.text("group"), query.text("from")
    if tag is not None and (group is not None or start is not None):
        raise InvalidInput("tag", "must not be given together with group or from")
    if tag is not None:
        check_tag(tag, "tag")
    limit = query.limit()
    store, meter = tagged.on(request)
    listings = listings_of(store)
    if tag is None:
        page = _tags_from(listings, group, start, limit)
    else:
        counts = () if listings.latest(tag) is None else tuple(listings.counted([tag]))
        page = TagPage(tags=counts, next=None)
    return answers.answer(meter, TAG_PAGE(page, tags=list(map(TAG_COUNT, page.tags))))


def _tags_from(listings: Listings, group: str | None, start: str | None, limit: int) -> TagPage:
    """Read a page of a group's tags, or of all tags; errors say `from` instead of `after`.

    Args:
        start: `next` of the page before; None for the beginning.
    """
    try:
        return TagPages(listings=listings).tags(group, after=start, limit=limit)
    except InvalidInput as error:
        raise InvalidInput("from" if error.field == "after" else error.field, error.rule) from error


@operation(parameters=(_TAG,), gives=TAG_SHOWN, fails=(problems.TAG_NOT_FOUND,))
def read_tag(tagged: Tagged, request: Request, _: QueryString) -> Response:
    """Read the number of events of a tag, and its latest event.

    A strongly consistent read. A path cannot contain every tag: for a tag with `/` or `%`, use `GET /tags?tag=`.
    """
    tag = check_tag(request.path["tag"], "tag")
    store, meter = tagged.on(request)
    listings = listings_of(store)
    latest = listings.latest(tag)
    if latest is None:
        raise Problem(problems.TAG_NOT_FOUND, f"no event has the tag {tag}")
    (count,) = listings.counted([tag])
    return answers.answer(meter, build_tag_view(count, latest))


@operation(
    parameters=(
        _TAG,
        _FROM,
        parameters.query("limit", schemas.whole("Largest number of entries.", 1, MAX_TAGS, default=MAX_TAGS)),
    ),
    gives=ENTRIES,
)
def list_entries(tagged: Tagged, request: Request, query: QueryString) -> Response:
    """List a page of a tag's events, without their bodies, after a place.

    Lists the events of a tag without their bodies, exactly those that are counted. The list is empty if no event has
    the tag.
    """
    tag = check_tag(request.path["tag"], "tag")
    since, limit = _since(query), query.limit()
    store, meter = tagged.on(request)
    page = TagPages(listings=listings_of(store)).entries(tag, since=since, limit=limit)
    return answers.answer(meter, ENTRIES(page, entries=list(map(ENTRY, page.items))))
