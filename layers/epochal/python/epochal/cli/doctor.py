"""`epochal doctor`: whether a store and its reactions are as they should be. It changes nothing.

    table      exists, is active, and has the keys, indexes and stream of changes of its kind
    indexer    brings the changes of each table into the feed, has set no record aside, and does not rest
    reaction   is not blocked, paused or late, and has parked no stream

A check that the credentials do not allow is a finding, too. Versions are not compared: nothing that is deployed names
the version of the library that it was deployed with.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, Final

import click

from epochal.care.quarantined import PoisonRecords
from epochal.care.status import some_groups_of
from epochal.care.table_creation import differs
from epochal.cli import output
from epochal.cli.index import indexer_of
from epochal.cli.inputs import Unsound
from epochal.cli.target import TABLES, OpenedStore, describe_table, on_store
from epochal.dynamo.table_kinds import specs
from epochal.errors import EpochalError
from epochal.hosting.crowded_partitions import crowds
from epochal.hosting.group_summaries import GroupSummary, summaries_of
from epochal.hosting.indexer_state import IndexerState, indexer_states
from epochal.lazy_dataclasses import dataclass
from epochal.model.quantities import quantity

LATE: Final = 300.0
"""Seconds behind from which a reaction counts as late, as for its alarm."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DoctorCheck:
    """Something that was looked at.

    Attributes:
        subject: what was looked at.
        text: its state.
        remedy: what to do about it; empty if nothing is wrong.
    """

    subject: str
    text: str
    remedy: str = ""

    @property
    def view(self) -> dict[str, Any]:
        """The check as JSON."""
        return {
            "subject": self.subject,
            "ok": not self.remedy,
            "text": self.text,
            "remedy": self.remedy or None,
        }

    @property
    def lines(self) -> Iterator[str]:
        """The check in a line for people, and its remedy in another."""
        yield f"{'ok   ' if not self.remedy else 'WRONG'} {self.subject}: {self.text}"
        if self.remedy:
            yield f"      {self.remedy}"


@click.command()
@on_store
def doctor(store: OpenedStore) -> None:
    """Check tables, indexer and reactions; fail if anything is wrong.

    The command only reads, and prints advice. The exit code is 1 if anything is wrong.
    """
    checks = [*_tables(store), *_indexers(store), *_crowds(store), *_reactions(store)]
    lines = (word for check in checks for line in check.lines for word in output.harmless(line))
    wrong = sum(bool(check.remedy) for check in checks)
    output.document({"checks": [check.view for check in checks], "wrong": wrong}, lines)
    if wrong:
        raise Unsound(f"{wrong:,} of {quantity(len(checks), 'check')} found a problem")


def _tables(store: OpenedStore) -> Iterator[DoctorCheck]:
    """Yield a check of every table that the store names."""
    dynamodb = store.client("dynamodb")
    for setting, kind in TABLES.values():
        name = store.deployment.settings.value(setting)
        if not name:
            continue
        subject = f"table {name}"
        try:
            described = describe_table(dynamodb, name)
        except EpochalError as error:
            yield _not_known(subject, error)
            continue
        status = described["TableStatus"]
        if status not in ("ACTIVE", "UPDATING"):
            yield DoctorCheck(
                subject=subject, text=status, remedy="Wait until it is ACTIVE, or deploy its stack again."
            )
        elif (what := differs(described, specs()[kind])) is not None:
            remedy = f"Name the right table, or deploy its stack again: this is not a table of {kind}."
            yield DoctorCheck(subject=subject, text=f"has the wrong {what}", remedy=remedy)
        else:
            yield DoctorCheck(subject=subject, text=status)


def _indexers(store: OpenedStore) -> Iterator[DoctorCheck]:
    """Yield checks of the indexers of all sources with events, and of the records that are set aside."""
    try:
        states = indexer_states(store.deployment, partial(store.client, "lambda"))
        records = PoisonRecords(indexer=indexer_of(store, ()))
        waiting = Counter(record.source for record in records.waiting())
    except EpochalError as error:
        yield _not_known("indexer", error)
        return
    for source, state in states.items():
        yield DoctorCheck(subject=f"indexer of {source}", text=state.text, remedy=_remedy_of(state))
    for source, count in waiting.items():
        yield DoctorCheck(
            subject=f"indexer of {source}",
            text=f"{quantity(count, 'record')} set aside",
            remedy="`epochal index poison list` shows the causes; remove them, then `epochal index poison retry`.",
        )


def _crowds(store: OpenedStore) -> Iterator[DoctorCheck]:
    """Yield a check of the indexers of every source whose table has many shards: whether they rest."""
    try:
        for crowd in crowds(store.deployment, store.client):
            yield DoctorCheck(subject=f"indexer of {crowd.source}", text=crowd.text, remedy=crowd.remedy)
    except EpochalError as error:
        yield _not_known("pauses of the indexer", error)


def _remedy_of(state: IndexerState) -> str:
    """Return what to do about an indexer; empty if it works."""
    if state.failure:
        return "See the runbook: docs/runbook.md#the-feed."
    if state.missing:
        return "Check again in a minute; if this persists, run `epochal index repair`."
    return (
        ""
        if state.works
        else "Grant the permission that the message names, or look at the log of the indexer."
    )


def _reactions(store: OpenedStore) -> Iterator[DoctorCheck]:
    """Yield checks of the reactions that a few requests find, and a note if there may be others."""
    try:
        names, complete = some_groups_of(store.feed.driver, store.feed.table)
        states: Mapping[str, IndexerState] = {}  # each indexer has a check of its own
        for summary in summaries_of(store.deployment.groups, names, states):
            yield from _reaction(summary)
    except EpochalError as error:
        yield _not_known("reactions", error)
        return
    if not complete:
        text = "the index is large, so only some of its groups were looked for"
        yield DoctorCheck(subject="reactions", text=text, remedy="`epochal groups list` finds all of them.")


def _reaction(summary: GroupSummary) -> Iterator[DoctorCheck]:
    """Yield a check for each thing that is wrong with a reaction, or a single one if nothing is."""
    subject = f"reaction {summary.group}"
    seconds = max((figures.seconds for figures in summary.figures), default=0.0)
    findings = {
        "`epochal groups resume` resumes it.": f"paused since {summary.paused}" if summary.paused else "",
        summary.remedy: summary.failure,
        f"`epochal parked list {summary.group}` shows the causes; fix them, then `epochal parked replay`.": (
            f"{quantity(summary.parked, 'stream')} parked" if summary.parked else ""
        ),
        "Its checkpoint belongs to another index: run `epochal groups reset`.": (
            "beyond the end of the index" if summary.events is None else ""
        ),
        "Look at its log and its alarms; more `members` make it faster.": (
            f"{quantity(summary.events)} behind, the oldest for {seconds:,.0f} s"
            if summary.events and seconds > LATE and not (summary.paused or summary.failure)
            else ""
        ),
    }
    for remedy, text in findings.items():
        if text:
            yield DoctorCheck(subject=subject, text=text, remedy=remedy)
    if not any(findings.values()):
        yield DoctorCheck(subject=subject, text=f"{quantity(summary.events or 0)} behind, nothing parked")


def _not_known(subject: str, error: EpochalError) -> DoctorCheck:
    """Return the finding that something could not be looked at."""
    remedy = f"See {type(error).__name__} in docs/reference/errors.md."
    return DoctorCheck(subject=subject, text=str(error), remedy=remedy)
