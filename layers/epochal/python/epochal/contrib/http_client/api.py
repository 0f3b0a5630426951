"""Sends a request to the API until its outcome is known, or the time is over.

    what came                                  what is done
    no connection                              sent again: nothing was received
    429                                        sent again, after `Retry-After`: nothing was run
    no answer, or one that was cut             sent again if it may be repeated
    5xx, but for those that last               sent again if it may be repeated, after `Retry-After`
    anything else                              returned

An append may be repeated because it carries an `Idempotency-Key`, the same one at each attempt: it is made once, and
the answer to a repeat is that of the first. What may not be repeated ends with `Unavailable`, whose `maybe_applied`
says that it may have been applied.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final
from urllib.parse import quote, urlencode, urlsplit

from epochal.codec import json
from epochal.contrib.http_client.exchange import Auth, HttpAnswer, HttpRequest, Send
from epochal.contrib.http_client.problems import error_of, name_of
from epochal.dynamo.wire.http import NoAnswer, Unsent
from epochal.errors import EpochalError, InvalidInput, Unavailable
from epochal.lazy_dataclasses import dataclass, field, replace
from epochal.store.driver import UNREACHED, Patience

PATIENCE: Final = Patience(seconds=60.0, first=0.1, longest=5.0)
"""Two requests of the longest that the API may take, and what lies between."""

_THROTTLED: Final = 429
_SERVERS: Final = 500
_LASTING: Final = ("corrupt-data", "missing-body", "not-deployed")
"""Problems with a status of 5xx that no retry mends."""

Pairs = Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """An answer of the API that settles what became of the request.

    Attributes:
        status: code of the status.
        document: the JSON object of the body; empty for none.
        headers: headers by lower-case name.
        action: method and path of the request.
        size: bytes of the request.
    """

    status: int
    document: Mapping[str, Any]
    headers: Mapping[str, str]
    action: str
    size: int

    @property
    def problem(self) -> str:
        """Name of the problem's type; empty where there is none."""
        return name_of(self.document) if self.status >= 400 else ""  # noqa: PLR2004  statuses of refusals

    @property
    def error(self) -> EpochalError:
        """The error that this answer is, unless the caller makes an outcome of it."""
        return error_of(self.status, self.document, self.action, self.size)


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiClient:
    """An HTTP API, and how it is reached.

    Attributes:
        url: address, without a slash at its end: the stack's output `ApiUrl`.
        send: sends a request once.
        auth: headers by which the API knows the caller.
        patience: how long and how often a request is repeated.
        clock, sleep, luck: as of `store.driver.Driver`.
    """

    url: str
    send: Send
    auth: Auth
    patience: Patience = PATIENCE
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], object] = time.sleep
    luck: Callable[[], float] = field(default=random.random)

    def __post_init__(self) -> None:
        object.__setattr__(self, "url", checked_url(self.url))

    def call(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        *,
        query: Pairs = (),
        headers: Mapping[str, str] | None = None,
        key: str | None = None,
        writes: bool = False,
        repeatable: bool = True,
    ) -> Reply:
        """Send a request until an answer settles it; return it, whatever its status, or raise `Unavailable`.

        Args:
            path: path with percent-encoded names.
            body: JSON object of the body; None for none.
            query: names and values of the query string.
            headers: further headers.
            key: value of the `Idempotency-Key`; None for none.
            writes: whether the request changes something.
            repeatable: whether the request may be sent again where its answer was lost.

        Raises:
            Unavailable: the time was over, or the request may not be repeated.
            InvalidInput: what answers is not the API.
        """
        content = b"" if body is None else json.dumps(body)
        all_headers = {"Accept": "application/json", "User-Agent": "epochal", **(headers or {})}
        if content:
            all_headers["Content-Type"] = "application/json"
        if key is not None:
            all_headers["Idempotency-Key"] = key
        text = urlencode(list(query), quote_via=quote)
        request = HttpRequest(
            method=method,
            url=f"{self.url}{path}{text and f'?{text}'}",
            headers=all_headers,
            body=content,
        )
        answer = self.settled(request, signed=True, writes=writes, repeatable=repeatable)
        return Reply(
            status=answer.status,
            document=_document(answer) or {},
            headers=answer.headers,
            action=f"{method} {path}",
            size=len(content),
        )

    def settled(
        self, request: HttpRequest, *, signed: bool, writes: bool = False, repeatable: bool = True
    ) -> HttpAnswer:
        """Send a request until an answer settles it; return that answer, or raise `Unavailable`.

        Args:
            signed: whether the request is one to the API, which answers in JSON and wants to know the caller.
        """
        begun, tries, reached, maybe = self.clock(), 0, False, False
        while True:
            tries += 1
            retry_after, lost = 0.0, False
            failure: Exception | None = None
            try:
                answer = self._sent_once(request) if signed else self.send(request)
            except Unsent as error:
                cause, failure = str(error), error
                if error.nowhere and not reached and tries >= UNREACHED:
                    raise Unavailable(cause, maybe_applied=maybe) from error
            except NoAnswer as error:
                cause, failure, lost, reached = str(error), error, True, True
            else:
                if not _passes(answer):
                    return answer
                cause, reached = _cause(answer), True
                lost, retry_after = answer.status >= _SERVERS, _retry_after(answer)
            maybe = maybe or (lost and writes)
            if lost and not repeatable:
                raise Unavailable(cause, maybe_applied=maybe) from failure
            if not self.pause(tries, begun, retry_after):
                raise Unavailable(cause, maybe_applied=maybe) from failure

    def pause(self, tries: int, begun: float, retry_after: float = 0.0) -> bool:
        """Wait before a further attempt and return True; return False at once if there may be none.

        Args:
            tries: number of attempts so far.
            begun: reading of the clock before the first.
            retry_after: seconds that the last answer asked to wait for.
        """
        pause = max(retry_after, self.patience.wait(tries, self.luck()))
        if self.patience.is_over(tries) or self.clock() - begun + pause > self.patience.seconds:
            return False
        self.sleep(pause)
        return True

    def _sent_once(self, request: HttpRequest) -> HttpAnswer:
        """Send a request to the API once, authorized anew, and return the whole answer; else raise `NoAnswer`."""
        answer = self.send(replace(request, headers={**request.headers, **self.auth(request)}))
        if _is_cut(answer):
            raise NoAnswer(f"the response to {request.method} was truncated")
        return answer


def checked_url(url: object) -> str:
    """Return an API's address without a slash at its end; raise `InvalidInput` unless it is an address."""
    try:
        parts = urlsplit(url) if isinstance(url, str) else None
    except ValueError:
        parts = None
    if (
        parts is None
        or parts.scheme not in ("http", "https")
        or not parts.hostname
        or parts.query
        or parts.fragment
        or parts.username is not None
    ):
        raise InvalidInput("url", "must be the address of an HTTP API, such as the stack's output ApiUrl")
    return str(url).rstrip("/")


def segment(name: str) -> str:
    """Percent-encode a name for a path."""
    return quote(name, safe="-_.~:@+=")


def _document(answer: HttpAnswer) -> dict[str, Any] | None:
    """Return the JSON object of an answer; None if there is none."""
    try:
        document = json.loads(answer.body)
    except ValueError:
        return None
    return document if isinstance(document, dict) else None


def _is_cut(answer: HttpAnswer) -> bool:
    """Return whether an answer may have lost its end; raise `InvalidInput` if it is none of the API's.

    The end of a connection within the headers looks like an answer without content.

    Raises:
        InvalidInput: the answer is whole, and none of the API's.
    """
    if answer.status in (304, *_OF_GATEWAY) or answer.status >= _SERVERS or _document(answer) is not None:
        return False
    if not answer.is_whole:
        return True
    media = answer.headers.get("content-type", "no media type")
    raise InvalidInput("url", f"answered {answer.status} with {media}: this is not the HTTP API")


_OF_GATEWAY: Final = (401, 403, 429)
"""Statuses that say enough without a document."""


def _passes(answer: HttpAnswer) -> bool:
    """Return whether an answer says that the request may succeed later."""
    if answer.status < _SERVERS:
        return answer.status == _THROTTLED
    return name_of(_document(answer) or {}) not in _LASTING


def _cause(answer: HttpAnswer) -> str:
    """Describe an answer that asks for a retry."""
    document = _document(answer) or {}
    detail = document.get("detail") or document.get("message") or document.get("title") or ""
    return f"{answer.status} {detail}".strip()


def _retry_after(answer: HttpAnswer) -> float:
    """Return the seconds of the `Retry-After` header; 0 without one, or where it is a date."""
    text = answer.headers.get("retry-after", "").strip()
    return float(text) if text.isascii() and text.isdecimal() else 0.0
