"""Stacks synthesised once for each combination of settings, without wheels and without the functions' real code."""

from __future__ import annotations

import json
import shutil
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from aws_cdk import App

from epochal.cdk.parts.bytecode import prepared
from epochal.cdk.parts.vendor import Platform
from epochal.cdk.sources import Sources
from stacks.deployment import deployment
from tests.unit.stacks.templates import ROOT, Deployment, Synthesise, context_of_repository


@pytest.fixture(scope="session")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Sources:
    """A copy of the library, which may be edited while tests run; a line each for functions and wheels."""
    place = tmp_path_factory.mktemp("sources")
    shutil.copytree(ROOT / "layers" / "epochal", place / "epochal")
    for name in ("append", "replay", "feed", "indexer", "notifier", "auditor", "publisher"):
        (place / "lambdas" / name).mkdir(parents=True)
        (place / "lambdas" / name / "handler.py").write_text(f"NAME = {name!r}\n")

    (place / "board").mkdir()
    (place / "board" / "handler.py").write_text("handler = print\n")

    @cache
    def vendor(platform: Platform) -> Path:
        folder = place / platform.name
        (folder / "python").mkdir(parents=True, exist_ok=True)
        (folder / "python" / "wheels.py").write_text(f"FOR = {platform.name!r}\n")
        return folder

    @cache
    def library(python: str) -> Path:
        return prepared(place / "epochal", python, place / "layers")

    return Sources(
        library=library,
        vendor=vendor,
        packages=lambda _, platform: vendor(platform),
        lambdas=place / "lambdas",
        root=place,
    )


@pytest.fixture(scope="session")
def synthesise(sources: Sources) -> Synthesise:

    @cache
    def once(stage: str, target: str, settings: str) -> Deployment:
        context = {
            **context_of_repository(),
            "stage": stage,
            "target": target,
            "stages": {stage: json.loads(settings)},
        }
        # CDK's own look at templates takes as long as making them; `test_synthesis` has it, as every deployment does.
        app = App(context=context, builtin_cloud_formation_validation=False)
        deployment(app, sources)
        return Deployment(app)

    def synthesise(stage: str = "dev", target: str = "aws", **settings: Any) -> Deployment:
        return once(stage, target, json.dumps(settings, sort_keys=True))

    return synthesise
