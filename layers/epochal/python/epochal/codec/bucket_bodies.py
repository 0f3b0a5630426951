"""Which bodies leave the item for the bucket, decided before anything is written (DESIGN §5.13).

An item holds 400 KB. The largest bodies go first, and only as many as needed, because a body in the bucket costs its
readers a second request.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Final

from epochal.codec.bodies import Encoded
from epochal.model.bodies import Claim

PREFIX: Final = "bodies/"
"""The prefix of bodies, which events may name; objects stay for ever."""

UPLOADS: Final = "uploads/"
"""The prefix of uploads, which expire. Before an event names a body, it is copied to `PREFIX`."""

CLAIM_BYTES: Final = 240
"""At most what a claim check of ours takes inside an item."""


def overflowing(sizes: Sequence[int], budget: int) -> tuple[int, ...]:
    """Choose the bodies to move to the bucket so that an item fits `budget` bytes; return their indices.

    Each moved body leaves a claim check. Bodies that are no larger than a claim check stay. If moving all others is not
    enough, they are returned all the same: the plan's own limit check then refuses, with the sizes.
    """
    total = sum(sizes)
    moved: list[int] = []
    for position in sorted(range(len(sizes)), key=lambda k: -sizes[k]):
        if total <= budget or sizes[position] <= CLAIM_BYTES:
            break
        total -= sizes[position] - CLAIM_BYTES
        moved.append(position)
    return tuple(sorted(moved))


def claim_for(body: Encoded) -> Claim:
    """Create the claim check of an encoded body.

    The object's key is the hash of the content, so equal bodies share one object.
    """
    digest = hashlib.sha256(body.data).hexdigest()
    return Claim(key=f"{PREFIX}{digest}", sha256=digest, size=len(body.data), encoding=body.encoding)


def upload_of(claim: Claim) -> str | None:
    """Return the key of the upload behind a claim, or None if the claim names any other object."""
    return f"{UPLOADS}{claim.sha256}" if claim.key == f"{PREFIX}{claim.sha256}" else None
