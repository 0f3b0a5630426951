"""What functions of a stage are told: what the stage chooses, and where things are."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from epochal.settings import DECLARED, Options, Settings
from stacks.parts.stores import Stores
from stacks.stages import Stage


def settings_of(stage: Stage, stores: Stores) -> Settings:
    """The settings of a stage with these stores."""
    chosen = {each.name: getattr(stage, each.name) for each in fields(Options)}
    tables: dict[str, Any] = {
        each.name: table.table_name
        for each in DECLARED.values()
        if each.table and (table := stores.tables.get(each.table))
    }
    return Settings(**chosen, **tables, bucket=stores.bucket.bucket_name)
