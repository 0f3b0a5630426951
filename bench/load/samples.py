"""Events to send: bodies of all kinds and sizes, no two alike, JSON and not; and what a body is in an answer."""

from __future__ import annotations

import base64
import random
import uuid
from decimal import Decimal
from typing import Any, Final

from simplejson import RawJSON

from bench.load.api import Api
from bench.load.ledger import Sample
from epochal.codec import json

TYPES: Final = ("Opened", "Changed", "Moved", "Closed")
SIZES: Final = (20, 60, 200, 200, 600, 2_000, 6_000)
RAW: Final = 0.2
"""Of events have a body that is no JSON."""

LARGE: Final = 450_000
"""More than an item holds: it goes to the bucket."""


def document(luck: random.Random) -> Sample:
    """Return an event whose body is JSON."""
    body = json.dumps(
        {
            "id": uuid.UUID(int=luck.getrandbits(128)).hex,
            "amount": Decimal(luck.randrange(10**9)).scaleb(-luck.randrange(4)),
            "note": "".join(luck.choices('abcdefghij é€🌍"\\', k=luck.choice(SIZES))),
        }
    )
    return Sample(type=luck.choice(TYPES), body=body)


def anything(luck: random.Random, *, large: float = 0.0) -> Sample:
    """Return an event whose body is JSON or arbitrary bytes, or with this probability too large for an item."""
    chosen = luck.random()
    if chosen < large:
        return Sample(type="Large", body=luck.randbytes(LARGE))
    if chosen < large + RAW:
        return Sample(type="Raw", body=b"\xff" + luck.randbytes(luck.choice(SIZES)))
    return document(luck)


def written(sample: Sample) -> dict[str, Any]:
    """Return the JSON of an event in a request."""
    try:
        return {"type": sample.type, "data": RawJSON(sample.body.decode())}
    except UnicodeDecodeError:
        return {"type": sample.type, "data64": base64.b64encode(sample.body).decode()}


def body_of(view: dict[str, Any], api: Api) -> bytes:
    """Return the exact body of an event in a response, from the bucket if it is there; empty if it has none."""
    if "dataUrl" in view:
        # Random bytes do not compress, so none of those that are sent is stored but as it is.
        return api.fetch(view["dataUrl"]["url"])
    if "data64" in view:
        return base64.b64decode(view["data64"])
    return json.dumps(view["data"]) if "data" in view else b""
