"""Which stage the context asks for, and what `cdk.json` changes in it.

    "stages": {"prod": {"pages_partitions": 8, "alarm_topic": "arn:aws:sns:..."}}

Settings and their rules are the constructs' own (`epochal.cdk.stages`). Here a context value that nobody reads is
refused as well, before anything is synthesised.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Final

from epochal.cdk.coherence import coherent
from epochal.cdk.rules import BadSetting, list_alternatives
from epochal.cdk.stage_changes import changed, obeying
from epochal.cdk.stages import RULES, STAGES, Stage

_NOTHING: Final[Mapping[str, Any]] = MappingProxyType({})

ALSO_CONTEXT: Final = ("layouts", "api")
"""Settings that a context value may change for the stage that is deployed: `-c layouts=pages,tips`, `-c api=urls`."""

_LISTS: Final = ("layouts",)
"""Those of them that are lists."""

CONTEXT: Final = ("stage", "stages", "target", *ALSO_CONTEXT)
"""Context values that are ours."""

_OURS: Final = re.compile(r"\w+", re.ASCII)
"""What those look like: names of CDK's own hold a hyphen, a colon, a slash or an at sign."""


def check_context(names: Iterable[str]) -> None:
    """Refuse context values that nobody reads: `-c stag=prod` would deploy `dev`, and end well."""
    for name in names:
        if name in RULES and name not in CONTEXT:
            raise BadSetting(name, f"is a setting of a stage: set it in cdk.json as stages.<stage>.{name}")
        if _OURS.fullmatch(name) and name not in CONTEXT:
            raise BadSetting(name, f"is not a context value; {list_alternatives(name, CONTEXT)}")


def stage_from(name: object, overrides: object, said: Mapping[str, object] = _NOTHING) -> Stage:
    """The stage that context `stage` names, with what context `stages` changes in it, and then what is `said` besides.

    `overrides` is an object from cdk.json, or the same as JSON text where it comes from the command line. All of it is
    checked, also what concerns other stages: a misspelt stage would else go unnoticed until the day it is deployed.
    """
    everything = _decoded(overrides)
    for other in everything:
        _known(f"stages.{other}", other)
    stages = {each: changed(STAGES[each], changes) for each, changes in everything.items()}
    known = _known("stage", name)
    return _said(stages.get(known, STAGES[known]), said)


def _said(stage: Stage, said: Mapping[str, object]) -> Stage:
    changes = {
        key: obeying(key, key, value.split(",") if isinstance(value, str) and key in _LISTS else value)
        for key, value in said.items()
        if value is not None
    }
    return coherent(f"stages.{stage.name}", replace(stage, **changes)) if changes else stage


def _decoded(overrides: object) -> Mapping[str, Any]:
    if isinstance(overrides, str):
        try:
            overrides = json.loads(overrides)
        except json.JSONDecodeError as error:
            raise BadSetting("stages", f"must be JSON: {error}") from None
    if overrides is None:
        return _NOTHING
    if not isinstance(overrides, dict):
        raise BadSetting("stages", f"must be an object, not {overrides!r}")
    return overrides


def _known(where: str, name: object) -> str:
    if not isinstance(name, str) or name not in STAGES:
        raise BadSetting(where, f"must be one of {', '.join(STAGES)}, not {name!r}")
    return name
