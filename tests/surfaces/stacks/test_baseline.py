"""What is deployed is what it was, resource by resource: a refactoring changes no template."""

from __future__ import annotations

import difflib
import json
from typing import Any

import pytest

from epochal.cdk.sources import Sources
from tests.surfaces.stacks.baseline import (
    CHOICES,
    CONSTRUCTS,
    HERE,
    KEPT,
    masked,
    merge_patch,
    path_of,
    stage_of,
    text_of,
)
from tests.surfaces.stacks.constructs import constructs_of
from tests.surfaces.stacks.templates import Synthesise

RENEW = "if that is meant: CDK_VALIDATION=false .venv/bin/python -m tests.surfaces.stacks.baseline"


def changes(name: str, today: dict[str, Any]) -> str:
    kept = path_of(name).read_text("utf-8").splitlines()
    lines = difflib.unified_diff(kept, text_of(today).splitlines(), "kept", "today", n=5, lineterm="")
    return "\n".join(lines)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.proof] if choice.slow else [])
        for name, choice in CHOICES.items()
    ],
)
def test_the_templates_of_a_stage_are_what_they_were(
    synthesise: Synthesise, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    for variable, value in HERE.items():
        monkeypatch.setenv(variable, value)
    changed = changes(name, stage_of(synthesise, name))
    assert not changed, f"{changed}\n\n{RENEW}"


@pytest.mark.slow
def test_the_template_of_an_app_with_every_construct_is_what_it_was(sources: Sources) -> None:
    changed = changes(CONSTRUCTS, masked(constructs_of(sources)))
    assert not changed, f"{changed}\n\n{RENEW}"


def test_every_file_that_is_kept_is_compared() -> None:
    assert {path_of(name) for name in (*CHOICES, CONSTRUCTS)} == set(KEPT.iterdir())


def test_no_hash_of_an_asset_is_kept() -> None:
    """A hash changes with every line of code, and would hide what else changes."""
    kept = [path.read_text("utf-8") for path in KEPT.iterdir()]
    assert any('"S3Key": "<hash>.zip"' in text for text in kept)
    assert masked({"a": {"S3Key": f"{'0a' * 32}.zip"}}) == {"a": {"S3Key": "<hash>.zip"}}
    assert [text for text in kept if json.loads(text) != masked(json.loads(text))] == []


@pytest.mark.parametrize(
    ("before", "after", "patch"),
    [
        ({"a": 1}, {"a": 1}, {}),
        ({"a": 1}, {"a": 2}, {"a": 2}),
        ({"a": 1}, {}, {"a": None}),
        ({}, {"a": {"b": 1}}, {"a": {"b": 1}}),
        ({"a": {"b": 1, "c": 2}}, {"a": {"b": 1, "c": 3}}, {"a": {"c": 3}}),
        ({"a": {"b": 1}}, {"a": {}}, {"a": {"b": None}}),
        ({"a": [1, 2]}, {"a": [2, 1]}, {"a": [2, 1]}),
        ({"a": {"b": 1}}, {"a": "text"}, {"a": "text"}),
    ],
)
def test_a_patch_says_what_one_has_that_the_other_has_not(
    before: dict[str, Any], after: dict[str, Any], patch: dict[str, Any]
) -> None:
    assert merge_patch(before, after) == patch
