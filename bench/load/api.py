"""Signed requests to a deployment's HTTP API, each of them measured, and sent again where that may help."""

from __future__ import annotations

import random
import time
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import urlencode

from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from urllib3 import PoolManager, Retry
from urllib3.exceptions import HTTPError

from bench.load.measures import Measures
from epochal.codec import json

SECONDS: Final = 35.0
"""The API answers within 29, a long poll included."""

TRIES: Final = 5
AGAIN: Final = (HTTPStatus.TOO_MANY_REQUESTS, 502, 503, 504)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What came back at last; status 0 is nothing. `tries` above 1: an earlier one may have been applied."""

    status: int
    etag: str
    content: bytes
    tries: int

    @property
    def json(self) -> Any:
        """The document, its numbers exact."""
        return json.loads(self.content)

    def __str__(self) -> str:
        return f"{self.status}: {self.content[:300].decode(errors='replace')}"


class Api:
    """A deployed API. Safe under threads."""

    def __init__(self, url: str, *, credentials: Credentials, region: str, measures: Measures) -> None:
        self.measures = measures
        self._url = url.rstrip("/")
        self._credentials, self._region = credentials, region
        self._pool = PoolManager(maxsize=32, block=True, timeout=SECONDS, retries=Retry(total=False))

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
        """Send a request until it is answered by more than "not now", or five times."""
        url = f"{self._url}{path}" + (f"?{urlencode(query, doseq=True)}" if query else "")
        content = b"" if body is None else json.dumps(body)
        named = {**({"Content-Type": "application/json"} if content else {}), **(headers or {})}
        for tries in range(1, TRIES + 1):
            signed = AWSRequest(method, url, dict(named), content)
            frozen: Any = (
                self._credentials.get_frozen_credentials()
            )  # those of a role expire during a long load
            SigV4Auth(frozen, "execute-api", self._region).add_auth(signed)
            answer = self._once(operation, signed, tries)
            if answer.status and answer.status not in AGAIN:
                break
            time.sleep(random.uniform(0, 0.2 * 2**tries))
        self._count(operation, answer)
        return answer

    def fetch(self, url: str) -> bytes:
        """What lies at a signed URL."""
        answer = self._pool.request("GET", url)
        if answer.status != HTTPStatus.OK:
            raise RuntimeError(f"a body could not be fetched: {answer.status}")
        return answer.data

    def _once(self, operation: str, signed: AWSRequest, tries: int) -> Answer:
        began = time.monotonic()
        try:
            found = self._pool.request(
                signed.method, signed.url, body=signed.data or None, headers=dict(signed.headers.items())
            )
            status, etag, data = found.status, found.headers.get("ETag", ""), found.data
        except HTTPError as error:
            status, etag, data = 0, "", str(error).encode()
        self.measures.sent(operation, status, time.monotonic() - began, again=tries > 1)
        return Answer(status=status, etag=etag, content=data, tries=tries)

    def _count(self, operation: str, answer: Answer) -> None:
        if answer.status == HTTPStatus.CREATED:
            capacity = answer.json["capacity"]
            self.measures.cost(operation, float(capacity["read"]), float(capacity["write"]))
