"""Signed requests to a deployment's HTTP API, each of them measured, and sent again where that may help."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import urlencode

from botocore.credentials import Credentials
from botocore.httpsession import URLLib3Session

from bench.load.measures import Measures
from epochal.codec import json
from epochal.contrib.proving.signed_http import ANSWER_SECONDS, SignedHttp
from epochal.contrib.proving.signed_http import Answer as HttpAnswer
from epochal.errors import Unavailable

CONNECTIONS: Final = 32
TRIES: Final = 5
AGAIN: Final = (HTTPStatus.TOO_MANY_REQUESTS, 502, 503, 504)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The last response to a request; status 0 if there was none. If `tries` exceeds 1, an earlier one may have been
    applied.
    """

    status: int
    etag: str
    content: bytes
    tries: int

    @property
    def json(self) -> Any:
        """The document, with exact numbers."""
        return json.loads(self.content)

    def __str__(self) -> str:
        return f"{self.status}: {self.content[:300].decode(errors='replace')}"


class Api:
    """A client of a deployed API; safe for use by several threads."""

    def __init__(self, url: str, *, credentials: Credentials, region: str, measures: Measures) -> None:
        self.measures = measures
        self._http = SignedHttp(
            base=lambda _method, _path: url.rstrip("/"),
            service="execute-api",
            region=region,
            credentials=lambda: credentials,
            session=URLLib3Session(timeout=ANSWER_SECONDS, max_pool_connections=CONNECTIONS),
        )

    def __call__(
        self,
        operation: str,
        method: str,
        path: str,
        *,
        query: Mapping[str, object] | None = None,
        body: object = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """Send a request up to five times, until the response is final rather than "not now"."""
        target = path + (f"?{urlencode(query, doseq=True)}" if query else "")
        send = partial(self._http, method, target, body, headers=headers)
        for tries in range(1, TRIES + 1):
            answer = self._once(operation, send, tries)
            if answer.status and answer.status not in AGAIN:
                break
            time.sleep(random.uniform(0, 0.2 * 2**tries))
        self._count(operation, answer)
        return answer

    def fetch(self, url: str) -> bytes:
        """Download the content of a signed URL."""
        answer = self._http("GET", url)
        if answer.status != HTTPStatus.OK:
            raise RuntimeError(f"a body could not be fetched: {answer.status}")
        return answer.content

    def _once(self, operation: str, send: Callable[[], HttpAnswer], tries: int) -> Answer:
        began = time.monotonic()
        try:
            found = send()
            answer = Answer(
                status=found.status, etag=found.headers.get("etag", ""), content=found.content, tries=tries
            )
        except Unavailable as error:
            answer = Answer(status=0, etag="", content=str(error).encode(), tries=tries)
        self.measures.sent(operation, answer.status, time.monotonic() - began, again=tries > 1)
        return answer

    def _count(self, operation: str, answer: Answer) -> None:
        if answer.status == HTTPStatus.CREATED:
            capacity = answer.json["capacity"]
            self.measures.cost(operation, float(capacity["read"]), float(capacity["write"]))
