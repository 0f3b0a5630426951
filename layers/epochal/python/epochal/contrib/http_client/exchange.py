"""Requests and answers of HTTP as values, so that a program sends them as it likes: blocking, awaited, or in a test."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from epochal.lazy_dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpRequest:
    """A request, ready to be sent.

    Attributes:
        method: `GET`, `POST`, `PUT` or `DELETE`.
        url: the whole address, with path and query string percent-encoded.
        headers: all headers except `Host` and `Content-Length`.
        body: the request's content; empty for none.
    """

    method: str
    url: str
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpAnswer:
    """An answer as it arrived.

    Attributes:
        status: code of the status.
        headers: headers by lower-case name.
        body: content.
    """

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def is_whole(self) -> bool:
        """Whether the headers say where the content ends: where they do not, the connection may have been cut."""
        length = self.headers.get("content-length", "")
        return length == str(len(self.body)) or "chunked" in self.headers.get("transfer-encoding", "")


Send = Callable[[HttpRequest], HttpAnswer]
"""Function that sends a request once and returns the whole answer; it raises `wire.http.Unsent` or `NoAnswer`."""

Auth = Callable[[HttpRequest], Mapping[str, str]]
"""Function that returns headers that prove to the API who the caller is: a signature or a token."""
