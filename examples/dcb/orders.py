"""Orders that are placed once: a browser that sends a form twice orders nothing twice.

The client chooses a token for each form. An order belongs to its token as to a tag, and is placed only if nothing
else does: no table of tokens seen, and nothing that forgets them after a while.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from epochal.deciders.on_queries import Decisions
from epochal.deciders.projections import Projection, projection
from epochal.model.events import Event
from examples.dcb.store import event, memory_decisions


def placed(token: str) -> Projection[str | None]:
    """The order that was placed with this token."""
    return projection(
        tags=[f"token:{token}"],
        initial=None,
        on={"OrderPlaced": lambda _, order: order.json()["order"]},
    )


def place(decisions: Decisions, order: str, token: str) -> str:
    """Place an order, unless its form has been sent before; the order that there is now."""

    def rules(model: Mapping[str, Any]) -> list[Event]:
        if model["placed"] is not None:
            return []
        return [event("OrderPlaced", f"order:{order}", f"token:{token}", order=order)]

    decided = decisions.handle({"placed": placed(token)}, rules)
    found: str | None = decided.model.states["placed"]
    return found or order


def main() -> None:
    """The same form twice, then another."""
    decisions = memory_decisions()
    print(place(decisions, "1", "11111"), place(decisions, "2", "11111"), place(decisions, "2", "22222"))


if __name__ == "__main__":
    main()
