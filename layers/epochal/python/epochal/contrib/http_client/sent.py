"""What is sent: events, unfolds, expectations and queries as JSON, and large bodies uploaded before them.

A body that is compact JSON is sent as `data`, so that everybody can read it and the deployment's schemas apply; any
other as `data64`, so that the store has the same bytes. Bodies of one request together have some 3 MB: where they have
more, the largest go to the bucket first, and the request names them.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any, Final, TypeVar

from simplejson import RawJSON

from epochal.codec import json
from epochal.contrib.http_client.api import ApiClient
from epochal.contrib.http_client.exchange import HttpRequest
from epochal.errors import Refused
from epochal.http.bodies import json_text
from epochal.lazy_dataclasses import replace
from epochal.model.bodies import Body, Claim
from epochal.model.events import Event, Unfold
from epochal.model.expected_version import AtVersion, Expected, ExpectedVersion, check_expected
from epochal.model.tags import Query

TOGETHER: Final = 3 * 1024 * 1024
"""Bytes of the bodies in one request. A function takes 6 MB, in which a body of JSON may have twice its bytes, because
the gateway hands it on as JSON within JSON."""

_UPLOADED: Final = (200, 201, 204)
_THERE: Final = 412
"""The content is in the bucket already."""

S = TypeVar("S", Event, Unfold)


def event_member(event: Event) -> dict[str, Any]:
    """Return an event as the JSON object that a request sends."""
    members = {"correlationId": event.correlation_id, "causationId": event.causation_id, "id": event.id}
    return {
        **_contents(event),
        **{name: value for name, value in members.items() if value is not None},
        **({"tags": list(event.tags)} if event.tags else {}),
    }


def unfold_member(unfold: Unfold) -> dict[str, Any]:
    """Return an unfold as the JSON object that a request sends."""
    return _contents(unfold)


def expected_member(expected: ExpectedVersion) -> str | int:
    """Return what a writer expects of a stream as a request has it: a word, a version or a token.

    Raises:
        InvalidInput: the value is no expectation.
    """
    check_expected(expected)
    if isinstance(expected, Expected):
        return expected.value
    if isinstance(expected, AtVersion):
        return expected.version
    return expected.version if expected.etag is None else expected.text()


def query_member(query: Query) -> dict[str, Any]:
    """Return a query over types and tags as the JSON object that a request sends."""
    return {
        "items": [
            {name: sorted(values) for name, values in (("types", item.types), ("tags", item.tags)) if values}
            for item in query.items
        ]
    }


def _contents(written: Event | Unfold) -> dict[str, Any]:
    """Return the JSON members that send an event's or unfold's type, bodies, and time if it has one."""
    timed = {} if written.timestamp is None else {"timestamp": written.timestamp}
    return {
        "type": written.type,
        **timed,
        **_body_member("data", written.data),
        **_body_member("meta", written.meta),
    }


def _body_member(name: str, body: Body) -> dict[str, Any]:
    """Return the one member that sends a body, as a claim, JSON or base64; an empty dict for an empty one."""
    if isinstance(body, Claim):
        return {"claim": {"key": body.key, "sha256": body.sha256, "bytes": body.size}}
    if not body:
        return {}
    text = json_text(body)
    if text is not None and json.dumps(json.loads(body)) == body:
        return {name: RawJSON(text)}
    return {f"{name}64": b64encode(body).decode()}


def with_uploads(
    api: ApiClient, events: Sequence[Event], unfolds: Sequence[Unfold] | None
) -> tuple[Sequence[Event], Sequence[Unfold] | None]:
    """Upload the largest bodies until the rest fits a request; return all with claims in their place."""
    written: list[Event | Unfold] = [*events, *(unfolds or ())]
    sizes = [len(one.data) if isinstance(one.data, bytes) else 0 for one in written]
    total = sum(sizes) + sum(len(one.meta) for one in written if isinstance(one.meta, bytes))
    claims = dict[int, Claim]()
    for place in sorted(range(len(written)), key=lambda place: -sizes[place]):
        if total <= TOGETHER or not sizes[place]:
            break
        data = written[place].data
        assert isinstance(data, bytes)  # noqa: S101  only those have a size
        claims[place] = upload(api, data)
        total -= sizes[place]
    if not claims:
        return events, unfolds
    first = len(events)
    return (
        _claimed(events, claims, 0),
        None if unfolds is None else _claimed(unfolds, claims, first),
    )


def _claimed(written: Sequence[S], claims: Mapping[int, Claim], first: int) -> list[S]:
    """Return events or unfolds with their uploaded bodies replaced by claims.

    Args:
        first: place of the first of them among all that are written.
    """
    return [
        replace(one, data=claims[place]) if place in claims else one
        for place, one in enumerate(written, first)
    ]


def upload(api: ApiClient, body: bytes) -> Claim:
    """Put a body into the bucket, where it may be already, and return the claim on it.

    What no append claims within a day expires.

    Raises:
        TooLarge: the deployment takes no body of that size.
    """
    described = {"sha256": sha256(body).hexdigest(), "bytes": len(body)}
    reply = api.call("POST", "/bodies", described)
    if reply.status != 201:  # noqa: PLR2004  a URL was made
        raise reply.error
    document = reply.document
    request = HttpRequest(method="PUT", url=document["url"], headers={**document["headers"]}, body=body)
    answer = api.settled(request, signed=False)
    if answer.status not in (*_UPLOADED, _THERE):
        raise Refused("PutObject to the bucket of the API", f"status {answer.status}")
    claim = document["claim"]
    return Claim(key=claim["key"], sha256=claim["sha256"], size=claim["bytes"])
