"""A request and a response as plain values, so that operations can be tested without a gateway or a network."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

JSON: Final = "application/json"
PROBLEM: Final = "application/problem+json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What was asked.

    Attributes:
        path: values of the path's parameters, percent-decoded once.
        query: names and values in the order sent; a name may stand more than once.
        headers: by lower-case name.
        body: as sent, any base64 of the transport undone.
        seconds: how long the answer may take.
    """

    path: Mapping[str, str] = field(default_factory=dict)
    query: tuple[tuple[str, str], ...] = ()
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    seconds: float = 25.0

    def header(self, name: str) -> str | None:
        """A header's value without the spaces around it; None where it was not sent."""
        value = self.headers.get(name.lower())
        return None if value is None else value.strip(" \t")


@dataclass(frozen=True, slots=True, kw_only=True)
class Response:
    """What is answered.

    Attributes:
        body: JSON text; None for none.
        figures: what to count and measure about this request, by metric name.
    """

    status: int
    body: str | None = None
    media: str = JSON
    headers: Mapping[str, str] = field(default_factory=dict)
    figures: Mapping[str, float] = field(default_factory=dict)
