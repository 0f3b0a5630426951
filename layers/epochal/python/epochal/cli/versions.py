"""The command that says in which versions the events of a category are stored."""

from __future__ import annotations

from collections import Counter

import click

from epochal.cli import output
from epochal.cli.target import OpenedStore, on_store
from epochal.codec import json
from epochal.feed.events import FeedEvent
from epochal.model.bodies import Claim
from epochal.model.body_marks import VERSION

UNTOLD = "untold"
"""The version of what is no JSON object, or cannot be read: sealed for a person, for one."""


@click.command()
@click.argument("category")
@on_store
def versions(store: OpenedStore, *, category: str) -> None:
    """Count the events of CATEGORY by type and version.

    All events of the category are read, except for pruned ones. An upcast from a version that is not stored is
    no longer needed.
    """
    counts: Counter[tuple[str, str]] = Counter()
    with output.progress("reading") as tell:
        for partition in store.feed.partitions():
            for page in store.feed.read(partition.partition, categories=[category], data=True):
                counts.update((item.type, _version(item.event)) for item in page.items if item.gone is None)
                tell(
                    f"{counts.total():,} events, partition {partition.partition} at {page.next} of {partition.tail}"
                )
    view: dict[str, dict[str, int]] = {}
    for (kind, version), count in sorted(counts.items()):
        view.setdefault(kind, {})[version] = count
    rows = [
        (f"{kind} {version}", count)
        for kind, versions_ in view.items()
        for version, count in versions_.items()
    ]
    output.document(view, output.table(rows))


def _version(event: FeedEvent | None) -> str:
    """Return the version in an event's data, 1 if none; `UNTOLD` if there is no JSON object to read."""
    if event is None or isinstance(event.data, Claim):
        return UNTOLD
    try:
        value = json.loads(event.data)
    except ValueError:
        return UNTOLD
    return str(value.get(VERSION, 1)) if isinstance(value, dict) else UNTOLD
