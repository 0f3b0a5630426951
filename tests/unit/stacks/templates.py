"""One synthesis, opened for looking: templates by what their stack is for."""

from __future__ import annotations

import json
from collections.abc import Callable
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any

from aws_cdk import App, Stack
from aws_cdk.assertions import Template

ROOT = Path(__file__).resolve().parents[3]

Resource = dict[str, Any]
Synthesise = Callable[..., "Deployment"]
"""`synthesise("prod", partitions=4)`: that stage with these settings changed."""


class Deployment:
    """The templates of one synthesis, by what the stack is for: `store`, `feed`, `api`, `watch`."""

    def __init__(self, app: App) -> None:
        self.directory = app.outdir
        stacks = [child for child in app.node.children if isinstance(child, Stack)]
        self.stacks = {stack.stack_name.rpartition("-")[2]: stack for stack in stacks}
        self.templates = {kind: Template.from_stack(stack) for kind, stack in self.stacks.items()}
        self._resources = cache(self._resources_of)  # a question to Node takes longer than most tests

    def __getitem__(self, kind: str) -> Template:
        return self.templates[kind]

    def of_type(self, kind: str, type_: str) -> dict[str, Resource]:
        """Resources of one type in one stack, by logical id."""
        return {id_: deepcopy(each) for id_, each in self._resources(kind).items() if each["Type"] == type_}

    def named(self, kind: str, type_: str, name: str) -> Resource:
        """The one resource of `type_` whose logical id begins with `name`."""
        (found,) = [each for id_, each in self.of_type(kind, type_).items() if id_.startswith(name)]
        return found

    def resources(self) -> list[Resource]:
        """Everything in every stack."""
        return [deepcopy(each) for kind in self.templates for each in self._resources(kind).values()]

    def _resources_of(self, kind: str) -> dict[str, Resource]:
        found: dict[str, Resource] = self.templates[kind].to_json()["Resources"]
        return found


def context_of_repository() -> dict[str, Any]:
    """The context of cdk.json, with the feature flags that templates depend on."""
    context: dict[str, Any] = json.loads((ROOT / "cdk.json").read_text())["context"]
    return context
