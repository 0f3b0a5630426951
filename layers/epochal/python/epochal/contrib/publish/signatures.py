"""What proves to an address who sends: signatures as Standard Webhooks has them, or a header.

    webhook-id         names the request: the same however often these events are sent
    webhook-timestamp  seconds, when it was sent
    webhook-signature  `v1,` and the HMAC-SHA256 of id, timestamp and body; one for each key that is in use

https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
from collections.abc import Sequence
from typing import Final

from epochal.contrib.publish.cloudevents import Message
from epochal.errors import InvalidInput

KEY_BYTES: Final = (24, 64)
"""Minimum and maximum number of bytes of a key, from the specification."""

_PREFIX: Final = "whsec_"
_HEADER: Final = re.compile(r"[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?")


def signing_key(secret: str) -> bytes:
    """Decode a secret's signing key, base64 with or without `whsec_` before it; raise if it is invalid.

    Raises:
        InvalidInput: the secret is not valid. It is never quoted.
    """
    least, most = KEY_BYTES
    try:
        key = base64.b64decode(secret.strip().removeprefix(_PREFIX), validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if not least <= len(key) <= most:
        rule = f"must be {least} to {most} bytes in base64, with or without the prefix {_PREFIX}"
        raise InvalidInput("sign_with", rule) from None
    return key


def header_value(secret: str) -> str:
    """Return a secret without white space around it, as a header's value; raise unless it is one line.

    Raises:
        InvalidInput: the secret is not one line of ASCII. It is never quoted.
    """
    value = secret.strip()
    if not _HEADER.fullmatch(value):
        raise InvalidInput("authorization", "must be one line of ASCII: the whole value of the header")
    return value


def request_id(events: Sequence[Message]) -> str:
    """Return the id of the request that sends these messages: always the same for the same messages."""
    names = "\n".join(f"{event.source} {event.id}" for event in events)
    return f"msg_{hashlib.sha256(names.encode()).hexdigest()[:32]}"


def signed(id_: str, seconds: int, content: bytes, keys: Sequence[bytes]) -> dict[str, str]:
    """Return the Standard Webhooks headers of a request: id, timestamp and a signature for each key.

    Args:
        id_: id of the request.
        seconds: time of sending, in seconds since 1970.
        content: body of the request.
        keys: signing keys.
    """
    message = f"{id_}.{seconds}.".encode() + content
    digests = (hmac.digest(key, message, "sha256") for key in keys)
    return {
        "webhook-id": id_,
        "webhook-timestamp": str(seconds),
        "webhook-signature": " ".join(f"v1,{base64.b64encode(digest).decode()}" for digest in digests),
    }
