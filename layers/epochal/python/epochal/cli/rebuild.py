"""The command that builds the index anew in another table."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import click

from epochal.care.mender import Mender
from epochal.care.rebuild import Rebuilder
from epochal.care.spool import Spool
from epochal.care.table_exports import export_at
from epochal.cli import output
from epochal.cli.index import refuse_unrecorded, sources_of
from epochal.cli.inputs import IndexUnsound
from epochal.cli.target import OpenedStore
from epochal.dynamo.clients import s3_client
from epochal.dynamo.s3_objects import S3Objects
from epochal.dynamo.table_kinds import with_table_checks
from epochal.errors import InvalidInput
from epochal.feed.indexer import Indexer
from epochal.index.series import read_series
from epochal.layout.source import Source
from epochal.lazy_dataclasses import replace
from epochal.settings import DECLARED


@click.command()
@click.option("--into", required=True, metavar="TABLE", help="Table of the new index. Required.")
@click.option(
    "--from-export",
    "exports",
    multiple=True,
    metavar="SOURCE=PLACE",
    help="Read a DynamoDB export of a table, in a folder or at s3://bucket/prefix. Repeat it for incremental "
    "exports, in order.",
)
@click.option(
    "--partitions",
    multiple=True,
    metavar="SOURCE=N",
    help="Number of partitions of a source in the new index. The default is that of the old index.",
)
@click.option(
    "--segments",
    type=click.IntRange(1, 64),
    default=4,
    help="Number of segments of a table that are scanned in parallel. The default is 4.",
)
@click.option(
    "--readers",
    type=click.IntRange(1, 64),
    default=8,
    help="Number of streams that are read in parallel. The default is 8.",
)
@output.with_json
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
) -> None:
    """Build a new index in another TABLE.

    It is built from the heads of all streams, or from exports of tables. It can be interrupted and run again.
    The guide to the index describes how a deployment is switched to the new index. If there is no old index, as
    after a restore, TABLE is the one in use.
    """
    store: OpenedStore = context.obj()
    if into in _holding(store):
        raise InvalidInput("--into", "must be a separate table: this one holds events or heads")
    if into == store.feed.table and store.feed.driver.run(read_series(into)).partitions:
        raise InvalidInput("--into", "must not be the index in use")
    sources = sources_of(store, partitions, told_wins=True)
    refuse_unrecorded(store, sources, partitions)
    driver = replace(
        store.feed.driver,
        execute=with_table_checks(store.feed.driver.execute, {into: DECLARED["index_table"].table}),
    )
    mender = Mender(driver=driver, index_table=into)
    Indexer(driver=driver, index_table=into, sources=sources).register()
    places = _places(exports, sources)
    root = context.find_root().params
    s3 = partial(s3_client, endpoint=root["endpoint"] or None, region=root["region"] or None)
    view: dict[str, Any] = {}
    troubles: list[str] = []
    with output.progress("rebuilding") as tell:
        rebuilder = Rebuilder(mender=mender, readers=readers, segments=segments, tell=tell)
        for source in sources:
            if source.name in places:
                with Spool() as spool:
                    export = export_at(
                        places[source.name][0],
                        lambda bucket: S3Objects(s3(), bucket).open,
                        *places[source.name][1:],
                    )
                    rebuilt = rebuilder.from_export(source, export.items(), spool)
            else:
                rebuilt = rebuilder.from_tables(source)
            view[source.name] = {"streams": rebuilt.streams, "events": rebuilt.events}
            troubles += rebuilt.troubles
    lines = [
        f"{name}  {value['streams']:,} streams, {value['events']:,} events indexed"
        for name, value in view.items()
    ]
    output.document(view | {"troubles": troubles}, [*troubles, *lines])
    if troubles:
        raise IndexUnsound({"look": len(troubles)})


def _holding(store: OpenedStore) -> set[str]:
    """Return the names of the store's tables other than the index.

    Some have the keys of an index, and would accept its items.
    """
    return {
        table
        for table, kind in store.deployment.settings.kinds.items()
        if kind != DECLARED["index_table"].table
    }


def _places(exports: Sequence[str], sources: Sequence[Source]) -> dict[str, list[str]]:
    """Return the places of each source's exports, in order; raise `InvalidInput` for a malformed one."""
    places: dict[str, list[str]] = {}
    for export in exports:
        name, equals, place = export.partition("=")
        if not equals or name not in {source.name for source in sources}:
            raise InvalidInput(
                "--from-export", f"must be SOURCE=PLACE, with a source of the store, not {export!r}"
            )
        places.setdefault(name, []).append(place)
    return places
