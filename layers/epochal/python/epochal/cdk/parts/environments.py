"""What functions of a stage are told: what the stage chooses, and where things are."""

from __future__ import annotations

from dataclasses import fields

from epochal.cdk.parts.stores import Stores
from epochal.cdk.stages import Stage
from epochal.layout.registry import declared
from epochal.plugins import own_settings
from epochal.settings import DECLARED, Options, Settings


def settings_of(stage: Stage, stores: Stores) -> Settings:
    """The settings of a stage with these stores."""
    chosen = {each.name: getattr(stage, each.name) for each in fields(Options) if each.name in DECLARED}
    partitions = {each.partitions: stage.partitions(each.partitions) for each in stage.deployed_layouts()}
    own = {
        name: stage.of_layouts.get(name, each.default)
        for layout in stage.deployed_layouts()
        for name, each in own_settings(layout).items()
    }
    tables = {
        each.name: stores.tables[each.table].table_name
        for each in declared().values()
        if each.table in stores.tables
    }
    return Settings.of(**chosen, **partitions, **own, **tables, bucket=stores.bucket.bucket_name)
