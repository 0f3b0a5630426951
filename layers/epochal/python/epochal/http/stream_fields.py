"""Fields that requests and answers about streams have in common: their schemas."""

from __future__ import annotations

from typing import Final

from epochal.http import schemas
from epochal.model.tokens import MAX_VERSION

STREAM: Final = schemas.name("Name of the stream, `Category-id`.", "Aircraft-N14228")


def _token(digits: int) -> schemas.Schema:
    """Return the schema of a token whose figures have at most `digits` digits."""
    return schemas.text(
        "The exact state of the stream: its ETag without the quotes.",
        pattern=rf"(0|[1-9]\d{{0,9}})\.[0-9a-f]{{32}}(\.\d{{1,{digits}}}){{5}}(\.\d{{1,10}}(\.[0-9a-f]{{32}})?)?",
    )


TOKEN: Final = _token(8)
"""A token in an answer. An append adds to the figures of the token that it got, which somebody may have made up."""

EXPECTED_TOKEN: Final = _token(7)
"""A token in a request."""

VERSION: Final = schemas.whole("Version of the stream, which is the index of its next event.", 0, MAX_VERSION)
LOW_WATER: Final = schemas.whole("Events below this index have been pruned.", 0, MAX_VERSION)
FIRST: Final = schemas.whole("Index of the first event of this append.", 0, MAX_VERSION)
REPLAYED: Final = schemas.flag("Whether an earlier request with the same Idempotency-Key made this append.")
