"""What functions do to the tables of aggregates."""

from __future__ import annotations

from collections.abc import Mapping

from epochal.layout.journal.tables import JOURNAL, SNAPSHOT
from epochal.layout.port import Permission
from epochal.plan.tables import TableSpec
from epochal.settings import Options


def access_of(options: Options) -> Mapping[str, tuple[Permission, ...]]:
    """By the function's name. Events are never changed; readers find them by their keys."""
    return {
        "append": (_on(JOURNAL, "GetItem", "BatchGetItem", "PutItem"), *_snapshots(options)),
        "replay": (_on(JOURNAL, "GetItem", "BatchGetItem", "Query"), _on(SNAPSHOT, "GetItem")),
        "feed": (_on(JOURNAL, "GetItem", "BatchGetItem"),),
        "indexer": (_on(JOURNAL, "BatchGetItem"),),
        "auditor": (_on(JOURNAL, "BatchGetItem"), _on(SNAPSHOT, "GetItem", "Scan")),
        "reaction": (_on(JOURNAL, "GetItem", "BatchGetItem"), _on(SNAPSHOT, "GetItem")),
    }


def _snapshots(options: Options) -> tuple[Permission, ...]:
    """Writing heads; where copies are kept, also finding those beyond them by one of the table's indexes, and deleting
    them where they do not expire.
    """
    writing = ("GetItem", "PutItem", "UpdateItem")
    if not options.snapshot_copies:
        return (_on(SNAPSHOT, *writing),)
    all_of_them, not_expiring = (index.name for index in SNAPSHOT.indexes)
    if options.snapshot_ttl_days:
        return (_on(SNAPSHOT, *writing), _on(SNAPSHOT, "Query", index=not_expiring))
    return (_on(SNAPSHOT, *writing, "DeleteItem"), _on(SNAPSHOT, "Query", index=all_of_them))


def _on(table: TableSpec, *actions: str, index: str = "") -> Permission:
    return Permission(table=table, actions=actions, index=index)
