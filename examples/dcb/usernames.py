"""Unique usernames: claimed while an account has them, and free again once it is closed or renamed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from epochal.deciders.on_queries import Decisions
from epochal.deciders.projections import Projection, projection
from epochal.model.events import Event
from examples.dcb.store import event, memory_decisions


class Taken(Exception):
    """Someone else has this name."""


def claimed(name: str) -> Projection[bool]:
    """Whether an account has this name now."""
    return projection(
        tags=[f"username:{name}"],
        initial=False,
        on={"AccountRegistered": lambda _, __: True, "UsernameReleased": lambda _, __: False},
    )


def register(decisions: Decisions, name: str) -> None:
    """Open an account; raises `Taken`."""

    def rules(model: Mapping[str, Any]) -> list[Event]:
        if model["claimed"]:
            raise Taken(name)
        return [event("AccountRegistered", f"username:{name}")]

    decisions.handle({"claimed": claimed(name)}, rules)


def release(decisions: Decisions, name: str) -> None:
    """Close an account, if there is one."""
    decisions.handle(
        {"claimed": claimed(name)},
        lambda model: [event("UsernameReleased", f"username:{name}")] if model["claimed"] else [],
    )


def main() -> None:
    """Register, collide, release, register."""
    decisions = memory_decisions()
    register(decisions, "ann")
    try:
        register(decisions, "ann")
    except Taken as taken:
        print(f"{taken} is taken")
    release(decisions, "ann")
    register(decisions, "ann")
    print("ann is registered again")


if __name__ == "__main__":
    main()
