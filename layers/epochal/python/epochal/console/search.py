"""Old streams by how their names begin: the table itself is read, some of it at each press, at a price that is told."""

from __future__ import annotations

import binascii
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Mapping
from typing import Any, Final

from epochal.care.search import PAGE_BYTES, PAGE_UNITS, named
from epochal.codec import json
from epochal.console.services import Services
from epochal.deployment import Deployment
from epochal.errors import InvalidInput
from epochal.plan.values import Key

REQUESTS: Final = 8
"""Of a press."""

RULE: Final = "must be a place that a search came to"


def show(services: Services, deployment: Deployment, arguments: Mapping[str, str]) -> dict[str, Any]:
    """What a search would take; with `layout`, a part of it: from the beginning, or from the place `after` on."""
    prefix, layout = arguments.get("search", ""), arguments.get("layout", "")
    sources = {each.name: each for each in deployment.sources}
    if layout and layout not in sources:
        raise InvalidInput("layout", f"must be one of {', '.join(sources)}")
    sizes = services.bytes_of_tables()
    values = {
        "search": prefix,
        "layout": layout,
        "tables": [(each.name, sizes.get(each.table)) for each in sources.values()],
        "units": REQUESTS * PAGE_UNITS,
        "megabytes": REQUESTS,
        "whole": _whole,
        "found": None,
        "besides": "the sizes of tables" if sizes else "",
    }
    if not layout:
        return values
    source = sources[layout]
    after = read_key(arguments["after"]) if "after" in arguments else None
    found = named(deployment.driver, source, prefix, after=after, requests=REQUESTS)
    streams = [(each, source.partition_of(each)) for each in sorted(found.streams)]
    following = None if found.after is None else written_key(found.after)
    return {**values, "found": streams, "after": following, "begun": after is None}


def _whole(size: int) -> int:
    """Read units of a table of so many bytes."""
    return -(-size * PAGE_UNITS // PAGE_BYTES)


def written_key(key: Key) -> str:
    """A key for an address."""
    return urlsafe_b64encode(json.dumps(key)).decode()


def read_key(text: str) -> Key:
    """A key from an address. Whether the table has such keys, DynamoDB tells."""
    try:
        key = json.loads(urlsafe_b64decode(text))
    except (ValueError, binascii.Error) as error:
        raise InvalidInput("after", RULE) from error
    if not isinstance(key, dict) or not all(map(_is_value, key.values())):
        raise InvalidInput("after", RULE)
    return key


def _is_value(value: Any) -> bool:
    return isinstance(value, dict) and [type(each) for each in value.values()] == [str]
