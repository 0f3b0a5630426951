"""Double opt-in without a table of tokens: a token is an event, good once, and for an hour."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from epochal.deciders.on_queries import Decisions
from epochal.deciders.projections import projection
from epochal.model.events import Event
from examples.dcb.store import event, memory_decisions

HOUR = 3600


class BadToken(Exception):
    """Unknown, used, or too old."""


@dataclass(frozen=True, slots=True)
class SignUp:
    """Who asked, and until when the token is good."""

    name: str
    until: int
    confirmed: bool = False


def sign_up(decisions: Decisions, token: str, name: str, now: int) -> None:
    """Send `token` to somebody: here, only remember it."""
    decisions.store.append([event("SignUpInitiated", f"token:{token}", name=name, until=now + HOUR)])


def confirm(decisions: Decisions, token: str, now: int) -> str:
    """Redeem a token; the name it was for. Raises `BadToken`."""
    pending = projection(
        tags=[f"token:{token}"],
        initial=None,
        on={
            "SignUpInitiated": lambda _, asked: SignUp(asked.json()["name"], asked.json()["until"]),
            "SignUpConfirmed": lambda asked, _: asked and SignUp(asked.name, asked.until, confirmed=True),
        },
    )

    def rules(model: Mapping[str, Any]) -> list[Event]:
        asked = model["pending"]
        if asked is None:
            raise BadToken("unknown")
        if asked.confirmed:
            raise BadToken("used")
        if now > asked.until:
            raise BadToken("too old")
        return [event("SignUpConfirmed", f"token:{token}", name=asked.name)]

    decided = decisions.handle({"pending": pending}, rules)
    name: str = decided.events[0].json()["name"]
    return name


def main() -> None:
    """One token redeemed twice, one too late, one never sent."""
    decisions = memory_decisions()
    sign_up(decisions, "111", "ann", now=0)
    sign_up(decisions, "222", "ben", now=0)
    for token, now in (("111", 60), ("111", 61), ("222", 2 * HOUR), ("333", 0)):
        try:
            print(f"{token}: welcome, {confirm(decisions, token, now)}")
        except BadToken as bad:
            print(f"{token}: {bad}")


if __name__ == "__main__":
    main()
