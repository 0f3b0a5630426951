"""Listing tagged events and their tags.

Pages of what a store lists are bounded; each says where the next one goes on.
"""

from __future__ import annotations

from functools import partial

from epochal.errors import InvalidInput
from epochal.http import problems
from epochal.http.document import no_document
from epochal.http.operation import Request, Response
from epochal.http.performers import answer
from epochal.http.problems import Problem
from epochal.http.query import QueryParameters, nothing
from epochal.http.tagged import representation
from epochal.http.tagged.operations import Tagged, opened
from epochal.model.dcb import SortableId, check_tag, parse_sortable_id
from epochal.store.listings import Listings
from epochal.store.tag_pages import MAX_LIMIT, TagPage, TagPages

__all__ = ["count_tagged", "list_entries", "list_tagged", "list_tags", "opened", "read_tag"]


def list_tagged(tagged: Tagged, request: Request) -> Response:
    """A page of all events, or of a tag's, after a sortable id."""
    no_document(request)
    query = QueryParameters(request, ("tag", "from", "limit"))
    tag = query.text("tag")
    if tag is not None:
        check_tag(tag, "tag")
    since, limit = _since(query), query.whole("limit", 1, MAX_LIMIT) or MAX_LIMIT
    store, meter = tagged.on(request)
    pages = TagPages(listings=store.listings)
    listed = pages.all_events if tag is None else partial(pages.tagged, tag)
    found = listed(since=since, limit=limit)
    return answer(meter, representation.listed(found, tagged.link))


def _since(query: QueryParameters) -> SortableId | None:
    since = query.text("from")
    return None if since is None else parse_sortable_id(since, "from")


def count_tagged(tagged: Tagged, request: Request) -> Response:
    """How many events there are after a sortable id."""
    no_document(request)
    since = _since(QueryParameters(request, ("from",)))
    store, meter = tagged.on(request)
    count = store.listings.count(since=since)
    return answer(meter, {"events": count})


def list_tags(tagged: Tagged, request: Request) -> Response:
    """A page of tags: of a group, of all, or the one that is asked for."""
    no_document(request)
    given = QueryParameters(request, ("group", "tag", "from", "limit"))
    tag, group, start = given.text("tag"), given.text("group"), given.text("from")
    if tag is not None and (group is not None or start is not None):
        raise InvalidInput("tag", "asks for one tag: without group and from")
    if tag is not None:
        check_tag(tag, "tag")
    limit = given.whole("limit", 1, MAX_LIMIT) or MAX_LIMIT
    store, meter = tagged.on(request)
    listings = store.listings
    if tag is None:
        return answer(meter, representation.tags(_tags_from(listings, group, start, limit)))
    counts = () if listings.latest(tag) is None else tuple(listings.counted([tag]))
    return answer(meter, representation.tags(TagPage(tags=counts, next=None)))


def _tags_from(listings: Listings, group: str | None, start: str | None, limit: int) -> TagPage:
    try:
        return TagPages(listings=listings).tags(group, after=start, limit=limit)
    except InvalidInput as error:
        raise InvalidInput("from" if error.field == "after" else error.field, error.rule) from error


def read_tag(tagged: Tagged, request: Request) -> Response:
    """How many events a tag has, and the latest of them."""
    nothing(request)
    tag = check_tag(request.path["tag"], "tag")
    store, meter = tagged.on(request)
    listings = store.listings
    latest = listings.latest(tag)
    if latest is None:
        raise Problem(problems.TAG_NOT_FOUND, f"no event has the tag {tag}")
    (count,) = listings.counted([tag])
    return answer(meter, representation.tag(count, latest))


def list_entries(tagged: Tagged, request: Request) -> Response:
    """A page of a tag's entries: which events it has had, without their bodies."""
    no_document(request)
    query = QueryParameters(request, ("from", "limit"))
    tag = check_tag(request.path["tag"], "tag")
    since, limit = _since(query), query.whole("limit", 1, MAX_LIMIT) or MAX_LIMIT
    store, meter = tagged.on(request)
    found = TagPages(listings=store.listings).entries(tag, since=since, limit=limit)
    return answer(meter, representation.entries(found))
