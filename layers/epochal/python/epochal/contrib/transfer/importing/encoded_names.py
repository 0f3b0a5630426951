"""Encoding of other stores' names as stream names, and decoding: percent-encoding, with `~` in place of `%`.

`Order/7 ä` becomes `Order~2F7~20~C3~A4`. A `-` stays, so that a category stays a category.
"""

from __future__ import annotations

import re
from typing import Final

from epochal.errors import InvalidInput
from epochal.model.kinds import must_be

_ENCODED: Final = re.compile(rb"[^A-Za-z0-9\-_.:@+=]")
"""Bytes that a stream's name may not hold, and the escape sign itself."""

_ESCAPE: Final = re.compile(rb"~([0-9A-F]{2})")


def encode_name(text: str) -> str:
    """Encode any text as a valid stream name, writing other characters as `~XX`.

    Each byte of its UTF-8 that a name may not hold becomes `~` and two hex digits, and `~` itself `~7E`.

    Args:
        text: text to encode.

    Raises:
        InvalidInput: the text has no UTF-8, because it holds half of a surrogate pair.
    """
    must_be(str, text, "name", "text")
    try:
        encoded = text.encode()
    except UnicodeEncodeError:
        raise InvalidInput("name", f"must be text that UTF-8 can encode, got {text!a}") from None
    return _ENCODED.sub(lambda match: b"~%02X" % match[0][0], encoded).decode()


def decode_name(name: str) -> str:
    """Return the text that `encode_name` made a stream name of; raise `InvalidInput` for other names.

    Args:
        name: name of a stream.

    Raises:
        InvalidInput: `encode_name` makes this name of no text.
    """
    must_be(str, name, "name", "text")
    try:
        text = _ESCAPE.sub(lambda match: bytes.fromhex(match[1].decode()), name.encode()).decode()
        if encode_name(text) == name:
            return text
    except UnicodeError:
        pass
    raise InvalidInput("name", f"must be a name that encode_name returned, got {name!a}")
