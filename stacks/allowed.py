"""What each function may do, derived from the plans that it runs: exact actions on exact tables and prefixes.

    append    writes in every layout; reads what decides a write, or tells whose it was
    replay    reads in every layout
    feed      reads the index, and events of every layout for readers who want them filled in
    indexer   writes the index; reads what heals it: types of events, never their contents
    auditor   as the indexer, and scans the tables of heads
    reaction  reads what `feed` reads; keeps its group's state in the index, and its own read models

Tagged events need `ConditionCheckItem` for conditions on heads that an append does not move, and listing the
tags of all groups scans them: no index has a place where all of them stand. Who reads events needs `GetItem` for
transactions that read those a plain read does not find.
"""

from __future__ import annotations

from collections.abc import Sequence

from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_iam as iam

from epochal.layout.dcb.tables import EVENTS, TAGS
from epochal.layout.journal.tables import SNAPSHOT
from stacks.parts import grants
from stacks.parts.stores import BODIES, STATES, UPLOADS, Stores
from stacks.stages import Stage

Statements = list[iam.PolicyStatement]


def append(stage: Stage, stores: Stores) -> Statements:
    """The function `append`."""
    return [
        grants.on_table(stores.tips, "GetItem", "Query", "PutItem", "UpdateItem", "DeleteItem"),
        grants.on_table(stores.journal, "GetItem", "BatchGetItem", "PutItem"),
        *_snapshots(stage, stores),
        *_archive(stores, "GetItem", "PutItem", "UpdateItem"),
        _of_tenant(stage, stores.events, "GetItem", "BatchGetItem", "PutItem"),
        _of_tenant(stage, stores.tags, "GetItem", "BatchGetItem", "Query", "PutItem", "ConditionCheckItem"),
        _of_tenant(stage, stores.projection_states, "PutItem", "DeleteItem"),
        grants.on_objects(stores.bucket, BODIES, "GetObject", "PutObject"),
        grants.on_objects(stores.bucket, UPLOADS, "GetObject", "PutObject"),
        grants.on_objects(stores.bucket, _states_of(stage), "PutObject"),
        grants.on_listing(stores.bucket, BODIES, UPLOADS),
        *grants.on_key(stores.key, write=True),
    ]


def replay(stage: Stage, stores: Stores) -> Statements:
    """The function `replay`."""
    return [
        grants.on_table(stores.tips, "GetItem", "Query"),
        grants.on_table(stores.journal, "GetItem", "BatchGetItem", "Query"),
        grants.on_table(stores.snapshot, "GetItem"),
        _of_tenant(stage, stores.events, "GetItem", "BatchGetItem"),
        _of_tenant(stage, stores.tags, "BatchGetItem", "Query"),
        # A scan has no key to compare: who lists the tags of all groups passes by those of other tenants.
        grants.on_table(stores.tags, "Scan"),
        _groups_of_tenant(stage, stores),
        _all_of_tenant(stage, stores),
        _of_tenant(stage, stores.projection_states, "GetItem", "Query"),
        *_archive(stores, "GetItem", "Query"),
        grants.on_objects(stores.bucket, BODIES, "GetObject"),
        grants.on_objects(stores.bucket, _states_of(stage), "GetObject"),
        grants.on_listing(stores.bucket, BODIES, _states_of(stage)),
        *grants.on_key(stores.key, write=False),
    ]


def feed(stage: Stage, stores: Stores) -> Statements:
    """The function `feed`."""
    return [
        grants.on_table(stores.index, "GetItem", "Query"),
        grants.on_table(stores.tips, "GetItem", "Query"),
        grants.on_table(stores.journal, "GetItem", "BatchGetItem"),
        _of_tenant(stage, stores.events, "BatchGetItem"),
        _of_tenant(stage, stores.tags, "Query"),
        *_archive(stores, "GetItem", "Query"),
        grants.on_objects(stores.bucket, BODIES, "GetObject"),
        grants.on_listing(stores.bucket, BODIES),
        *grants.on_key(stores.key, write=False),
    ]


def indexer(stage: Stage, stores: Stores) -> Statements:
    """The function `indexer`, apart from its streams and its failures."""
    return [
        grants.on_table(stores.index, "GetItem", "Query", "BatchGetItem", "PutItem", "UpdateItem"),
        grants.on_table(stores.tips, "GetItem", "Query"),
        grants.on_table(stores.journal, "BatchGetItem"),
        _of_tenant(stage, stores.tags, "Query"),
        *grants.on_key(stores.key, write=True),
    ]


def auditor(stage: Stage, stores: Stores) -> Statements:
    """The function `auditor`: it does what the indexer does, for heads that it finds by itself."""
    return [
        grants.on_table(stores.index, "GetItem", "Query", "BatchGetItem", "PutItem", "UpdateItem"),
        grants.on_table(stores.tips, "GetItem", "Query", "Scan"),
        grants.on_table(stores.journal, "BatchGetItem"),
        grants.on_table(stores.snapshot, "GetItem", "Scan"),
        _of_tenant(stage, stores.tags, "GetItem", "Query"),
        grants.on_table(stores.tags, "Scan"),
        *grants.on_key(stores.key, write=True),
    ]


def reaction(stage: Stage, stores: Stores) -> Statements:
    """A function that runs a reaction, apart from its queue and from what its handler does.

    It replaces the state of its group and deletes causes of parked streams; where a stream ends, which a replay
    asks, the heads of its store tell.
    """
    return [
        grants.on_table(
            stores.index, "GetItem", "Query", "BatchGetItem", "PutItem", "UpdateItem", "DeleteItem"
        ),
        grants.on_table(stores.tips, "GetItem", "Query"),
        grants.on_table(stores.journal, "GetItem", "BatchGetItem"),
        _of_tenant(stage, stores.events, "BatchGetItem"),
        _of_tenant(stage, stores.tags, "BatchGetItem", "Query"),
        *_archive(stores, "GetItem", "Query"),
        grants.on_objects(stores.bucket, BODIES, "GetObject"),
        grants.on_listing(stores.bucket, BODIES),
        *grants.on_key(stores.key, write=True),
    ]


def read_models(stores: Stores, names: Sequence[str]) -> Statements:
    """What a reaction does that makes read models of these names, of any generation, and which one is live."""
    if stores.read_models is None or not names:
        return []
    keys = [key for name in names for key in (name, f"{name}@*")]
    return [grants.on_keys(stores.read_models, keys, "GetItem", "PutItem", "DeleteItem")]


def _states_of(stage: Stage) -> str:
    """Where the library puts the tenant's large states."""
    return f"{STATES}{stage.service}/" if stage.service else STATES


def _of_tenant(stage: Stage, table: dynamodb.ITableV2, *actions: str) -> iam.PolicyStatement:
    """`actions` on the items of `table`: where tenants share it, on the tenant's."""
    if not stage.service:
        return grants.on_table(table, *actions)
    return grants.on_keys(table, [f"SERVICE#{stage.service}#*"], *actions)


def _groups_of_tenant(stage: Stage, stores: Stores) -> iam.PolicyStatement:
    """Listing tags by their groups, whose names begin with the tenant's where there is one."""
    statement = grants.on_indexes(stores.tags, TAGS, "Query")
    if stage.service:
        grants.only_keys(statement, [f"{stage.service}|*"])
    return statement


def _archive(stores: Stores, *actions: str) -> Statements:
    """`actions` on the archive, where there is one."""
    return [grants.on_table(stores.archive, *actions)] if stores.archive else []


def _snapshots(stage: Stage, stores: Stores) -> Statements:
    """Writing heads; where copies are kept, also finding those beyond them by one of the table's indexes, and deleting
    them where they do not expire.
    """
    writing = ("GetItem", "PutItem", "UpdateItem")
    if not stage.snapshot_copies:
        return [grants.on_table(stores.snapshot, *writing)]
    all_of_them, not_expiring = (index.name for index in SNAPSHOT.indexes)
    if stage.snapshot_ttl_days:
        return [
            grants.on_table(stores.snapshot, *writing),
            grants.on_index(stores.snapshot, not_expiring, "Query"),
        ]
    return [
        grants.on_table(stores.snapshot, *writing, "DeleteItem"),
        grants.on_index(stores.snapshot, all_of_them, "Query"),
    ]


def _all_of_tenant(stage: Stage, stores: Stores) -> iam.PolicyStatement:
    """Listing and counting all events, of the tenant where there is one."""
    statement = grants.on_indexes(stores.events, EVENTS, "Query")
    if stage.service:
        grants.only_keys(statement, [f"SERVICE#{stage.service}#*"])
    return statement
