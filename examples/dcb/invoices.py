"""Invoice numbers without holes: each is the last one plus one, however many clerks there are."""

from __future__ import annotations

from epochal.deciders.on_queries import Decisions
from epochal.deciders.projections import Projection, projection
from examples.dcb.store import event, memory_decisions


def last_number() -> Projection[int]:
    """The number of the latest invoice; 0 before the first."""
    return projection(
        tags=["series:invoices"],
        initial=0,
        on={"InvoiceCreated": lambda _, created: created.json()["number"]},
    )


def create(decisions: Decisions, amount: str) -> int:
    """Create an invoice; its number."""
    decided = decisions.handle(
        {"last": last_number()},
        lambda model: [event("InvoiceCreated", "series:invoices", number=model["last"] + 1, amount=amount)],
    )
    number: int = decided.events[0].json()["number"]
    return number


def main() -> None:
    """Three invoices."""
    decisions = memory_decisions()
    print([create(decisions, amount) for amount in ("9.90", "120.00", "0.05")])


if __name__ == "__main__":
    main()
