"""The command that trains a dictionary for a category of streams."""

from __future__ import annotations

import click

from epochal.care.auditor import train as train_dictionary
from epochal.cli import output
from epochal.cli.target import OpenedStore, pass_store
from epochal.errors import InvalidInput
from epochal.model.training import Trained


@click.command()
@click.argument("category")
@output.json_option
@pass_store
def train(store: OpenedStore, *, category: str, as_json: bool) -> None:
    """Train a dictionary for the events of CATEGORY.

    With it they take fewer bytes. It holds how they are written, and words that ten holders of streams use: no names,
    no numbers. It is measured on appends of other streams, and used where it saves a tenth of their bytes or more.
    """
    source = next((each for each in store.sources if each.train is not None), None)
    if source is None:
        raise InvalidInput("category", "has no dictionaries: this store has no streams as pages")
    with output.progress("training"):
        found = train_dictionary(store.feed.driver, source, category)
    view = {
        "category": found.category,
        "streams": found.streams,
        "events": found.events,
        "measured": found.measured,
        "before": found.before,
        "after": found.after,
        "dictionary": found.dictionary,
        "inUse": found.in_use,
    }
    output.document(view, [_line(found)], as_json=as_json)


def _line(found: Trained) -> str:
    of = f"{output.events(found.events)} of {found.streams:,} streams"
    if found.dictionary is None:
        return f"{found.category}: nothing to train on: {of}"
    measured = f"{found.measured:,} other appends take {found.after:,} bytes instead of {found.before:,}"
    became = f"dictionary {found.dictionary} is in use" if found.in_use else "nothing was changed"
    return f"{found.category}: trained on {of}; {measured}: {became}"
