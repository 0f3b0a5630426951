"""The DynamoDB capacity that a call consumed."""

from __future__ import annotations

from typing import Final

from epochal.lazy_dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Capacity:
    """The DynamoDB capacity that a call consumed, retries and refused writes included.

    Bodies in the bucket are not included.

    Attributes:
        read: read capacity units as DynamoDB reports them, secondary indexes included; a store in memory counts only
            tables. A request whose response was lost reports none.
        write: write capacity units as DynamoDB reports them, secondary indexes included, with the same exceptions as
            `read`.
        requests: number of requests to DynamoDB, whether they succeeded or not.
    """

    read: float = 0.0
    write: float = 0.0
    requests: int = 0

    def __add__(self, other: Capacity) -> Capacity:
        """Return the capacity of two calls together."""
        return Capacity(
            read=self.read + other.read,
            write=self.write + other.write,
            requests=self.requests + other.requests,
        )


NOTHING: Final = Capacity()
