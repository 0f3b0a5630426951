"""How a request can fail without an answer: what an interpreter raises, and a driver retries."""

from __future__ import annotations


class RequestFailure(Exception):
    """A request that failed without a definite answer; `cause` names the failure for logs."""

    def __init__(self, cause: str) -> None:
        super().__init__(cause)
        self.cause = cause


class RequestNotApplied(RequestFailure):
    """A request that was throttled, or in conflict with a transaction: it was not applied, so retry it."""


class Unreached(RequestNotApplied):
    """No connection to an address that has never answered, which may be wrong: waiting may not help."""


class Lost(RequestFailure):
    """A request that timed out, was cut off or met an internal error: it may be applied, now or later."""
