"""The operations on tagged events and their tags."""

from __future__ import annotations

from functools import partial
from typing import Final

from epochal.deployment import Deployment
from epochal.errors import InvalidInput
from epochal.http import problems
from epochal.http.document import document, no_document
from epochal.http.fields import Node, required
from epochal.http.operation import Request, Response
from epochal.http.performers import answer, appends, consumed, measured
from epochal.http.problems import Problem
from epochal.http.query import DEFAULT_LIMIT, MAX_LIMIT, Query, nothing
from epochal.http.tagged import representation
from epochal.http.tagged.representation import MAX_POSITION_BYTES, position_of
from epochal.model.dcb import SortableId, check_tag, parse_event_id, parse_sortable_id
from epochal.model.positions import write_position
from epochal.model.tagged_results import (
    BackwardPage,
    Down,
    TaggedConflict,
    TaggedPage,
    parse_down,
    parse_rest,
)
from epochal.plan.limits import TRANSACTION_ITEMS
from epochal.plan.units import Units
from epochal.store.dcb_events import DcbEvents
from epochal.store.tag_listings import TagListings
from epochal.store.tag_pages import MAX_LIMIT as MAX_TAGS
from epochal.store.tag_pages import TagPage, TagPages

MAX_EVENTS: Final = (TRANSACTION_ITEMS - 1) // 2
"""Events of an append: each has an entry at least, and they share a head at best. More tags leave room for fewer."""


def opened(deployment: Deployment) -> DcbEvents:
    """The tagged events of a deployment."""
    return deployment.dcb


def append_tagged(store: DcbEvents, request: Request) -> Response:
    """Append events, unless one that matches a query has been appended since a position."""
    Query(request)
    if request.header("Idempotency-Key") is not None:
        raise InvalidInput("Idempotency-Key", "is not known to tagged events: give the events ids instead")
    root = document(request)
    fields = root.members(("events", "failIf", "after"))
    events = tuple(map(representation.event_of, required(root, fields, "events").items(MAX_EVENTS)))
    if not events:
        raise InvalidInput("events", "must not be empty")
    given, heads = fields.get("failIf"), store.site.type_heads
    fail_if = None if given is None else representation.query_of(given, type_heads=heads)
    after = position_of(fields)
    store, meter = measured(store, request)
    listed = representation.Listed(DEFAULT_LIMIT)
    outcome = store.try_append(events, fail_if=fail_if, after=after, takes=listed)
    if isinstance(outcome, TaggedConflict):
        raise _refused(outcome, listed, meter.units)
    view = representation.appended(outcome, meter.units, conditional=fail_if is not None)
    return answer(meter, view, status=201, figures=appends(events, replayed=outcome.replayed))


def _refused(rejected: TaggedConflict, listed: representation.Listed, units: Units) -> Problem:
    """The events in the way, with which a writer decides anew without another read."""
    return Problem(
        problems.CONDITION_FAILED,
        "events that match failIf have been appended: decide again with them, and append after this position",
        figures={"Conflicts": 1.0, **consumed(units)},
        events=listed.views,
        position=write_position(rejected.position),
        more=rejected.more,
    )


def query_tagged(store: DcbEvents, request: Request) -> Response:
    """A page of the events that match a query."""
    Query(request)
    root = document(request)
    fields = root.members(("query", "after", "from", "limit", "direction", "positions"))
    backward = "direction" in fields and _is_backward(fields["direction"])
    query = representation.query_of(required(root, fields, "query"), type_heads=store.site.type_heads)
    after = position_of(fields)
    start = fields["from"].text(2 * MAX_POSITION_BYTES) if "from" in fields else None
    rest = None if start is None else parse_down(start) if backward else parse_rest(start)
    limit = fields["limit"].whole(1, MAX_LIMIT) if "limit" in fields else DEFAULT_LIMIT
    listed = representation.Listed(limit, positions="positions" in fields and fields["positions"].flag())
    store, meter = measured(store, request)
    found: TaggedPage | BackwardPage
    if isinstance(rest, Down) or (backward and rest is None):
        found = store.page_back(query, after=after, rest=rest, takes=listed)
    else:
        found = store.page(query, after=after, rest=rest, takes=listed)
    return answer(meter, representation.page(found, listed))


def _is_backward(node: Node) -> bool:
    if node.value not in ("forward", "backward"):
        raise InvalidInput(node.name, "must be forward or backward")
    return bool(node.value == "backward")


def list_tagged(store: DcbEvents, request: Request) -> Response:
    """A page of all events, or of a tag's, after a sortable id."""
    no_document(request)
    query = Query(request, ("tag", "from", "limit"))
    tag = query.text("tag")
    if tag is not None:
        check_tag(tag, "tag")
    since, limit = _since(query), query.whole("limit", 1, MAX_TAGS) or MAX_TAGS
    store, meter = measured(store, request)
    pages = TagPages(listings=TagListings(store=store))
    listed = pages.all_events if tag is None else partial(pages.tagged, tag)
    found = listed(since=since, limit=limit)
    return answer(meter, representation.listed(found))


def _since(query: Query) -> SortableId | None:
    since = query.text("from")
    return None if since is None else parse_sortable_id(since, "from")


def count_tagged(store: DcbEvents, request: Request) -> Response:
    """How many events there are after a sortable id."""
    no_document(request)
    since = _since(Query(request, ("from",)))
    store, meter = measured(store, request)
    count = TagListings(store=store).count(since=since)
    return answer(meter, {"events": count})


def read_tagged(store: DcbEvents, request: Request) -> Response:
    """One event by its id."""
    nothing(request)
    event_id = parse_event_id(request.path["id"])
    store, meter = measured(store, request)
    found = store.event(event_id)
    if found is None:
        raise Problem(problems.EVENT_NOT_FOUND, f"there is no event {event_id}, or it has expired")
    return answer(meter, representation.event(found))


def list_tags(store: DcbEvents, request: Request) -> Response:
    """A page of tags: of a group, of all, or the one that is asked for."""
    no_document(request)
    given = Query(request, ("group", "tag", "from", "limit"))
    tag, group, start = given.text("tag"), given.text("group"), given.text("from")
    if tag is not None and (group is not None or start is not None):
        raise InvalidInput("tag", "asks for one tag: without group and from")
    if tag is not None:
        check_tag(tag, "tag")
    limit = given.whole("limit", 1, MAX_TAGS) or MAX_TAGS
    store, meter = measured(store, request)
    listings = TagListings(store=store)
    if tag is None:
        return answer(meter, representation.tags(_tags_from(listings, group, start, limit)))
    counts = () if listings.latest(tag) is None else tuple(listings.counted([tag]))
    return answer(meter, representation.tags(TagPage(tags=counts, next=None)))


def _tags_from(listings: TagListings, group: str | None, start: str | None, limit: int) -> TagPage:
    try:
        return TagPages(listings=listings).tags(group, after=start, limit=limit)
    except InvalidInput as error:
        raise InvalidInput("from" if error.field == "after" else error.field, error.rule) from error


def read_tag(store: DcbEvents, request: Request) -> Response:
    """How many events a tag has, and the latest of them."""
    nothing(request)
    tag = check_tag(request.path["tag"], "tag")
    store, meter = measured(store, request)
    listings = TagListings(store=store)
    latest = listings.latest(tag)
    if latest is None:
        raise Problem(problems.TAG_NOT_FOUND, f"no event has the tag {tag}")
    (count,) = listings.counted([tag])
    return answer(meter, representation.tag(count, latest))
