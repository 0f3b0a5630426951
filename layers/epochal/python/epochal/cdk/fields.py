"""Rules that settings obey: each takes what is in `cdk.json` and returns the value, or raises.

The error says what would be right and what was found; who asked adds where (`stages.py`).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, fields
from types import MappingProxyType
from typing import Any, Final

from epochal.declaration import Flag, Names, Number, OneOf, Setting, Text
from epochal.http.operations import OPERATIONS
from epochal.layout.registry import READ_MODELS, archives, layout_names, store_tables
from epochal.plugins import layouts, own_settings
from epochal.settings import DECLARED, Options, partitions_setting

Rule = Callable[[Any], Any]


def wrong(expected: str, found: object) -> ValueError:
    """The error for `found` where `expected` should be."""
    return ValueError(f"must be {expected}, not {found!r}")


def a_flag(value: object) -> bool:
    """True or false."""
    if not isinstance(value, bool):
        raise wrong("true or false", value)
    return value


def a_number(least: int, most: int) -> Rule:
    """A whole number from `least` to `most`."""

    def rule(value: object) -> int:
        # JSON's true is an int to Python.
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
            raise wrong(f"a whole number from {least:,} to {most:,}", value)
        return value

    return rule


def or_null(rule: Rule) -> Rule:
    """What obeys `rule`, or null."""
    return lambda value: None if value is None else rule(value)


def one_of(*choices: str | int) -> Rule:
    """One of `choices`."""

    def rule(value: object) -> object:
        # To Python, JSON's true and 1.0 are 1.
        if type(value) not in (str, int) or value not in choices:
            raise wrong("one of " + ", ".join(map(str, choices)), value)
        return value

    return rule


def a_text(pattern: str, meaning: str) -> Rule:
    """Text that matches `pattern` as a whole; `meaning` says so in words."""

    def rule(value: object) -> str:
        if not isinstance(value, str) or not re.fullmatch(pattern, value):
            raise wrong(meaning, value)
        return value

    return rule


def a_list(each: Rule, *, least: int = 0) -> Rule:
    """A list of at least so many elements, all of which obey `each`."""

    def rule(value: object) -> tuple[Any, ...]:
        if not isinstance(value, list) or len(value) < least:
            raise wrong(f"a list of {least} or more" if least else "a list", value)
        return tuple(each(element) for element in value)

    return rule


def a_map(each: Rule, *, keys: Collection[str] | None = None) -> Rule:
    """An object whose every value obeys `each`, and whose keys are among `keys` where these are given."""

    def rule(value: object) -> MappingProxyType[str, Any]:
        if not isinstance(value, dict):
            raise wrong("an object", value)
        if keys is not None and (strangers := sorted(set(value) - set(keys))):
            raise wrong(f"an object with keys among {', '.join(keys)}", strangers[0])
        return MappingProxyType({key: each(element) for key, element in value.items()})

    return rule


# Reactions as a stage declares them in `cdk.json`, for those who need no stack of their own.
#
# "reactions": {"board": {"entry": "reactions/board", "allow": [
#     {"actions": ["dynamodb:PutItem"], "resources": ["arn:${AWS::Partition}:dynamodb:…:table/board"]}]}}

_NOTHING: Final[Mapping[str, str]] = MappingProxyType({})
_REACTION: Final = r"[A-Za-z0-9][A-Za-z0-9-]{0,63}"
_MODEL: Final = r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Allow:
    """What a handler may do beside reading events: actions on resources."""

    actions: tuple[str, ...]
    resources: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Declared:
    """A reaction; what is left out is the construct's own (`reaction.py`).

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
    fields = _members(rules, value)
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
    fields = _members(_RULES, value)
    if "entry" not in fields:
        raise wrong("an object with an entry", value)
    return Declared(**fields)


def reactions(value: object) -> Mapping[str, Declared]:
    """Reactions by name."""
    found: Mapping[str, Declared] = a_map(_a_reaction)(value)
    for name in found:
        a_text(_REACTION, "reactions named with letters, digits and hyphens")(name)
    return found


def _members(rules: Mapping[str, Rule], value: object) -> dict[str, Any]:
    a_map(lambda each: each, keys=rules)(value)
    assert isinstance(value, dict)  # noqa: S101  # the rule above says so
    return {name: rules[name](each) for name, each in value.items()}


# What each setting of a stage may hold: the rules by field.
#
# A name or a number that the library checks as well is checked here by the library's own rule or limit, so that what
# is deployed also runs.

FUNCTIONS: Final = (*sorted({each.function for each in OPERATIONS}), "indexer", "notifier", "auditor")
ROUTE_KEYS: Final = tuple(each.key for each in OPERATIONS)
LIMITS: Final = {each.key: each.requests_per_second for each in OPERATIONS if each.requests_per_second}
SCOPES: Final = tuple(sorted({each.scope for each in OPERATIONS}))

_ARN: Final = r"arn:aws[a-z-]*"
_PLACE: Final = r"[a-z0-9-]+:\d{12}"
_KEY: Final = a_text(rf"({_ARN}:kms:{_PLACE}:key/\S+)?", "the ARN of a KMS key")
_TOPIC: Final = a_text(rf"({_ARN}:sns:{_PLACE}:\S+)?", "the ARN of an SNS topic")
_REGION: Final = a_text(r"([a-z]{2,}(-[a-z]+)+-\d)?", "a region, as eu-central-1")
_STREAM: Final = a_text(rf"({_ARN}:dynamodb:{_PLACE}:table/\S+/stream/\S+)?", "the ARN of a table's stream")
_TABLE: Final = a_text(rf"({_ARN}:dynamodb:{_PLACE}:table/[^/\s]+)?", "the ARN of a table")
_WORD: Final = a_text(r"\S+", "text without spaces")
_NAME: Final = a_text(r"[^\s,]+", "text without spaces or commas")
_LOG_DAYS: Final = one_of(1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731, 1096, 1827, 3653)


_MOST_TAGS: Final = 49
"""Beside `epochal:stage`: a resource takes 50."""


def _tags(value: object) -> Mapping[str, str]:
    """Tags as IAM takes them, the pickiest of the services that get them: CDK takes any, and the deployment fails."""
    tags: Mapping[str, str] = a_map(a_text(r"(?s).{1,256}", "text of 1 to 256 characters"))(value)
    for each in (each for pair in tags.items() for each in pair):
        if not all(unicodedata.category(letter)[0] in "LNZ" or letter in "_.:/=+-@" for letter in each):
            raise wrong("letters, digits, spaces and _ . : / = + - @ alone, which is what IAM takes", each)
    lower = [key.lower() for key in tags]
    for key, same in zip(tags, lower, strict=True):
        if not 1 <= len(key) <= 128 or same.startswith(("aws:", "epochal:")) or lower.count(same) > 1:  # noqa: PLR2004
            rule = (
                "keys of 1 to 128 characters, not of aws: nor epochal:, that differ in more than their case"
            )
            raise wrong(rule, key)
    if len(tags) > _MOST_TAGS:
        raise wrong(f"at most {_MOST_TAGS} tags", len(tags))
    return tags


def _rule(option: Setting) -> Rule:
    """What a stage may choose for a setting of the library."""
    match option.kind:
        case Number(least=least, most=most):
            number = a_number(least, most)
            # Null is as good as unsaid where a setting may be.
            return number if option.default is not None else or_null(number)
        case Flag():
            return a_flag
        case OneOf(of=choices):
            return one_of(*choices)
        case Text(pattern=pattern, meaning=meaning):
            return a_text(pattern, meaning)
        case Names():
            return a_list(_NAME)


_TABLES: Final = {spec.kind: spec for spec in (*store_tables(), *archives(), READ_MODELS)}

EXISTING: Final = {f"existing_{kind.replace('-', '_')}": kind for kind in _TABLES}
"""Settings that name tables which are there already, and the kinds of these."""

OF_LAYOUTS: Final = {
    **{each.partitions: partitions_setting(each.partitions) for each in layouts()},
    **{name: each for layout in layouts() for name, each in own_settings(layout).items() if each.chosen},
}
"""Settings that say how many partitions a layout's part of the feed has, and those that plug-ins declare."""

RULES: Final[Mapping[str, Rule]] = MappingProxyType(
    {
        **{each.name: _rule(DECLARED[each.name]) for each in fields(Options) if each.name in DECLARED},
        **{name: _rule(each) for name, each in OF_LAYOUTS.items()},
        "account": a_text(r"(\d{12})?", "an account's 12 digits"),
        "region": _REGION,
        # With 18 characters the longest name, a bucket's with account and region, still has at most 63.
        "prefix": a_text(r"[a-z][a-z0-9-]{1,16}[a-z0-9]", "3 to 18 lower-case letters, digits and hyphens"),
        "tags": _tags,
        "retain": a_flag,
        "deletion_protection": a_flag,
        "recovery_days": a_number(0, 35),
        "boto3": one_of("runtime", "tested"),
        "billing": one_of("on-demand", "provisioned"),
        "min_read_units": a_number(1, 40_000),
        "min_write_units": a_number(1, 40_000),
        "max_read_units": a_number(0, 1_000_000),
        "max_write_units": a_number(0, 1_000_000),
        "log_days": _LOG_DAYS,
        "log_kms_key": _KEY,
        "log_level": one_of("DEBUG", "INFO", "WARNING", "ERROR"),
        "api": one_of("gateway", "urls"),
        "domain_name": a_text(
            r"(?:(?=.{4,253}$)[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)+)?",
            "a name such as events.shop.example",
        ),
        "domain_certificate": a_text(rf"({_ARN}:acm:{_PLACE}:certificate/\S+)?", "the ARN of a certificate"),
        "access_logs": a_flag,
        "requests_per_second": a_number(1, 100_000),
        "burst": a_number(1, 50_000),
        "route_limits": a_map(a_number(1, 50_000), keys=ROUTE_KEYS),
        # As long as Lambda waits at most.
        "feed_window_seconds": a_number(0, 300),
        "feed_batch_size": a_number(1, 10_000),
        # As many as an account may have in most regions, until it asks for more.
        "feed_kinesis_shards": a_number(0, 200),
        "reserved_concurrency": a_map(a_number(1, 100_000), keys=FUNCTIONS),
        "kms_key": _KEY,
        "replica_region": _REGION,
        "replica_kms_key": _KEY,
        "jwt_issuer": a_text(r"(https://\S+)?", "an https:// address"),
        "jwt_audience": a_list(_WORD),
        # An empty list would let any token through.
        "jwt_scopes": a_map(a_list(_WORD, least=1), keys=SCOPES),
        "monthly_budget": a_number(0, 1_000_000),
        "alarm_topic": _TOPIC,
        "archive": a_flag,
        "reactions": reactions,
        "read_models": a_flag,
        **{name: _STREAM if _TABLES[kind].stream else _TABLE for name, kind in EXISTING.items()},
        "layouts": or_null(a_list(one_of(*layout_names()), least=1)),
        "existing_bucket": a_text(r"([a-z0-9][a-z0-9.-]{2,62})?", "the name of a bucket"),
    }
)
"""What each field may hold; `name`, `tls_only` and `batches_named` are not for setting."""
