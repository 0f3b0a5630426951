"""Commands on stream records that could not be indexed and were set aside."""

from __future__ import annotations

import click

from epochal.care.quarantined import PoisonRecords
from epochal.cli import index, output
from epochal.cli.index import indexer_of
from epochal.cli.target import OpenedStore, pass_store
from epochal.layout.registry import layout_names


@click.group()
def poison() -> None:
    """Records that could not be indexed and were set aside."""


@poison.command("list")
@click.option("--all", "all_", is_flag=True, help="Also those that were retried or given up.")
@output.json_option
@pass_store
def list_(store: OpenedStore, *, all_: bool, as_json: bool) -> None:
    """Print the records that wait, oldest first, each with its cause."""
    records = _records(store)
    found = records.all() if all_ else records.waiting()
    output.stream(found, index.poison, index.poison_line, as_json=as_json)


@poison.command()
@click.argument("source", type=click.Choice(layout_names()))
@click.argument("index", type=click.IntRange(min=0))
@output.json_option
@pass_store
def retry(store: OpenedStore, *, source: str, index: int, as_json: bool) -> None:
    """Index what record INDEX of SOURCE told, after all.

    Mend its cause first.
    """
    done = _records(store).retry(source, index)
    view = {"source": source, "index": index, "events": done.events}
    output.document(view, [f"{source} {index}: {done.events:,} events indexed"], as_json=as_json)


@poison.command()
@click.argument("source", type=click.Choice(layout_names()))
@click.argument("index", type=click.IntRange(min=0))
@output.json_option
@pass_store
def discard(store: OpenedStore, *, source: str, index: int, as_json: bool) -> None:
    """Give record INDEX of SOURCE up. It stays on record as given up."""
    _records(store).discard(source, index)
    view = {"source": source, "index": index, "outcome": "discarded"}
    output.document(view, [f"{source} {index}: given up"], as_json=as_json)


def _records(store: OpenedStore) -> PoisonRecords:
    return PoisonRecords(indexer=indexer_of(store, ()))
