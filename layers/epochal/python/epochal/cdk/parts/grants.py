"""Permissions of each function, derived from the plans that it runs: exact actions on exact tables and prefixes.

    append    writes in every layout; reads items that decide a write, or that show whether a write was applied
    replay    reads in every layout
    feed      reads the index, and events of every layout for readers who ask for events; steers groups, by their
              states in the index alone
    indexer   writes the index; reads types of events to heal gaps, never their contents
    auditor   as the indexer, and scans the tables of heads; where a stage limits what streams keep, prunes
              streams and copies events to archives
    timers    appends to streams that it has loaded
    reaction  reads what `feed` reads; keeps its group's state in the index, and its own read models

Each layout declares what functions may do to its tables (`layout.port.Permission`).

The statements of a function are one inline policy, which is created together with its role. So an event source mapping,
which checks the role when it is made, never finds a role without its permissions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, Literal

from aws_cdk import aws_iam as iam

from epochal.cdk.parts.iam_statements import (
    BODIES,
    UPLOADS,
    on_items,
    on_key,
    on_keys,
    on_listing,
    on_objects,
    on_table,
)
from epochal.cdk.stages import Stage
from epochal.index.groups import STATES
from epochal.layout.tables import INDEX, READ_MODELS
from epochal.lazy_dataclasses import dataclass

if TYPE_CHECKING:
    from epochal.cdk.parts.stores import Stores


Statements = list[iam.PolicyStatement]

_READ: Final = ("GetItem", "Query")
_INDEX: Final = (*_READ, "BatchGetItem", "PutItem", "UpdateItem")


@dataclass(frozen=True, kw_only=True)
class _May:
    """The permissions of a function besides those on the tables and objects of layouts.

    Attributes:
        index: actions on the index.
        groups: actions on the states of groups in the index.
        archives: access to archives.
        bodies: actions on bodies.
        uploads: actions on uploads, which the function may also probe for existence; empty for none.
        looks: whether the function may probe for the existence of layouts' objects.
        writes: whether the function writes encrypted data.
    """

    index: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    archives: Literal["reading", "copying"] = "reading"
    bodies: tuple[str, ...] = ("GetObject",)
    uploads: tuple[str, ...] = ()
    looks: bool = False
    writes: bool = False


_FUNCTIONS: Final = {
    "append": _May(
        archives="copying",
        bodies=("GetObject", "PutObject"),
        uploads=("GetObject", "PutObject"),
        writes=True,
    ),
    "replay": _May(looks=True),
    "feed": _May(index=_READ, groups=("BatchGetItem", "PutItem", "UpdateItem", "DeleteItem"), writes=True),
    # Besides access to its streams and its failures.
    "indexer": _May(index=_INDEX, bodies=(), writes=True),
    "auditor": _May(index=_INDEX, archives="copying", bodies=(), writes=True),
    # Besides access to its queue, its table and its schedules.
    "timers": _May(bodies=("GetObject", "PutObject"), writes=True),
    # Besides access to its queue and its handler's permissions. It replaces the state of its group and deletes causes
    # of parked streams. A replay reads the end of a stream from the heads of its store.
    "reaction": _May(index=(*_INDEX, "DeleteItem"), writes=True),
}


def allowed(function: str, stage: Stage, stores: Stores) -> Statements:
    """Return the IAM statements that a function of Epochal needs.

    Args:
        function: kind of the function: a key of `_FUNCTIONS`.
    """
    may, bucket = _FUNCTIONS[function], stores.bucket
    ports = [layout.port for layout in stage.deployed_layouts()]
    objects = [port.objects(stage) for port in ports if port.objects is not None]
    statements = [
        on_items(stores.tables[access.table.kind], access)
        for port in ports
        for access in port.access(stage).get(function, ())
    ]
    if may.index:
        statements.append(on_table(stores.tables[INDEX.kind], *may.index))
    if may.groups:
        statements.append(on_keys(stores.tables[INDEX.kind], STATES, *may.groups))
    if may.bodies or (function == "auditor" and stage.keep):
        statements += [
            on_table(stores.tables[archive.table.kind], *getattr(archive, may.archives))
            for archive in (port.archive for port in ports)
            if archive is not None and archive.table.kind in stores.tables
        ]
    if may.bodies:
        prefixes = [(BODIES, may.bodies), (UPLOADS, may.uploads)]
        prefixes += [(access.prefix, access.actions.get(function, ())) for access in objects]
        statements += [on_objects(bucket, prefix, *actions) for prefix, actions in prefixes if actions]
        looked_for = [BODIES, *([UPLOADS] if may.uploads else ())]
        looked_for += [access.prefix for access in objects] if may.looks else ()
        statements.append(on_listing(bucket, *looked_for))
    return [*statements, *on_key(stores.key, write=may.writes)]


def appending(stage: Stage, stores: Stores) -> Statements:
    """Return the statements that a reaction needs besides its own to append to named streams."""
    ports = [layout.port for layout in stage.deployed_layouts() if layout.name == "pages"]
    access = [permission for port in ports for permission in port.access(stage)["append"]]
    written = [on_items(stores.tables[permission.table.kind], permission) for permission in access]
    return [*written, on_objects(stores.bucket, BODIES, *_FUNCTIONS["append"].bodies)]


def read_models(stores: Stores, names: Sequence[str]) -> Statements:
    """Return IAM statements to read and write the named read models, in any generation; empty for none.

    Args:
        names: names of the read models; empty for no access.
    """
    table = stores.tables.get(READ_MODELS.kind)
    if table is None or not names:
        return []
    keys = [key for name in names for key in (name, f"{name}@*")]
    return [on_keys(table, keys, "GetItem", "BatchGetItem", "Query", "PutItem", "DeleteItem")]
