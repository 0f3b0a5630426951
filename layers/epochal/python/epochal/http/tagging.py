"""The operations on tagged events: `append` serves the first, `replay` the others."""

from __future__ import annotations

from functools import partial

from epochal.errors import InvalidInput
from epochal.http import problems
from epochal.http import tagged_commands as commands
from epochal.http import tagged_views as views
from epochal.http.answer_size import text_of
from epochal.http.commands import DEFAULT_LIMIT
from epochal.http.message import Request, Response
from epochal.http.problems import Problem
from epochal.http.service import Operations, consumed, measured
from epochal.http.tagged_commands import QueryTagged
from epochal.model.positions import write_position
from epochal.model.tagged_results import BackwardPage, Down, TaggedAppended, TaggedConflict, TaggedPage
from epochal.plan.units import Units
from epochal.store.tag_listings import TagListings
from epochal.store.tag_pages import TagPage, TagPages
from epochal.store.tagged import TaggedEvents


def appending(store: TaggedEvents) -> Operations:
    """The operations that write, by name."""
    return {"appendTagged": partial(append_tagged, store)}


def replaying(store: TaggedEvents) -> Operations:
    """The operations that read, by name."""
    return {
        "queryTagged": partial(query_tagged, store),
        "listTagged": partial(list_tagged, store),
        "countTagged": partial(count_tagged, store),
        "readTagged": partial(read_tagged, store),
        "listTags": partial(list_tags, store),
        "readTag": partial(read_tag, store),
    }


def append_tagged(store: TaggedEvents, request: Request) -> Response:
    """Append events, unless one that matches a query has been appended since a position."""
    command = commands.append_tagged(request, type_heads=store.site.type_heads)
    store, meter = measured(store, request)
    listed = views.Listed(DEFAULT_LIMIT)
    outcome = store.try_append(command.events, fail_if=command.fail_if, after=command.after, takes=listed)
    match outcome:
        case TaggedAppended():
            body = views.appended(outcome, meter.units, conditional=command.fail_if is not None)
            written = {} if outcome.replayed else {"Appends": 1.0, "Events": float(len(command.events))}
            return Response(status=201, body=text_of(body), figures={**written, **consumed(meter.units)})
        case TaggedConflict():
            raise _refused(outcome, listed, meter.units)


def query_tagged(store: TaggedEvents, request: Request) -> Response:
    """A page of the events that match a query."""
    command = commands.query_tagged(request, type_heads=store.site.type_heads)
    store, meter = measured(store, request)
    listed = views.Listed(command.limit, positions=command.positions)
    found = _page(store, command, listed)
    return Response(status=200, body=text_of(views.page(found, listed)), figures=consumed(meter.units))


def _page(store: TaggedEvents, command: QueryTagged, listed: views.Listed) -> TaggedPage | BackwardPage:
    if isinstance(command.rest, Down) or (command.backward and command.rest is None):
        return store.page_back(command.query, after=command.after, rest=command.rest, takes=listed)
    return store.page(command.query, after=command.after, rest=command.rest, takes=listed)


def list_tagged(store: TaggedEvents, request: Request) -> Response:
    """A page of all events, or of a tag's, after a sortable id."""
    command = commands.list_tagged(request)
    store, meter = measured(store, request)
    pages = TagPages(listings=TagListings(store=store))
    if command.tag is None:
        found = pages.all_events(since=command.since, limit=command.limit)
    else:
        found = pages.tagged(command.tag, since=command.since, limit=command.limit)
    return Response(status=200, body=text_of(views.listed(found)), figures=consumed(meter.units))


def count_tagged(store: TaggedEvents, request: Request) -> Response:
    """How many events there are after a sortable id."""
    since = commands.count_tagged(request)
    store, meter = measured(store, request)
    count = TagListings(store=store).count(since=since)
    return Response(status=200, body=text_of({"events": count}), figures=consumed(meter.units))


def read_tagged(store: TaggedEvents, request: Request) -> Response:
    """One event by its id."""
    event_id = commands.read_tagged(request)
    store, meter = measured(store, request)
    found = store.event(event_id)
    if found is None:
        raise Problem(problems.EVENT_NOT_FOUND, f"there is no event {event_id}, or it has expired")
    return Response(status=200, body=text_of(views.event(found)), figures=consumed(meter.units))


def list_tags(store: TaggedEvents, request: Request) -> Response:
    """A page of tags: of a group, of all, or the one that is asked for."""
    command = commands.list_tags(request)
    store, meter = measured(store, request)
    listings = TagListings(store=store)
    if command.tag is not None:
        latest = listings.latest(command.tag)
        found = TagPage(tags=() if latest is None else tuple(listings.counted([command.tag])), next=None)
    else:
        found = _tags_from(listings, command)
    return Response(status=200, body=text_of(views.tags(found)), figures=consumed(meter.units))


def read_tag(store: TaggedEvents, request: Request) -> Response:
    """How many events a tag has, and the latest of them."""
    tag = commands.read_tag(request)
    store, meter = measured(store, request)
    listings = TagListings(store=store)
    latest = listings.latest(tag)
    if latest is None:
        raise Problem(problems.TAG_NOT_FOUND, f"no event has the tag {tag}")
    (count,) = listings.counted([tag])
    return Response(status=200, body=text_of(views.tag(count, latest)), figures=consumed(meter.units))


def _tags_from(listings: TagListings, command: commands.ListTags) -> TagPage:
    try:
        return TagPages(listings=listings).tags(command.group, after=command.start, limit=command.limit)
    except InvalidInput as error:
        raise InvalidInput("from" if error.field == "after" else error.field, error.rule) from error


def _refused(rejected: TaggedConflict, listed: views.Listed, units: Units) -> Problem:
    """What stood in the way, which a writer decides on anew without reading it again."""
    return Problem(
        problems.CONDITION_FAILED,
        "events that match failIf have been appended: decide again with them, and append after this position",
        figures={"Conflicts": 1.0, **consumed(units)},
        events=listed.views,
        position=write_position(rejected.position),
        more=rejected.more,
    )
