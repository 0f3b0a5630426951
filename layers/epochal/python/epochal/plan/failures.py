"""How a request can fail without an answer: what an interpreter raises, and a driver retries."""

from __future__ import annotations


class RequestFailure(Exception):
    """A request that got no answer of substance. `cause` names it for logs."""

    def __init__(self, cause: str) -> None:
        super().__init__(cause)
        self.cause = cause


class NotApplied(RequestFailure):
    """Throttled, or in conflict with a transaction: certainly not applied, worth trying again."""


class Unreached(NotApplied):
    """No connection, at an address that has never answered: it may be a wrong one, which no waiting mends."""


class Lost(RequestFailure):
    """Timed out, cut off, or an internal error: it may have been applied, or may still be."""
