"""Commands on stream records that could not be indexed and were set aside."""

from __future__ import annotations

from typing import Any

import click

from epochal.care.quarantined import PoisonRecord, PoisonRecords
from epochal.cli import output
from epochal.cli.index import indexer_of
from epochal.cli.target import given
from epochal.layout.registry import layout_names


def record_view(record: PoisonRecord) -> dict[str, Any]:
    """Return a record that was set aside as JSON."""
    return {
        "source": record.source,
        "index": record.index,
        "since": record.since,
        "cause": record.cause,
        "key": {name: next(iter(value.values())) for name, value in record.key.items()},
        "outcome": record.outcome,
    }


def record_line(record: PoisonRecord) -> str:
    """A record that was set aside."""
    key = " ".join(str(value) for value in record_view(record)["key"].values())
    return f"{record.source} {record.index}  {record.since[:19]}  {key}: {record.cause} ({record.outcome or 'waiting'})"


on_records = given(lambda store: PoisonRecords(indexer=indexer_of(store, ())))


@click.group()
def poison() -> None:
    """Show, retry and discard records that could not be indexed."""


@poison.command("list")
@click.option("--all", "all_", is_flag=True, help="Include records that were retried or discarded.")
@on_records
def list_(records: PoisonRecords, *, all_: bool) -> None:
    """Print the waiting records, oldest first, with the cause of each."""
    selected = records.all() if all_ else records.waiting()
    output.stream(selected, record_view, record_line)


@poison.command()
@click.argument("source", type=click.Choice(layout_names()))
@click.argument("index", type=click.IntRange(min=0))
@on_records
def retry(records: PoisonRecords, *, source: str, index: int) -> None:
    """Index record INDEX of SOURCE again.

    Remove the cause of the failure first.
    """
    retried = records.retry(source, index)
    view = {"source": source, "index": index, "events": retried.events}
    output.document(view, [f"{source} {index}: {retried.events:,} events indexed"])


@poison.command()
@click.argument("source", type=click.Choice(layout_names()))
@click.argument("index", type=click.IntRange(min=0))
@on_records
def discard(records: PoisonRecords, *, source: str, index: int) -> None:
    """Discard record INDEX of SOURCE, which stays listed as discarded."""
    records.discard(source, index)
    view = {"source": source, "index": index, "outcome": "discarded"}
    output.document(view, [f"{source} {index}: discarded"])
