"""Names that the deployment and the code must agree on, each written once.

Stacks read the constants to set a function's environment; functions read the same constants back through
`Settings.from_environment`. Nothing else in the library looks at the environment.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from epochal.errors import InvalidInput

LAMBDA_PYTHON = "3.13"
"""The one Python version the functions run on in AWS; the library itself supports 3.11 to 3.14."""

TIPS_TABLE = "EPOCHAL_TIPS_TABLE"
INDEX_TABLE = "EPOCHAL_INDEX_TABLE"
BUCKET = "EPOCHAL_BUCKET"
PARTITIONS = "EPOCHAL_PARTITIONS"

MAX_PARTITIONS = 10_000
"""Sources are numbered this far apart (FORMATS §4)."""

REQUEST_SECONDS = 25.0
"""Every HTTP request, its retries included, ends within this (DESIGN §5.16): API Gateway gives up at 30."""

RESPONSE_BYTES = 4 * 1024 * 1024
"""A page of events ends here: a Lambda answers with at most 6 MB, and base64 adds a third."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What a function is told by its deployment. A function lacks what it has no business with.

    Attributes:
        tips_table: table of the `tips` layout.
        index_table: table of epochs, marks and reader checkpoints.
        bucket: bucket of bodies too large for an item.
        partitions: partitions of the feed of the `tips` source, 1 to 10,000.
    """

    tips_table: str = ""
    index_table: str = ""
    bucket: str = ""
    partitions: int = 1

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> Settings:
        """Read the settings, or raise `InvalidInput` naming the variable that does not parse."""
        count = environment.get(PARTITIONS, "1")
        if not (count.isascii() and count.isdigit() and 1 <= int(count) <= MAX_PARTITIONS):
            raise InvalidInput(PARTITIONS, f"must be a whole number from 1 to {MAX_PARTITIONS:,}")
        return cls(
            tips_table=environment.get(TIPS_TABLE, ""),
            index_table=environment.get(INDEX_TABLE, ""),
            bucket=environment.get(BUCKET, ""),
            partitions=int(count),
        )
