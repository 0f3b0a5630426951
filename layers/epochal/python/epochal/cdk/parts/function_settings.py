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
    """Return the settings of a stage's functions, with the names of the given tables and bucket."""
    chosen = {field.name: getattr(stage, field.name) for field in fields(Options) if field.name in DECLARED}
    partitions = {
        layout.partitions: stage.partitions(layout.partitions) for layout in stage.deployed_layouts()
    }
    layout_settings = {
        name: stage.of_layouts.get(name, setting.default)
        for layout in stage.deployed_layouts()
        for name, setting in own_settings(layout).items()
        if not setting.table
    }
    tables = {
        setting.name: stores.tables[setting.table].table_name
        for setting in declared().values()
        if setting.table in stores.tables
    }
    places = {**tables, "bucket": stores.bucket.bucket_name, "plugins": stage.brought_layouts()}
    if stage.event_schemas:
        places["event_schemas"] = SCHEMAS
    return Settings.of(**chosen, **partitions, **layout_settings, **places)
