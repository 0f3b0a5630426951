"""Settings of a stage's functions: those that the stage chooses, and the names of its resources."""

from __future__ import annotations

from typing import TYPE_CHECKING

from epochal.cdk.parts.layers import SCHEMAS
from epochal.cdk.stages import Stage
from epochal.layout.registry import declared
from epochal.lazy_dataclasses import fields
from epochal.plugins import own_settings
from epochal.settings import DECLARED, Options, Settings

if TYPE_CHECKING:
    from epochal.cdk.parts.stores import Stores


def settings_of(stage: Stage, stores: Stores) -> Settings:
    """Return the settings of a stage's functions, with the names of these tables and this bucket."""
    chosen = {each.name: getattr(stage, each.name) for each in fields(Options) if each.name in DECLARED}
    partitions = {each.partitions: stage.partitions(each.partitions) for each in stage.deployed_layouts()}
    own = {
        name: stage.of_layouts.get(name, each.default)
        for layout in stage.deployed_layouts()
        for name, each in own_settings(layout).items()
        if not each.table
    }
    tables = {
        each.name: stores.tables[each.table].table_name
        for each in declared().values()
        if each.table in stores.tables
    }
    places = {**tables, "bucket": stores.bucket.bucket_name, "plugins": stage.brought_layouts()}
    if stage.event_schemas:
        places["event_schemas"] = SCHEMAS
    return Settings.of(**chosen, **partitions, **own, **places)
