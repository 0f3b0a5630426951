"""The operations that read tagged events and their tags."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from epochal.deployment import Deployment
from epochal.errors import InvalidInput
from epochal.http import problems
from epochal.http.answer_size import text_of
from epochal.http.document import document, no_document
from epochal.http.fields import Node, required
from epochal.http.operation import Request, Response
from epochal.http.performers import consumed, measured
from epochal.http.problems import Problem
from epochal.http.query import DEFAULT_LIMIT, MAX_LIMIT, Query, nothing
from epochal.http.tagged import representation
from epochal.http.tagged.representation import MAX_POSITION_BYTES, position_of
from epochal.model.dcb import (
    Position,
    SortableId,
    check_tag,
    parse_event_id,
    parse_sortable_id,
)
from epochal.model.dcb import Query as EventQuery
from epochal.model.tagged_results import (
    BackwardPage,
    Down,
    Rest,
    TaggedPage,
    parse_down,
    parse_rest,
)
from epochal.store.tag_listings import TagListings
from epochal.store.tag_pages import MAX_LIMIT as MAX_TAGS
from epochal.store.tag_pages import TagPage, TagPages
from epochal.store.tagged import TaggedEvents


def opened(deployment: Deployment) -> TaggedEvents:
    """The tagged events of a deployment."""
    return deployment.tagged


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryTagged:
    """`POST /dcb/query`."""

    query: EventQuery
    after: Position | None
    rest: Rest | Down | None
    limit: int
    backward: bool = False
    positions: bool = False


def _parse_query_tagged(request: Request, *, type_heads: bool) -> QueryTagged:
    """Parse a query."""
    Query(request)
    root = document(request)
    fields = root.members(("query", "after", "from", "limit", "direction", "positions"))
    backward = "direction" in fields and _is_backward(fields["direction"])
    return QueryTagged(
        query=representation.query_of(required(root, fields, "query"), type_heads=type_heads),
        after=position_of(fields),
        rest=_rest(fields["from"].text(2 * MAX_POSITION_BYTES), backward=backward)
        if "from" in fields
        else None,
        limit=fields["limit"].whole(1, MAX_LIMIT) if "limit" in fields else DEFAULT_LIMIT,
        backward=backward,
        positions="positions" in fields and fields["positions"].flag(),
    )


def _is_backward(node: Node) -> bool:
    if node.value not in ("forward", "backward"):
        raise InvalidInput(node.name, "must be forward or backward")
    return bool(node.value == "backward")


def _rest(written: str, *, backward: bool) -> Rest | Down:
    return parse_down(written) if backward else parse_rest(written)


def query_tagged(store: TaggedEvents, request: Request) -> Response:
    """A page of the events that match a query."""
    command = _parse_query_tagged(request, type_heads=store.site.type_heads)
    store, meter = measured(store, request)
    listed = representation.Listed(command.limit, positions=command.positions)
    found = _page(store, command, listed)
    return Response(
        status=200, body=text_of(representation.page(found, listed)), figures=consumed(meter.units)
    )


def _page(
    store: TaggedEvents, command: QueryTagged, listed: representation.Listed
) -> TaggedPage | BackwardPage:
    if isinstance(command.rest, Down) or (command.backward and command.rest is None):
        return store.page_back(command.query, after=command.after, rest=command.rest, takes=listed)
    return store.page(command.query, after=command.after, rest=command.rest, takes=listed)


def list_tagged(store: TaggedEvents, request: Request) -> Response:
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
    return Response(status=200, body=text_of(representation.listed(found)), figures=consumed(meter.units))


def _since(query: Query) -> SortableId | None:
    since = query.text("from")
    return None if since is None else parse_sortable_id(since, "from")


def count_tagged(store: TaggedEvents, request: Request) -> Response:
    """How many events there are after a sortable id."""
    no_document(request)
    since = _since(Query(request, ("from",)))
    store, meter = measured(store, request)
    count = TagListings(store=store).count(since=since)
    return Response(status=200, body=text_of({"events": count}), figures=consumed(meter.units))


def read_tagged(store: TaggedEvents, request: Request) -> Response:
    """One event by its id."""
    nothing(request)
    event_id = parse_event_id(request.path["id"])
    store, meter = measured(store, request)
    found = store.event(event_id)
    if found is None:
        raise Problem(problems.EVENT_NOT_FOUND, f"there is no event {event_id}, or it has expired")
    return Response(status=200, body=text_of(representation.event(found)), figures=consumed(meter.units))


@dataclass(frozen=True, slots=True, kw_only=True)
class ListTags:
    """`GET /dcb/tags`: one tag, those of a group, or all."""

    tag: str | None
    group: str | None
    start: str | None
    limit: int


def _parse_list_tags(request: Request) -> ListTags:
    """Parse a listing of tags."""
    no_document(request)
    given = Query(request, ("group", "tag", "from", "limit"))
    tag, group, start = given.text("tag"), given.text("group"), given.text("from")
    if tag is not None and (group is not None or start is not None):
        raise InvalidInput("tag", "asks for one tag: without group and from")
    return ListTags(
        tag=None if tag is None else check_tag(tag, "tag"),
        group=group,
        start=start,
        limit=given.whole("limit", 1, MAX_TAGS) or MAX_TAGS,
    )


def list_tags(store: TaggedEvents, request: Request) -> Response:
    """A page of tags: of a group, of all, or the one that is asked for."""
    command = _parse_list_tags(request)
    store, meter = measured(store, request)
    listings = TagListings(store=store)
    if command.tag is not None:
        latest = listings.latest(command.tag)
        found = TagPage(tags=() if latest is None else tuple(listings.counted([command.tag])), next=None)
    else:
        found = _tags_from(listings, command)
    return Response(status=200, body=text_of(representation.tags(found)), figures=consumed(meter.units))


def _tags_from(listings: TagListings, command: ListTags) -> TagPage:
    try:
        return TagPages(listings=listings).tags(command.group, after=command.start, limit=command.limit)
    except InvalidInput as error:
        raise InvalidInput("from" if error.field == "after" else error.field, error.rule) from error


def read_tag(store: TaggedEvents, request: Request) -> Response:
    """How many events a tag has, and the latest of them."""
    nothing(request)
    tag = check_tag(request.path["tag"], "tag")
    store, meter = measured(store, request)
    listings = TagListings(store=store)
    latest = listings.latest(tag)
    if latest is None:
        raise Problem(problems.TAG_NOT_FOUND, f"no event has the tag {tag}")
    (count,) = listings.counted([tag])
    return Response(
        status=200, body=text_of(representation.tag(count, latest)), figures=consumed(meter.units)
    )
