"""Reactions as a stage declares them in `cdk.json`, for teams that need no stack of their own.

"reactions": {"board": {"entry": "reactions/board", "permissions": [
    {"actions": ["dynamodb:PutItem"], "resources": ["arn:${AWS::Partition}:dynamodb:…:table/board"]}]}}
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from epochal.cdk.rules import (
    a_flag,
    a_list,
    a_map,
    a_number,
    a_text,
    declared_rules,
    parse_members,
    setting_field,
    wrong,
)
from epochal.lazy_dataclasses import dataclass, field

NOTHING: Final[Mapping[str, Any]] = MappingProxyType({})
REACTION: Final = r"[A-Za-z0-9][A-Za-z0-9-]{0,63}"
MODEL: Final = r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}"


@dataclass(frozen=True, slots=True, kw_only=True)
class HandlerPermission:
    """A permission of a reaction's handler besides reading events.

    Attributes:
        actions: IAM actions.
        resources: ARNs of the resources.
    """

    actions: tuple[str, ...]
    resources: tuple[str, ...]


def _an_environment(value: object) -> Mapping[str, str]:
    """Return a handler's environment variables; raise `ValueError` for names that Epochal or AWS use.

    Raises:
        ValueError: a name or a value is not allowed.
    """
    variables: Mapping[str, str] = a_map(a_text(r"[^\0]*", "text"))(value)
    for name in variables:
        if name.startswith(("EPOCHAL_", "AWS_", "POWERTOOLS_")):
            raise wrong("variables without the prefixes EPOCHAL_, AWS_ and POWERTOOLS_", name)
    return variables


def _a_permission(value: object) -> HandlerPermission:
    """Parse one permission of a handler: an object with `actions` and `resources`.

    Raises:
        ValueError: the object breaks a rule.
    """
    text = a_text(r"\S+", "text without spaces")
    action = a_text(r"[a-z0-9-]+:[A-Za-z0-9*]+", "an action such as dynamodb:PutItem")
    rules = {"actions": a_list(action, least=1), "resources": a_list(text, least=1)}
    fields = parse_members(rules, value)
    if fields.keys() != rules.keys():
        raise wrong("an object with actions and resources", value)
    return HandlerPermission(**fields)


@dataclass(frozen=True, slots=True, kw_only=True)
class Declared:
    """A reaction as `cdk.json` declares it; defaults are those of the construct `Reaction`.

    Attributes:
        entry: folder of the reaction's code, relative to the folder of `cdk.json`.
        handler: `module:reaction` or `module.function` in that folder.
        memory_mb: memory of the function, in MB.
        timeout_seconds: timeout of the function, in seconds.
        batch_size: wake-ups of one invocation, which runs their partitions one after another.
        reserved_concurrency: concurrent invocations that are reserved for the function, and its limit.
        environment: environment variables of the handler.
        permissions: permissions of the handler besides reading events.
        read_models: names of the read models that the reaction makes, in the stage's table.
        process: whether the reaction is a process, which is deployed as two reactions.
    """

    entry: str = field(metadata={"rule": a_text(r"\S(.*\S)?", "a folder")})
    handler: str = setting_field(
        "handler.handler", a_text(r"\w+[.:]\w+", "module:reaction or module.function")
    )
    memory_mb: int | None = setting_field(None, a_number(128, 10_240))
    timeout_seconds: int | None = setting_field(None, a_number(10, 900))
    batch_size: int | None = setting_field(None, a_number(1, 10))
    reserved_concurrency: int | None = setting_field(None, a_number(1, 100_000))
    environment: Mapping[str, str] = setting_field(NOTHING, _an_environment)
    permissions: tuple[HandlerPermission, ...] = setting_field((), a_list(_a_permission))
    read_models: tuple[str, ...] = setting_field((), a_list(a_text(MODEL, "the name of a read model")))
    process: bool = setting_field(False, a_flag)


def _a_reaction(value: object) -> Declared:
    """Parse one reaction that a stage declares; raise `ValueError` if a member breaks its rule.

    Raises:
        ValueError: a member breaks its rule, or `entry` is missing.
    """
    fields = parse_members(declared_rules(Declared), value)
    if "entry" not in fields:
        raise wrong("an object with an entry", value)
    return Declared(**fields)


def reactions(value: object) -> Mapping[str, Declared]:
    """Parse the reactions that a stage declares, by name; raise `ValueError` for a malformed one.

    Raises:
        ValueError: a name or a member breaks its rule.
    """
    declared: Mapping[str, Declared] = a_map(_a_reaction)(value)
    for name in declared:
        a_text(REACTION, "reactions named with letters, digits and hyphens")(name)
    return declared
