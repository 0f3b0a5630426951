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
    *sorted({operation.function for operation in operations()}),
    "indexer",
    "auditor",
    "timers",
)
ROUTE_KEYS: Final = tuple(operation.key for operation in operations())
LIMITS: Final = {
    operation.key: operation.requests_per_second
    for operation in operations()
    if operation.requests_per_second
}
SCOPES: Final = tuple(sorted({operation.scope for operation in operations()}))

_ARN: Final = r"arn:aws[a-z-]*"
_PLACE: Final = r"[a-z0-9-]+:\d{12}"
KEY: Final = a_text(rf"({_ARN}:kms:{_PLACE}:key/\S+)?", "the ARN of a KMS key")
TOPIC: Final = a_text(rf"({_ARN}:sns:{_PLACE}:\S+)?", "the ARN of an SNS topic")
REGION: Final = a_text(r"([a-z]{2,}(-[a-z]+)+-\d)?", "a region, as eu-central-1")
STREAM: Final = a_text(rf"({_ARN}:dynamodb:{_PLACE}:table/\S+/stream/\S+)?", "the ARN of a table's stream")
TABLE: Final = a_text(rf"({_ARN}:dynamodb:{_PLACE}:table/[^/\s]+)?", "the ARN of a table")
DOMAIN: Final = a_text(
    r"(?:(?=.{4,253}$)[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)+)?",
    "a name such as events.shop.example",
)
CERTIFICATE: Final = a_text(rf"({_ARN}:acm:{_PLACE}:certificate/\S+)?", "the ARN of a certificate")
WORD: Final = a_text(r"\S+", "text without spaces")
_NAME: Final = a_text(r"[^\s,]+", "text without spaces or commas")
LOG_DAYS: Final = one_of(1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731, 1096, 1827, 3653)

_MOST_TAGS: Final = 49
"""Most tags besides `epochal:stage`: a resource takes 50."""


def check_tags(value: object) -> Mapping[str, str]:
    """Return the given tags; raise `ValueError` if they break the rules of IAM, which are the strictest.

    CDK would take any tags, and the deployment would fail.

    Raises:
        ValueError: a tag breaks a rule, or there are too many tags.
    """
    tags: Mapping[str, str] = a_map(a_text(r"(?s).{1,256}", "text of 1 to 256 characters"))(value)
    for text in (text for pair in tags.items() for text in pair):
        if not all(unicodedata.category(letter)[0] in "LNZ" or letter in "_.:/=+-@" for letter in text):
            raise wrong("letters, digits, spaces and _ . : / = + - @ alone, which is what IAM takes", text)
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


def rule_of(option: Setting) -> Rule:
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


TABLES: Final = {spec.kind: spec for spec in every_table()}

EXISTING: Final = {f"existing_{kind.replace('-', '_')}": kind for kind in TABLES}
"""Kinds of tables by the settings that name an existing table in place of a new one."""

OF_LAYOUTS: Final = {
    **{layout.partitions: partitions_setting(layout.partitions) for layout in layouts()},
    **{
        name: setting
        for layout in layouts()
        for name, setting in own_settings(layout).items()
        if setting.chosen
    },
}
"""Settings of layouts, by name: their numbers of feed partitions, and the settings that plug-ins declare."""
