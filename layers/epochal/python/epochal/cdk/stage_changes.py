"""Changing the settings of a stage by an object of JSON, whose values obey the rules of the settings."""

from __future__ import annotations

from typing import Any, Final

from epochal.cdk.coherence import coherent, need_gateway
from epochal.cdk.rules import BadSetting, bad_setting, list_alternatives
from epochal.cdk.stage_rules import EXISTING, OF_LAYOUTS
from epochal.cdk.stages import RULES, Stage
from epochal.lazy_dataclasses import replace

_OF_GATEWAY: Final = ("access_log_class", "access_logs", "burst", "requests_per_second")
"""Settings of the gateway that every stage has by default."""


def changed(stage: Stage, changes: object, *, where: str = "", **besides: Any) -> Stage:
    """Return a copy of the stage with the settings of `changes`; raise `BadSetting` for a wrong one.

    Args:
        stage: the stage to change.
        changes: new values by the names of settings.
        where: text before a setting's name in errors; `stages.<stage>` where it is empty.
        besides: further fields to set, without checking their rules.

    Raises:
        BadSetting: a name is no setting, or a value breaks a rule.
    """
    where = where or f"stages.{stage.name}"
    if not isinstance(changes, dict):
        raise BadSetting(where, f"must be an object, not {changes!r}")
    parsed = {key: _parsed(where, key, value) for key, value in changes.items()}
    if parsed.get("api") == "urls":
        for key, rule in need_gateway({key: parsed.get(key) for key in _OF_GATEWAY}):
            raise BadSetting(f"{where}.{key}", rule)
    tables = {EXISTING[key]: arn for key, arn in parsed.items() if key in EXISTING}
    layout_settings = {key: value for key, value in parsed.items() if key in OF_LAYOUTS}
    others = {key: parsed[key] for key in parsed.keys() - layout_settings.keys() - EXISTING.keys()}
    return coherent(
        where,
        replace(
            stage,
            existing_tables=tables,
            of_layouts={**stage.of_layouts, **layout_settings},
            **others,
            **besides,
        ),
    )


def _parsed(where: str, key: str, value: object) -> Any:
    """Return a setting's parsed value; raise `BadSetting` for an unknown setting or a wrong value.

    Raises:
        BadSetting: there is no such setting, or the value breaks its rule.
    """
    if key not in RULES:
        raise BadSetting(f"{where}.{key}", f"is not a setting; {list_alternatives(key, RULES)}")
    return obeying(f"{where}.{key}", key, value)


def obeying(where: str, key: str, value: object) -> Any:
    """Return a value parsed by the rule of the setting `key`; raise `BadSetting` if it breaks the rule.

    Args:
        where: name of the setting in errors.
        key: name of the setting.

    Raises:
        BadSetting: the value breaks the rule.
    """
    try:
        return RULES[key](value)
    except ValueError as error:
        raise bad_setting(where, error) from None
