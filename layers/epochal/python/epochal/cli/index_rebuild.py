"""The command that builds the index anew in another table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import click

from epochal.care.catch_up import Mender
from epochal.care.rebuild import Rebuilder, Spool
from epochal.cli import output
from epochal.cli.errors import IndexUnsound
from epochal.cli.index import refuse_unrecorded, sources_of
from epochal.cli.target import OpenedStore
from epochal.dynamo.clients import s3_client
from epochal.dynamo.exports import export_at
from epochal.errors import InvalidInput
from epochal.index.series import read_series
from epochal.indexer.indexer import Indexer
from epochal.layout.port import Source
from epochal.settings import DECLARED
from epochal.store.checking import checked


@click.command()
@click.option("--into", required=True, metavar="TABLE", help="The table of the new index.")
@click.option(
    "--from-export",
    "exports",
    multiple=True,
    metavar="SOURCE=PLACE",
    help="An export of a table: a folder or s3://bucket/prefix; may be repeated.",
)
@click.option(
    "--partitions", multiple=True, metavar="SOURCE=N", help="Partitions of the new index; as the old one's."
)
@click.option("--segments", type=click.IntRange(1, 64), default=4, help="Parts of a table scanned at once.")
@click.option("--readers", type=click.IntRange(1, 64), default=8, help="Streams read at once.")
@output.json_option
@click.pass_context
def rebuild(
    context: click.Context,
    /,
    *,
    into: str,
    exports: Sequence[str],
    partitions: Sequence[str],
    segments: int,
    readers: int,
    as_json: bool,
) -> None:
    """Build the index anew in another TABLE.

    It is built from the heads of all streams, or from exports of tables. It can be interrupted and run again. The
    guide to the index says how a deployment is switched to it. Where there is no old index, as after a restore, TABLE
    is the one in use.
    """
    store: OpenedStore = context.obj()
    if into in _holding(store):
        raise InvalidInput("--into", "must be a table of its own: this one holds events or heads")
    if into == store.feed.table and store.feed.driver.run(read_series(into)).partitions:
        raise InvalidInput("--into", "must be another table than the index in use")
    sources = sources_of(store, partitions, told_wins=True)
    refuse_unrecorded(store, sources, partitions)
    driver = replace(
        store.feed.driver, execute=checked(store.feed.driver.execute, {into: DECLARED["index_table"].table})
    )
    mender = Mender(driver=driver, index_table=into)
    Indexer(driver=driver, index_table=into, sources=sources).register()
    found = _places(exports, sources)
    root = context.find_root().params
    s3 = partial(s3_client, endpoint=root["endpoint"] or None, region=root["region"] or None)
    view: dict[str, Any] = {}
    troubles: list[str] = []
    with output.progress("rebuilding") as tell:
        rebuilder = Rebuilder(mender=mender, readers=readers, segments=segments, tell=tell)
        for source in sources:
            if source.name in found:
                with Spool() as spool:
                    export = export_at(found[source.name], s3)
                    rebuilder.learn(source, export.items())
                    done = rebuilder.from_export(source, export.items(), spool)
            else:
                done = rebuilder.from_tables(source)
            view[source.name] = {"streams": done.streams, "events": done.events}
            troubles += done.troubles
    lines = [
        f"{name}  {each['streams']:,} streams, {each['events']:,} events indexed"
        for name, each in view.items()
    ]
    output.document(view | {"troubles": troubles}, [*troubles, *lines], as_json=as_json)
    if troubles:
        raise IndexUnsound({"look": len(troubles)})


def _holding(store: OpenedStore) -> set[str]:
    """Tables with users' data. Some have the keys of an index, and would accept its items."""
    return {table for table, kind in store.kinds.items() if kind != DECLARED["index_table"].table}


def _places(exports: Sequence[str], sources: Sequence[Source]) -> dict[str, str]:
    """Where the export of each source is."""
    found: dict[str, str] = {}
    for each in exports:
        name, equals, place = each.partition("=")
        if not equals or name not in {source.name for source in sources}:
            raise InvalidInput("--from-export", f"must be a source, =, and a place: {each!r} is not")
        found[name] = place
    return found
