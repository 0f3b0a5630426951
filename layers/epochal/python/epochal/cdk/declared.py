"""Reactions as a stage declares them in `cdk.json`, for those who need no stack of their own.

"reactions": {"board": {"entry": "reactions/board", "allow": [
    {"actions": ["dynamodb:PutItem"], "resources": ["arn:${AWS::Partition}:dynamodb:…:table/board"]}]}}
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final

from epochal.cdk.rules import Rule, a_list, a_map, a_number, a_text, wrong

_NOTHING: Final[Mapping[str, str]] = MappingProxyType({})
_NAME: Final = r"[A-Za-z0-9][A-Za-z0-9-]{0,63}"
_MODEL: Final = r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Allow:
    """What a handler may do beside reading events: actions on resources."""

    actions: tuple[str, ...]
    resources: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Declared:
    """A reaction; what is left out is the construct's own (`parts/reaction.py`).

    Attributes:
        entry: folder of its code, from where `cdk.json` is.
        handler: `module.function` in it.
        memory_mb, timeout_seconds: of the function.
        reserved_concurrency: invocations at once, and kept for it.
        environment: of the handler.
        allow: what the handler needs.
        read_models: names of those that it makes, in the stage's table.
    """

    entry: str
    handler: str = "handler.handler"
    memory_mb: int | None = None
    timeout_seconds: int | None = None
    reserved_concurrency: int | None = None
    environment: Mapping[str, str] = field(default_factory=lambda: _NOTHING)
    allow: tuple[Allow, ...] = ()
    read_models: tuple[str, ...] = ()


def _an_environment(value: object) -> Mapping[str, str]:
    variables: Mapping[str, str] = a_map(a_text(r"[^\0]*", "text"))(value)
    for name in variables:
        if name.startswith(("EPOCHAL_", "AWS_", "POWERTOOLS_")):
            raise wrong("variables of one's own", name)
    return variables


def _an_allow(value: object) -> Allow:
    text = a_text(r"\S+", "text without spaces")
    action = a_text(r"[a-z0-9-]+:[A-Za-z0-9*]+", "an action such as dynamodb:PutItem")
    rules = {"actions": a_list(action, least=1), "resources": a_list(text, least=1)}
    fields = _fields(rules, value)
    if fields.keys() != rules.keys():
        raise wrong("an object with actions and resources", value)
    return Allow(**fields)


_RULES: Final[Mapping[str, Rule]] = MappingProxyType(
    {
        "entry": a_text(r"\S(.*\S)?", "a folder"),
        "handler": a_text(r"\w+\.\w+", "module.function"),
        "memory_mb": a_number(128, 10_240),
        "timeout_seconds": a_number(10, 900),
        "reserved_concurrency": a_number(1, 100_000),
        "environment": _an_environment,
        "allow": a_list(_an_allow),
        "read_models": a_list(a_text(_MODEL, "the name of a read model")),
    }
)


def _a_reaction(value: object) -> Declared:
    fields = _fields(_RULES, value)
    if "entry" not in fields:
        raise wrong("an object with an entry", value)
    return Declared(**fields)


def reactions(value: object) -> Mapping[str, Declared]:
    """Reactions by name."""
    found: Mapping[str, Declared] = a_map(_a_reaction)(value)
    for name in found:
        a_text(_NAME, "reactions named with letters, digits and hyphens")(name)
    return found


def _fields(rules: Mapping[str, Rule], value: object) -> dict[str, Any]:
    a_map(lambda each: each, keys=rules)(value)
    assert isinstance(value, dict)  # noqa: S101  # the rule above says so
    return {name: rules[name](each) for name, each in value.items()}
