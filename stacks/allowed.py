"""What each function may do, derived from the plans that it runs: exact actions on exact tables and prefixes.

    append    writes in every layout; reads what decides a write, or tells whose it was
    replay    reads in every layout
    feed      reads the index, and events of every layout for readers who want them filled in
    indexer   writes the index; reads what heals it: types of events, never their contents

Tagged events need `ConditionCheckItem` for conditions on heads that an append does not move, and listing the
tags of all groups scans them: no index has a place where all of them stand.
"""

from __future__ import annotations

from aws_cdk import aws_iam as iam

from epochal.layout.tables import TAGS
from stacks.parts import grants
from stacks.stages import Stage
from stacks.store import BODIES, STATES, StoreStack

Statements = list[iam.PolicyStatement]


def append(stage: Stage, store: StoreStack) -> Statements:
    """The function `append`."""
    return [
        grants.on_table(store.tips, "GetItem", "Query", "PutItem", "UpdateItem", "DeleteItem"),
        grants.on_table(store.journal, "GetItem", "BatchGetItem", "PutItem"),
        grants.on_table(store.snapshot, "GetItem", "PutItem", "UpdateItem"),
        grants.on_table(store.events, "BatchGetItem", "PutItem"),
        grants.on_table(store.event_tags, "BatchGetItem", "Query", "PutItem", "ConditionCheckItem"),
        grants.on_table(store.projection_states, "PutItem", "DeleteItem"),
        grants.on_objects(store.bucket, BODIES, "GetObject", "PutObject"),
        grants.on_objects(store.bucket, _states_of(stage), "PutObject"),
        _telling_what_is_missing(store),
        *grants.on_key(store.key, write=True),
    ]


def replay(stage: Stage, store: StoreStack) -> Statements:
    """The function `replay`."""
    return [
        grants.on_table(store.tips, "GetItem", "Query"),
        grants.on_table(store.journal, "BatchGetItem"),
        grants.on_table(store.snapshot, "GetItem"),
        grants.on_table(store.events, "BatchGetItem"),
        grants.on_table(store.event_tags, "BatchGetItem", "Query", "Scan"),
        grants.on_indexes(store.event_tags, TAGS, "Query"),
        grants.on_table(store.projection_states, "GetItem", "Query"),
        grants.on_objects(store.bucket, BODIES, "GetObject"),
        grants.on_objects(store.bucket, _states_of(stage), "GetObject"),
        _telling_what_is_missing(store),
        *grants.on_key(store.key, write=False),
    ]


def feed(store: StoreStack) -> Statements:
    """The function `feed`."""
    return [
        grants.on_table(store.index, "GetItem", "Query"),
        grants.on_table(store.tips, "GetItem", "Query"),
        grants.on_table(store.journal, "BatchGetItem"),
        grants.on_table(store.snapshot, "BatchGetItem"),
        grants.on_table(store.events, "BatchGetItem"),
        grants.on_table(store.event_tags, "Query"),
        grants.on_objects(store.bucket, BODIES, "GetObject"),
        _telling_what_is_missing(store),
        *grants.on_key(store.key, write=False),
    ]


def indexer(store: StoreStack) -> Statements:
    """The function `indexer`, apart from its streams and its failures."""
    return [
        grants.on_table(store.index, "GetItem", "Query", "BatchGetItem", "PutItem", "UpdateItem"),
        grants.on_table(store.tips, "GetItem", "Query"),
        grants.on_table(store.journal, "BatchGetItem"),
        grants.on_table(store.snapshot, "BatchGetItem"),
        grants.on_table(store.event_tags, "Query"),
        *grants.on_key(store.key, write=True),
    ]


def _states_of(stage: Stage) -> str:
    """Where the library puts the tenant's large states."""
    return f"{STATES}{stage.service}/" if stage.service else STATES


def _telling_what_is_missing(store: StoreStack) -> iam.PolicyStatement:
    """Who may not list a bucket is told `access denied` for an object that is not there."""
    return grants.on_bucket(store.bucket, "ListBucket")
