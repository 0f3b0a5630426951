"""What each function may do, derived from the plans that it runs: exact actions on exact tables and prefixes.

    append    writes in every layout; reads what decides a write, or tells whose it was
    replay    reads in every layout
    feed      reads the index, and events of every layout for readers who want them filled in
    indexer   writes the index; reads what heals it: types of events, never their contents
    auditor   as the indexer, and scans the tables of heads
    reaction  reads what `feed` reads; keeps its group's state in the index, and its own read models

What a function does to the tables of a layout, the layout tells (`layout.port.Permission`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from aws_cdk import aws_iam as iam

from epochal.cdk.parts import grants
from epochal.cdk.parts.stores import BODIES, STATES, UPLOADS, Stores
from epochal.cdk.stages import Stage
from epochal.layout.tables import ARCHIVE, INDEX, PROJECTION_STATES, READ_MODELS, STREAMS_ARCHIVE

Statements = list[iam.PolicyStatement]


def append(stage: Stage, stores: Stores) -> Statements:
    """The function `append`."""
    return [
        *_on_layouts("append", stage, stores),
        *_archives(stores, _ARCHIVING),
        _on_states(stage, stores, "PutItem", "DeleteItem"),
        grants.on_objects(stores.bucket, BODIES, "GetObject", "PutObject"),
        grants.on_objects(stores.bucket, UPLOADS, "GetObject", "PutObject"),
        grants.on_objects(stores.bucket, _states_of(stage), "PutObject"),
        grants.on_listing(stores.bucket, BODIES, UPLOADS),
        *grants.on_key(stores.key, write=True),
    ]


def replay(stage: Stage, stores: Stores) -> Statements:
    """The function `replay`."""
    return [
        *_on_layouts("replay", stage, stores),
        _on_states(stage, stores, "GetItem", "Query"),
        *_archives(stores, _READING_ARCHIVES),
        grants.on_objects(stores.bucket, BODIES, "GetObject"),
        grants.on_objects(stores.bucket, _states_of(stage), "GetObject"),
        grants.on_listing(stores.bucket, BODIES, _states_of(stage)),
        *grants.on_key(stores.key, write=False),
    ]


def feed(stage: Stage, stores: Stores) -> Statements:
    """The function `feed`."""
    return [
        *_on_layouts("feed", stage, stores),
        grants.on_table(stores.tables[INDEX.kind], "GetItem", "Query"),
        *_archives(stores, _READING_ARCHIVES),
        grants.on_objects(stores.bucket, BODIES, "GetObject"),
        grants.on_listing(stores.bucket, BODIES),
        *grants.on_key(stores.key, write=False),
    ]


def indexer(stage: Stage, stores: Stores) -> Statements:
    """The function `indexer`, apart from its streams and its failures."""
    return [
        *_on_layouts("indexer", stage, stores),
        grants.on_table(
            stores.tables[INDEX.kind], "GetItem", "Query", "BatchGetItem", "PutItem", "UpdateItem"
        ),
        *grants.on_key(stores.key, write=True),
    ]


def auditor(stage: Stage, stores: Stores) -> Statements:
    """The function `auditor`: it does what the indexer does, for heads that it finds by itself."""
    return [
        *_on_layouts("auditor", stage, stores),
        grants.on_table(
            stores.tables[INDEX.kind], "GetItem", "Query", "BatchGetItem", "PutItem", "UpdateItem"
        ),
        *grants.on_key(stores.key, write=True),
    ]


def reaction(stage: Stage, stores: Stores) -> Statements:
    """A function that runs a reaction, apart from its queue and from what its handler does.

    It replaces the state of its group and deletes causes of parked streams; where a stream ends, which a replay
    asks, the heads of its store tell.
    """
    return [
        *_on_layouts("reaction", stage, stores),
        grants.on_table(
            stores.tables[INDEX.kind],
            "GetItem",
            "Query",
            "BatchGetItem",
            "PutItem",
            "UpdateItem",
            "DeleteItem",
        ),
        *_archives(stores, _READING_ARCHIVES),
        grants.on_objects(stores.bucket, BODIES, "GetObject"),
        grants.on_listing(stores.bucket, BODIES),
        *grants.on_key(stores.key, write=True),
    ]


def read_models(stores: Stores, names: Sequence[str]) -> Statements:
    """What a reaction does that makes read models of these names, of any generation, and which one is live."""
    table = stores.tables.get(READ_MODELS.kind)
    if table is None or not names:
        return []
    keys = [key for name in names for key in (name, f"{name}@*")]
    return [grants.on_keys(table, keys, "GetItem", "PutItem", "DeleteItem")]


def _on_layouts(function: str, stage: Stage, stores: Stores) -> Statements:
    """What a function does to the tables of each layout that the stage has."""
    return [
        grants.on_items(stores.tables[access.table.kind], access)
        for layout in stage.deployed_layouts()
        for access in layout.port.access(stage).get(function, ())
    ]


def _states_of(stage: Stage) -> str:
    """Where the library puts the tenant's large states."""
    return f"{STATES}{stage.service}/" if stage.service else STATES


def _on_states(stage: Stage, stores: Stores, *actions: str) -> iam.PolicyStatement:
    """`actions` on the states of projections: where tenants share them, on the tenant's."""
    table = stores.tables[PROJECTION_STATES.kind]
    if not stage.service:
        return grants.on_table(table, *actions)
    return grants.on_keys(table, [f"SERVICE#{stage.service}#*"], *actions)


_ARCHIVING: Final = {
    ARCHIVE.kind: ("GetItem", "PutItem", "UpdateItem"),
    STREAMS_ARCHIVE.kind: ("Query", "PutItem"),
}
"""What copies streams before they are pruned: a Tip is got by its key, the last page is found by a query."""

_READING_ARCHIVES: Final = {ARCHIVE.kind: ("GetItem", "Query"), STREAMS_ARCHIVE.kind: ("Query",)}


def _archives(stores: Stores, actions: Mapping[str, Sequence[str]]) -> Statements:
    """`actions` on each archive that there is."""
    return [
        grants.on_table(stores.tables[kind], *each) for kind, each in actions.items() if kind in stores.tables
    ]
