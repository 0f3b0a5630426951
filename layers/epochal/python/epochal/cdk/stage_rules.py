"""What settings of a stage may hold.

A name or a number that the library checks as well is checked here by the library's own rule or limit, so that every
deployed setting also works at run time.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from typing import Final

from epochal.cdk.rules import Rule, a_flag, a_list, a_map, a_number, a_text, one_of, or_null, wrong
from epochal.declaration import Flag, Names, Number, OneOf, Setting, Text
from epochal.http.routes import operations
from epochal.layout.tables import every_table
from epochal.plugins import layouts, own_settings
from epochal.settings import partitions_setting

FUNCTIONS: Final = (
    *sorted({each.function for each in operations()}),
    "indexer",
    "auditor",
    "timers",
)
ROUTE_KEYS: Final = tuple(each.key for each in operations())
LIMITS: Final = {each.key: each.requests_per_second for each in operations() if each.requests_per_second}
SCOPES: Final = tuple(sorted({each.scope for each in operations()}))

_ARN: Final = r"arn:aws[a-z-]*"
_PLACE: Final = r"[a-z0-9-]+:\d{12}"
_KEY: Final = a_text(rf"({_ARN}:kms:{_PLACE}:key/\S+)?", "the ARN of a KMS key")
_TOPIC: Final = a_text(rf"({_ARN}:sns:{_PLACE}:\S+)?", "the ARN of an SNS topic")
_REGION: Final = a_text(r"([a-z]{2,}(-[a-z]+)+-\d)?", "a region, as eu-central-1")
_STREAM: Final = a_text(rf"({_ARN}:dynamodb:{_PLACE}:table/\S+/stream/\S+)?", "the ARN of a table's stream")
_TABLE: Final = a_text(rf"({_ARN}:dynamodb:{_PLACE}:table/[^/\s]+)?", "the ARN of a table")
_DOMAIN: Final = a_text(
    r"(?:(?=.{4,253}$)[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)+)?",
    "a name such as events.shop.example",
)
_CERTIFICATE: Final = a_text(rf"({_ARN}:acm:{_PLACE}:certificate/\S+)?", "the ARN of a certificate")
_WORD: Final = a_text(r"\S+", "text without spaces")
_NAME: Final = a_text(r"[^\s,]+", "text without spaces or commas")
_LOG_DAYS: Final = one_of(1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731, 1096, 1827, 3653)

_MOST_TAGS: Final = 49
"""Most tags besides `epochal:stage`: a resource takes 50."""


def _tags(value: object) -> Mapping[str, str]:
    """Check tags against the rules of IAM, the strictest of the services that receive them.

    CDK would take any tags, and the deployment would fail.

    Raises:
        ValueError: a tag breaks a rule, or there are too many tags.
    """
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
    """Return the rule for a setting of the library that a stage may choose."""
    match option.kind:
        case Number(least=least, most=most):
            number = a_number(least, most)
            # Null means the default where a setting has none.
            return number if option.default is not None else or_null(number)
        case Flag():
            return a_flag
        case OneOf(of=choices):
            return one_of(*choices)
        case Text(pattern=pattern, meaning=meaning):
            return a_text(pattern, meaning)
        case Names():
            return a_list(_NAME)


_TABLES: Final = {spec.kind: spec for spec in every_table()}

EXISTING: Final = {f"existing_{kind.replace('-', '_')}": kind for kind in _TABLES}
"""Kinds of tables by the settings that name an existing table in place of a new one."""

OF_LAYOUTS: Final = {
    **{each.partitions: partitions_setting(each.partitions) for each in layouts()},
    **{name: each for layout in layouts() for name, each in own_settings(layout).items() if each.chosen},
}
"""Settings of layouts, by name: their numbers of feed partitions, and the settings that plug-ins declare."""
