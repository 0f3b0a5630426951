"""Sends batches of messages to an AWS service without botocore: signs and retries them, and checks the answers.

sent, answered      which entries were taken, and which were not: each entry once, or it is no answer of the service
throttled, cut off  tried again, with pauses
refused             the service's own error
"""

from __future__ import annotations

import random
import re
import ssl
import time
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from http import HTTPStatus
from typing import Any, Final

from epochal.dynamo.wire.environment import Service
from epochal.dynamo.wire.http import Connections, NoAnswer, Unsent, host_of, is_busy, roots
from epochal.dynamo.wire.signatures import Signer
from epochal.errors import InvalidRequest, Unavailable
from epochal.lazy_dataclasses import dataclass

TRIES: Final = 4

_CODE: Final = re.compile(r"[A-Za-z0-9.]{1,80}")

BatchResult = dict[str, list[dict[str, Any]]]
"""Entries that were taken, under `Successful`, and that were not, under `Failed`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """How to speak to one AWS service.

    Attributes:
        name: name of the service in its addresses and signatures: `sqs`.
        what: name for error messages: `the queue`.
        media: content type of bodies.
        results: parses which entries were accepted and which failed; None if something other than the service answered.
        error: parses code and message of an error answer; empty texts if it has none.
    """

    name: str
    what: str
    media: str
    results: Callable[[bytes], BatchResult | None]
    error: Callable[[bytes], tuple[str, str]]


class BatchClient:
    """Sends batches of entries to an AWS service with retries. Safe to share between threads."""

    def __init__(
        self,
        service: Service,
        dialect: Dialect,
        *,
        sleep: Callable[[float], object] = time.sleep,
        luck: Callable[[], float] = random.random,
    ) -> None:
        """Prepare connections and signatures for a service; tests replace `sleep` and `luck`."""
        bundle = service.bundle
        self._connections = Connections(
            service.url, tls=partial(ssl.create_default_context, cafile=bundle) if bundle else roots
        )
        self._signer = Signer(host_of(service.url), service.region, dialect.name)
        self._credentials = service.credentials
        self._dialect, self._sleep, self._luck = dialect, sleep, luck

    def send(
        self, action: str, target: str, body: bytes, entries: Iterable[Mapping[str, Any]]
    ) -> BatchResult:
        """Send a batch, up to `TRIES` times if unavailable; return accepted and failed entries, or raise.

        Args:
            action: name of the action, for errors.
            target: value of the header of that name; empty if the body names the action.
            entries: entries with an `Id` each, which the answer must contain exactly once.

        Raises:
            Unavailable: throttling, an outage, or no answer of the service's, however often it was tried.
            InvalidRequest: the service takes the request for malformed, or denies it.
        """
        ids = {entry["Id"] for entry in entries}
        for attempt in range(TRIES - 1):
            try:
                return self._send_once(action, target, body, ids)
            except Unavailable:
                self._sleep(self._luck() * 2**attempt)
        return self._send_once(action, target, body, ids)

    def _send_once(self, action: str, target: str, body: bytes, ids: set[str]) -> BatchResult:
        """Send a batch once, and return the results if they cover exactly the entries sent; else raise."""
        dialect = self._dialect
        keys = self._credentials.get_frozen_credentials()
        headers = self._signer.headers(keys, target, dialect.media, body)
        try:
            status, _, answer = self._connections.send(headers, body)
        except (Unsent, NoAnswer) as error:
            raise Unavailable(f"{dialect.what}: {error}") from error
        if status != HTTPStatus.OK:
            raise self._error(action, status, answer)
        results = dialect.results(answer)
        if (
            results is None
            or {entry.get("Id") for entry in (*results["Successful"], *results["Failed"])} != ids
        ):
            raise Unavailable(f"{dialect.what}: an answer that is not {dialect.name.upper()}'s")
        return results

    def _error(self, action: str, status: int, answer: bytes) -> Unavailable | InvalidRequest:
        """Convert an error answer into `Unavailable` if a retry may help, else `InvalidRequest`."""
        code, message = self._dialect.error(answer)
        code = code if _CODE.fullmatch(code) else str(status)
        if is_busy(status, code):
            return Unavailable(f"{self._dialect.what}: {code}")
        return InvalidRequest(action, code, message)
