"""Explains why AWS denied a request, and what to do if the credentials themselves are at fault."""

from __future__ import annotations

from typing import Final

LOG_IN: Final = "log in again, for example with `aws sso login`"

_EXPIRED: Final = frozenset(
    {"ExpiredTokenException", "ExpiredToken", "RequestExpired", "TokenRefreshRequired"}
)
_UNKNOWN: Final = frozenset({"UnrecognizedClientException", "InvalidClientTokenId", "InvalidAccessKeyId"})


def explain_denial(code: str, message: str) -> str:
    """Return the message of a denial, with advice if the credentials are expired or of another account."""
    if code in _EXPIRED:
        return f"{message or code} ({LOG_IN})"
    if code in _UNKNOWN:
        return f"{message or code} (are AWS_PROFILE and the region those of the account that is meant?)"
    return message or code
