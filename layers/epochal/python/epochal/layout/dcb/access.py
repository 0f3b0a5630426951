"""What functions do to the tables of tagged events: where tenants share them, to the tenant's items.

Conditions on heads that an append does not move need `ConditionCheckItem`. Listing the tags of all groups scans them,
since no index has all of them; a scan has no key to compare, and passes by other tenants' items. A reader of
events needs `GetItem` for transactions that read those a plain read does not find.
"""

from __future__ import annotations

from collections.abc import Mapping

from epochal.layout.dcb.tables import EVENTS, TAGS
from epochal.layout.port import Permission
from epochal.plan.tables import TableSpec
from epochal.settings import Options


def access_of(options: Options) -> Mapping[str, tuple[Permission, ...]]:
    """By the function's name."""
    service = options.service

    def own(table: TableSpec, *actions: str, index: str = "") -> Permission:
        """Keys begin with the tenant's name, those of groups of tags as well."""
        key = f"{service}|*" if table is TAGS and index else f"SERVICE#{service}#*"
        return Permission(table=table, actions=actions, index=index, keys=(key,) if service else ())

    all_tags = Permission(table=TAGS, actions=("Scan",))
    return {
        "append": (
            own(EVENTS, "GetItem", "BatchGetItem", "PutItem"),
            own(TAGS, "GetItem", "BatchGetItem", "Query", "PutItem", "ConditionCheckItem"),
        ),
        "replay": (
            own(EVENTS, "GetItem", "BatchGetItem"),
            own(TAGS, "BatchGetItem", "Query"),
            all_tags,
            *(own(table, "Query", index=each.name) for table in (TAGS, EVENTS) for each in table.indexes),
        ),
        "feed": (own(EVENTS, "BatchGetItem"), own(TAGS, "Query")),
        "indexer": (own(TAGS, "Query"),),
        "auditor": (own(TAGS, "GetItem", "Query"), all_tags),
        "reaction": (own(EVENTS, "BatchGetItem"), own(TAGS, "BatchGetItem", "Query")),
    }
