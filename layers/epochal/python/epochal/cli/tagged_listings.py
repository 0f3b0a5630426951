"""Commands that list tagged events: all of them or a tag's, tags and their counts, and how many there are."""

from __future__ import annotations

import sys
from collections.abc import Iterable

import click

from epochal.cli import output
from epochal.cli.errors import TagMissing
from epochal.cli.tagged import line, pass_tagged, shown
from epochal.http import tagged as over_http
from epochal.model.events import Recorded
from epochal.model.tags import TagCount, parse_place
from epochal.store.listings import Listings, until_whole
from epochal.store.tagged_store import TaggedStore

SINCE = click.option("--since", help="Only events after this place.")


@click.command()
@click.argument("tag", required=False)
@SINCE
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    help="Stop at so many events; all of one place come together.",
)
@output.json_option
@pass_tagged
def read(store: TaggedStore, *, tag: str | None, since: str | None, limit: int | None, as_json: bool) -> None:
    """Print the events of TAG, or all events, in order.

    All events are in a stream of their own, where there is one; in Sekiban's tables those that their index knows, which
    lags by moments.
    """
    listings, first = store.listings, _place(since)
    found: Iterable[Recorded] = (
        listings.all_events(since=first, max_count=limit)
        if tag is None
        else until_whole(listings.tagged(tag, since=first), limit or sys.maxsize)
    )
    output.stream(found, shown, line, as_json=as_json)


@click.command()
@click.argument("group", required=False)
@click.option("--groups", is_flag=True, help="List groups and how many tags each has, instead of tags.")
@output.json_option
@pass_tagged
def tags(store: TaggedStore, *, group: str | None, groups: bool, as_json: bool) -> None:
    """Print the tags of GROUP, or all tags, with their numbers of events.

    They are found by reading through their table; in Sekiban's tables an index knows those of a group.
    """
    if groups and group is not None:
        raise click.UsageError("--groups lists all groups.")
    listings = store.listings
    if groups:
        with output.progress("reading the table"):
            counted = listings.groups()
        output.stream(
            counted,
            lambda each: {"group": each.group, "tags": each.tags},
            lambda each: f"{each.group}  {each.tags:,}",
            as_json=as_json,
        )
        return
    output.stream(
        _tags(listings, group),
        over_http.TAG_COUNT,
        lambda each: f"{each.tag}  {each.events:,}",
        as_json=as_json,
    )


@click.command()
@click.argument("name", metavar="TAG")
@output.json_option
@pass_tagged
def tag(store: TaggedStore, *, name: str, as_json: bool) -> None:
    """Print how many events TAG has, and the latest of them."""
    listings = store.listings
    latest = listings.latest(name)
    if latest is None:
        raise TagMissing(name)
    (count,) = listings.counted([name])
    view = over_http.tag_shown(count, latest)
    rows = [
        ("tag", count.tag),
        ("events", count.events),
        ("latest", f"{latest.created_at[:19]}  {latest.event_type}  {latest.event_id}"),
    ]
    output.document(view, output.table(rows), as_json=as_json)


@click.command()
@SINCE
@output.json_option
@pass_tagged
def count(store: TaggedStore, *, since: str | None, as_json: bool) -> None:
    """Count events.

    As the stream of all events says, where there is one; in Sekiban's tables by walking the index of all events.
    """
    with output.progress("counting") as tell:
        total = store.listings.count(since=_place(since), progress=lambda so_far: tell(f"{so_far:,} events"))
    output.document({"events": total}, [f"{total:,}"], as_json=as_json)


def _tags(listings: Listings, group: str | None) -> list[TagCount]:
    if group is not None:
        return listings.tags(group)
    with output.progress("reading the table") as tell:
        return listings.all_tags(progress=lambda so_far: tell(f"{so_far:,} tags"))


def _place(since: str | None) -> str | None:
    return None if since is None else parse_place(since, "--since")
