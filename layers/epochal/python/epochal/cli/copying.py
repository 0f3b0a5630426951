"""The command that copies streams to another layout or another deployment."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from operator import attrgetter
from typing import Any, Final

import click

from epochal.cli import output
from epochal.cli.errors import CopyUnsound, must_be_named
from epochal.cli.target import Choice, OpenedStore, on_store, open_store
from epochal.copying.feed_copy import FeedCopier
from epochal.copying.stream_copy import CopySource, StreamCopier, StreamCopy, StreamSource, Tally
from epochal.deployment import Deployment
from epochal.errors import InvalidInput
from epochal.layout.port import layout_named
from epochal.plugins import NATIVE, layouts
from epochal.settings import Settings
from epochal.store.streams import Streams

STREAMS: Final[Mapping[str, Callable[[Deployment], Streams]]] = {
    each.name: attrgetter(each.plugin.streams) for each in layouts() if each.plugin.streams
}
"""Layouts of named streams, which can be copied to."""

FROM: Final = (*STREAMS, *(each.name for each in layouts() if each.plugin.copied))
"""And those that can be copied from."""


@click.command(name="copy")
@click.argument("streams", nargs=-1, metavar="[STREAM]...")
@click.option("--category", "categories", multiple=True, help="All streams of it; may be repeated.")
@click.option("--all", "everything", is_flag=True, help="All streams of the feed.")
@click.option(
    "--from-layout", type=click.Choice(FROM), default=FROM[0], show_default=True, help="Layout to copy from."
)
@click.option(
    "--to-layout",
    type=click.Choice(tuple(STREAMS)),
    default=NATIVE,
    show_default=True,
    help="Layout to copy to.",
)
@click.option(
    "--to-stack", default="", help="Stack that holds the tables to copy to.  [default: the same store]"
)
@click.option("--snapshots-as", default="", help="Type of the unfold that a snapshot becomes.")
@click.option("--again", is_flag=True, help="Visit every stream, also those that an earlier run has copied.")
@click.option(
    "--removals", is_flag=True, help="Prune and delete in copies, too, what was in their originals."
)
@click.option("--dry-run", is_flag=True, help="Only tell what would be copied.")
@on_store
def copy(
    store: OpenedStore,
    *,
    streams: tuple[str, ...],
    categories: tuple[str, ...],
    everything: bool,
    from_layout: str,
    to_layout: str,
    to_stack: str,
    snapshots_as: str,
    again: bool,
    removals: bool,
    dry_run: bool,
) -> None:
    """Copy streams to another layout or deployment, and compare.

    Copies have their streams' names, and each is compared with its original. Name STREAMs, or categories, or all.
    Run it again to copy what has come since. Nothing is removed, but with --removals.
    """
    if sum(map(bool, (streams, categories, everything))) != 1:
        raise click.UsageError("Name streams, or --category, or --all.")
    there = _other(to_stack) if to_stack else store
    copier = StreamCopier(
        source=_source(store.deployment, from_layout, snapshots_as),
        target=STREAMS[to_layout](_with(there.deployment, to_layout)),
        removals=removals,
    )
    if not to_stack and from_layout == to_layout:
        raise InvalidInput("--to-layout", "must be another than --from-layout, where no other stack is named")
    tally = Tally()
    with output.progress("copying") as tell:

        def counted(found: Iterable[StreamCopy]) -> Iterable[StreamCopy]:
            for each in found:
                tally.add(each)
                tell(f"{_count(tally.streams, 'stream')}, {output.events(tally.copied)}")
                if streams or not each.sound:
                    yield each

        if streams:
            visit = copier.planned if dry_run else copier.copy
            found: Iterable[StreamCopy] = map(visit, dict.fromkeys(streams))
        else:
            feed = FeedCopier(
                copier=copier,
                feed=store.feed,
                name=_name(to_layout, copier.target.table, categories),
                categories=categories or None,
            )
            found = feed.planned() if dry_run else feed.copy(again=again)
        output.stream(counted(found), _view, _line)
    _print(tally, dry_run=dry_run)


def _other(stack: str) -> OpenedStore:
    """The store of another stack, where the first one is."""
    said = click.get_current_context().find_root().params
    return open_store(
        Choice(settings=Settings(), stack=stack, endpoint=said["endpoint"], region=said["region"])
    )


def _with(deployment: Deployment, layout: str) -> Deployment:
    """The deployment, if it has tables of a layout."""
    table = layout_named(layout).table
    must_be_named(f"is needed for streams as {layout}", **{table: deployment.settings.value(table)})
    return deployment


def _source(deployment: Deployment, layout: str, snapshots: str) -> CopySource:
    if layout in STREAMS:
        return StreamSource(STREAMS[layout](_with(deployment, layout)))
    source: CopySource = layout_named(layout).part("copied")(_with(deployment, layout), snapshots)
    return source


def _name(layout: str, table: str, categories: Iterable[str]) -> str:
    """The name under which a run keeps its place: what is copied, and where to. No reaction's name has a dot."""
    return ".".join(("copy", layout, table, *sorted(set(categories))))


def _view(each: StreamCopy) -> dict[str, Any]:
    more = {"digest": each.digest} if each.digest else {}
    return {
        "stream": each.stream,
        "ending": each.ending,
        "version": each.version,
        "from": each.first,
        "copied": each.copied,
        "compared": each.events,
        **more,
        **({"why": each.why} if each.why else {}),
    }


def _line(each: StreamCopy) -> str:
    if each.why:
        return f"{each.stream}: {each.ending}: {each.why}"
    pruned = f", from event {each.first} on: those before are pruned" if each.first else ""
    return (
        f"{each.stream}: {each.ending}, {output.events(each.copied)} copied, {each.events:,} compared{pruned}"
    )


def _print(tally: Tally, *, dry_run: bool) -> None:
    view = {
        "streams": tally.streams,
        "dryRun": dry_run,
        "copied": tally.copied,
        "pruned": tally.pruned,
        "tombstones": tally.tombstones,
        "unsound": len(tally.unsound),
    }
    done = "would be copied" if dry_run else "copied"
    line = f"{_count(tally.streams, 'stream')} visited, {output.events(tally.copied)} {done}"
    pruned = [f"{tally.pruned:,} pruned before"] if tally.pruned else []
    tombstones = [_count(tally.tombstones, "tombstone")] if tally.tombstones else []
    output.document(view, ["; ".join([line, *pruned, *tombstones])])
    if tally.unsound:
        raise CopyUnsound([each.stream for each in tally.unsound])


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"
