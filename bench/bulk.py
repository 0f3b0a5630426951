"""What an append takes in bulk over HTTP (`POST /appends`): requests and units of DynamoDB, and dollars a million.

The functions' own handlers run over tables in memory (`bench.bill`), at a hundred appends a second. Events are 300
bytes of JSON, each on what the one before has left.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from bench.bill import BULK, BULK_OF_ONE, DEPLOYED, STEADY, Setup, bill, counted
from bench.functions import Use
from bench.report import Report


@dataclass(frozen=True, slots=True, kw_only=True)
class Took:
    """Figures of one append: requests to DynamoDB, units, and dollars for a million including the functions."""

    requests: float
    read: float
    write: float
    dollars: float

    def within(self, most: Took) -> bool:
        """Return whether no figure exceeds its bound."""
        return (
            self.requests <= most.requests
            and self.read <= most.read
            and self.write <= most.write
            and self.dollars <= most.dollars
        )


BOUNDS: Final = {
    DEPLOYED: Took(requests=1.01, read=0.01, write=1.01, dollars=2.22),
    BULK: Took(requests=1.01, read=0.01, write=1.01, dollars=0.90),
    replace(BULK, name="the same, each with a key", use=Use(keyed=True)): Took(
        requests=2.01, read=0.01, write=2.01, dollars=1.53
    ),
    BULK_OF_ONE: Took(requests=0.11, read=0.01, write=0.31, dollars=0.42),
}
"""What is promised, by how appends come."""


def took(setup: Setup) -> Took:
    """Measure an append of a bulk request."""
    used, count = counted(setup, STEADY).used["append"], setup.counted
    return Took(
        requests=used.requests / count,
        read=used.units.read / count,
        write=used.units.write / count,
        dollars=sum(bill(setup, STEADY).values()),
    )


def main() -> None:
    """Measure, print the figures, and exit with an error if a bound is exceeded."""
    results = {setup: took(setup) for setup in BOUNDS}
    Report(
        title="An append over HTTP, alone and in bulk of ten",
        columns=["", "requests", "write units", "read units", "dollars a million", "bound"],
        rows=[
            (
                setup.name,
                f"{figures.requests:.2f}",
                f"{figures.write:.2f}",
                f"{figures.read:.2f}",
                f"{figures.dollars:.2f}",
                f"{BOUNDS[setup].dollars:.2f}",
            )
            for setup, figures in results.items()
        ],
    ).print()
    if over := [setup.name for setup, figures in results.items() if not figures.within(BOUNDS[setup])]:
        raise SystemExit(f"over the bound: {over}")


if __name__ == "__main__":
    main()
