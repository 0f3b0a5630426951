"""What each setting of a stage may hold: the rules by field.

A name or a number that the library checks as well is checked here by the library's own rule or limit, so that
what is deployed also runs.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from dataclasses import fields
from types import MappingProxyType
from typing import Final

from epochal.cdk.declared import reactions
from epochal.cdk.rules import Rule, a_flag, a_list, a_map, a_number, a_text, one_of, or_null, wrong
from epochal.declaration import Flag, Names, Number, OneOf, Setting, Text
from epochal.http.operations import OPERATIONS
from epochal.layout.registry import layout_names
from epochal.layout.tables import ARCHIVES, READ_MODELS, store_tables
from epochal.plugins import layouts, own_settings
from epochal.settings import DECLARED, Options, partitions_setting

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


_TABLES: Final = {spec.kind: spec for spec in (*store_tables(), *ARCHIVES.values(), READ_MODELS)}

EXISTING: Final = {f"existing_{kind.replace('-', '_')}": kind for kind in _TABLES}
"""Settings that name tables which are there already, and the kinds of these."""

OF_LAYOUTS: Final = {
    **{each.partitions: partitions_setting(each.partitions) for each in layouts()},
    **{name: each for layout in layouts() for name, each in own_settings(layout).items()},
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
