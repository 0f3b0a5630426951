"""The store over its HTTP API: signed requests on a pool of connections that stay open."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import quote, urlencode

from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from simplejson import RawJSON
from urllib3 import PoolManager, Retry
from urllib3.response import BaseHTTPResponse

from epochal.codec import json
from epochal.model.events import Event, Unfold
from examples.flights.aircraft import SNAPSHOT, read_snapshot
from examples.flights.happenings import Batch
from examples.flights.stores import Conflict, Item, Page, Standing, Written

CONNECTIONS: Final = 16
SECONDS: Final = 35.0
"""The API answers within 29, a long poll included."""

# Appends carry an Idempotency-Key, so a request whose answer was lost may be sent again, whichever it was.
_RETRIES: Final = Retry(
    total=6,
    backoff_factor=0.2,
    backoff_jitter=0.2,
    status_forcelist=(429, 502, 503, 504),
    allowed_methods=None,
    raise_on_status=False,
)


class UnexpectedAnswer(Exception):
    """The API answered what the demo has no use for; the message is the problem document."""


class HttpStore:
    """A deployed API at `url`. Safe under threads."""

    def __init__(self, url: str, *, key: str, secret: str, region: str) -> None:
        self._url = url.rstrip("/")
        self._signer = SigV4Auth(Credentials(key, secret), "execute-api", region)
        self._pool = PoolManager(maxsize=CONNECTIONS, block=True, retries=_RETRIES, timeout=SECONDS)

    def append(self, batch: Batch, snapshot: Unfold | None, token: str | None) -> Written | Conflict:
        """One request: the ETag of the answer before is this one's If-Match."""
        document: dict[str, Any] = {"events": [_event(event) for event in batch.events]}
        if snapshot is not None:
            document["unfolds"] = [{"type": snapshot.type, "data": _json(snapshot.data)}]
        answer = self.request(
            "POST",
            f"/streams/{quote(batch.stream, safe='')}/events",
            body=json.dumps(document),
            headers={
                "Content-Type": "application/json",
                "Idempotency-Key": uuid.uuid4().hex,
                **({"If-None-Match": "*"} if token is None else {"If-Match": token}),
            },
        )
        if answer.status == HTTPStatus.PRECONDITION_FAILED:
            return Conflict()
        fields = _read(answer, HTTPStatus.CREATED)
        return Written(
            version=fields["version"], token=answer.headers["ETag"], units=float(fields["capacity"]["write"])
        )

    def load(self, stream: str) -> Standing | None:
        """The stream's Tip."""
        answer = self.request("GET", f"/streams/{quote(stream, safe='')}")
        if answer.status == HTTPStatus.NOT_FOUND:
            return None
        unfolds = _read(answer, HTTPStatus.OK)["unfolds"]
        found = next(
            (read_snapshot(unfold["data"]) for unfold in unfolds if unfold["type"] == SNAPSHOT), None
        )
        return Standing(state=found, token=answer.headers["ETag"])

    def tails(self) -> dict[int, str]:
        """The feed's partitions."""
        listed = _read(self.request("GET", "/feed"), HTTPStatus.OK)["partitions"]
        return {each["partition"]: each["tail"] for each in listed}

    def page(self, partition: int, start: str, *, data: bool, wait: int = 0) -> Page:
        """A page of the feed."""
        query = {"from": start, "limit": 1_000, "data": "true" if data else "false", "wait": wait}
        fields = _read(self.request("GET", f"/feed/{partition}", query=query), HTTPStatus.OK)
        items = (
            Item(
                stream=item["stream"],
                index=item["index"],
                type=item["type"],
                body=json.dumps(item["data"]) if "data" in item else None,
            )
            for item in fields["items"]
        )
        return Page(items=tuple(items), next=fields["next"], at_tail=fields["atTail"])

    def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, object] | None = None,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> BaseHTTPResponse:
        """Sign and send one request."""
        url = f"{self._url}{path}" + (f"?{urlencode(query)}" if query else "")
        signed = AWSRequest(method, url, dict(headers or {}), body)
        self._signer.add_auth(signed)
        return self._pool.request(method, url, body=body, headers=dict(signed.headers.items()))


def _event(event: Event) -> dict[str, Any]:
    return {
        "type": event.type,
        "data": _json(event.data),
        "timestamp": event.timestamp,
        "correlationId": event.correlation_id,
    }


def _json(body: object) -> RawJSON:
    """A body that is JSON already, to stand in a document as it is."""
    if not isinstance(body, bytes):
        raise TypeError("the demo's bodies are small: none is a claim check")
    return RawJSON(body.decode())


def _read(answer: BaseHTTPResponse, status: int) -> Any:
    if answer.status != status:
        raise UnexpectedAnswer(f"{answer.status}: {answer.data.decode(errors='replace')[:500]}")
    return json.loads(answer.data)
