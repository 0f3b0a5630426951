"""`keep`: what rules of retention would prune."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

import click

from epochal.care.catch_up import Mender
from epochal.cli import output
from epochal.cli.target import OpenedStore, on_store


@click.command()
@click.argument("rules", nargs=-1, required=True, metavar="RULE...")
@click.option("--dry-run", is_flag=True, help="Only count: a stage's setting keep has the auditor prune.")
@on_store
def keep(store: OpenedStore, *, rules: Sequence[str], dry_run: bool) -> None:
    """Count what rules of retention would prune now.

    A rule is Visit:100, Log:30d or Trace:100:30d. All heads are read.
    """
    from epochal.care.prunable import prunable  # noqa: PLC0415  no other command needs it
    from epochal.care.retention import rules_of  # noqa: PLC0415  as above

    if not dry_run:
        raise click.UsageError("Say --dry-run: what prunes is the auditor, by a stage's setting keep.")
    mender = Mender(driver=store.feed.driver, index_table=store.feed.table)
    with output.progress("reading heads"):
        found = prunable(mender, store.deployment.sources, rules_of(rules))
    output.stream(
        found,
        asdict,
        lambda each: (
            f"{each.category}: {output.events(each.events)} of {each.streams:,} stream{'s' * (each.streams != 1)}"
        ),
    )
