"""docs/guide/index-care.md: its commands and options are those there are."""

from __future__ import annotations

import re
from pathlib import Path

import click

from epochal.cli.main import epochal
from epochal.layout.tables import INDEX

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "guide" / "index-care.md"


def test_every_option_that_the_guide_names_is_one_of_the_commands() -> None:
    group = epochal.commands["index"]
    assert isinstance(group, click.Group)
    options = {
        name for command in group.commands.values() for parameter in command.params for name in parameter.opts
    }
    named = {name for name in re.findall(r"`(--[a-z-]+)", GUIDE.read_text()) if name != "--stack"}
    assert named
    assert named <= options


def test_the_table_of_a_new_index_is_made_with_the_keys_that_it_must_have() -> None:
    (command,) = re.findall(r"aws dynamodb create-table .*?```", GUIDE.read_text(), re.DOTALL)
    assert INDEX.sort is not None
    for key, kind in ((INDEX.partition, "HASH"), (INDEX.sort, "RANGE")):
        assert f"AttributeName={key.name},KeyType={kind}" in command
        assert f"AttributeName={key.name},AttributeType={key.type}" in command
    assert "StreamViewType=NEW_IMAGE" in command
