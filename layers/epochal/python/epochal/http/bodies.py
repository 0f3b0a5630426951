"""Stored bodies as JSON members, each in the plainest form that loses nothing, and how much fits an answer.

"data": …          the body is JSON: shown as it is stored, to the byte
"data64": "…"      it is not: base64
"dataUrl": {…}     it is in the bucket: where to fetch it, for how long, and what it must hash to
                   none of these: it is empty

What is sent has `"claim": {…}` in its place for a body that has been uploaded.

An answer must fit what a Lambda function may return, 6 MB with every quote and backslash of its text escaped once more;
`RESPONSE_BYTES` of that are filled. A page ends where the next event would pass them. One event alone may go up to
`LARGEST`; beyond that it is given without its bodies and marked `omitted`, so that what follows it can still be read.
"""

from __future__ import annotations

import json as plain_json
import re
from base64 import b64encode
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Final, Protocol, TypeVar

from simplejson import RawJSON

from epochal.codec import json
from epochal.codec.bodies import BROTLI, DEFLATE, DIRECT, PREFIX
from epochal.codec.json import MARK
from epochal.errors import InvalidInput
from epochal.http.fields import Node, nests_too_deep, required
from epochal.http.operation import Request, Response
from epochal.model.events import Body, Claim
from epochal.plan.values import Units
from epochal.settings import RESPONSE_BYTES
from epochal.store.driver import Driver, Meter

if TYPE_CHECKING:
    from epochal.store.streams import Streams

Link = Callable[[Claim, int], str]
"""Signs a URL that a body can be fetched from for so many seconds."""

LINK_SECONDS: Final = 15 * 60
"""Long enough for a slow connection, short enough not to be kept."""

MAX_CLAIM_BYTES: Final = 5 * 1024**3
"""The largest object that S3 takes in one request."""

_SHA256: Final = re.compile(r"[0-9a-f]{64}", re.ASCII)

CODINGS: Final = {DIRECT: "identity", DEFLATE: "deflate-raw", BROTLI: "br"}


def members(name: str, body: Body, link: Link) -> dict[str, Any]:
    """The member that shows a body called `name`; none for an empty one."""
    if isinstance(body, Claim):
        return {f"{name}Url": claimed(body, link)}
    if not body:
        return {}
    text = json_text(body)
    return {f"{name}64": b64encode(body).decode()} if text is None else {name: RawJSON(text)}


def uploaded(node: Node) -> Claim:
    """The body that a claim of a request names; raises `InvalidInput` naming the field that breaks a rule."""
    fields = node.members(("key", "sha256", "bytes"))
    key, sha256, size = (required(node, fields, name) for name in ("key", "sha256", "bytes"))
    claim = claim_of(sha256, size)
    # The key follows from the hash: no claim can reach another object of the bucket.
    if key.value != claim.key:
        raise InvalidInput(key.name, f"must be {PREFIX} followed by sha256")
    return claim


def claim_of(sha256: Node, size: Node) -> Claim:
    """The claim check of a body with this hash and size, wherever it is kept."""
    digest = sha256.text(64)
    if not _SHA256.fullmatch(digest):
        raise InvalidInput(sha256.name, "must be 64 lower-case hex digits")
    return Claim(key=f"{PREFIX}{digest}", sha256=digest, size=size.whole(1, MAX_CLAIM_BYTES))


def claimed(claim: Claim, link: Link) -> dict[str, Any]:
    """Where a body in the bucket is, and what it must be."""
    return {
        "url": link(claim, LINK_SECONDS),
        "expiresIn": LINK_SECONDS,
        "sha256": claim.sha256,
        "bytes": claim.size,
        "encoding": CODINGS[claim.encoding],
    }


def json_text(body: bytes) -> str | None:
    """The body as JSON text, if that is what it is, and every reader can be expected to read it.

    What a request could not have brought as JSON either is left to those who ask for bytes: a byte order mark, names
    that appear twice, halves of surrogate pairs, deep nesting, numbers beyond what Python takes. An answer holds the
    bodies of many authors, and a strict reader could read none of it if one of them were malformed.
    """
    try:
        value = json.loads(body)
        if b"\\u" in body:
            json.dumps(value)
    except ValueError:
        return None
    return None if body.startswith(MARK) or nests_too_deep(body, value) else body.decode()


LARGEST: Final = 5_500_000
"""Bytes of one event in an answer, out of the 6,291,556 of a Lambda function's."""


class AnswerSize:
    """How much of an answer is left.

    Args:
        frames: of what is to be `put` and can be given as its frame at worst: room for these is kept.
    """

    def __init__(self, frames: Iterable[dict[str, Any]] = ()) -> None:
        self._used = 0
        self._kept = sum(map(_size_of, frames))

    def fit(self, view: Any) -> Any | None:
        """The view, if it has room."""
        text = text_of(view)
        size = sent_size(text)
        if self._used + size > RESPONSE_BYTES:
            return None
        self._used += size
        return RawJSON(text)

    def put(self, view: dict[str, Any], frame: dict[str, Any]) -> Any:
        """The view; where it has no room even in an answer of its own, its frame, marked `omitted`."""
        self._kept = max(0, self._kept - _size_of(frame))
        text = text_of(view)
        size = sent_size(text)
        left = min(RESPONSE_BYTES if self._used else LARGEST, LARGEST - self._kept) - self._used
        if size > left:
            omitted = {**frame, "omitted": True}
            self._used += _size_of(omitted)
            return omitted
        self._used += size
        return RawJSON(text)


def text_of(value: Any) -> str:
    """A value as JSON text."""
    return json.dumps(value).decode()


def capacity(units: Units) -> dict[str, float]:
    """What a request cost, as an answer tells it."""
    return {"read": units.read, "write": units.write}


def sent_size(text: str) -> int:
    """Bytes of the text inside a function's answer, where it stands as a JSON string."""
    return len(plain_json.dumps(text, ensure_ascii=False).encode())


def _size_of(view: Any) -> int:
    return sent_size(text_of(view))


# How operations run on a store: each request is measured, and bounded by its time.


class MeteredStore(Protocol):
    """A dataclass whose requests all go through its driver, as every store is."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    @property
    def driver(self) -> Driver:
        """What runs its requests."""


S = TypeVar("S", bound=MeteredStore)


def measured(store: S, request: Request) -> tuple[S, Meter]:
    """The store for one request."""
    driver, meter = driver_for(request, store.driver)
    return replace(store, driver=driver), meter


def streams_for(streams: Streams, request: Request) -> tuple[Streams, Meter]:
    """`measured`, of streams, whose archive is asked within the same request."""
    driver, meter = driver_for(request, streams.driver)
    return streams.on(driver), meter


def driver_for(request: Request, driver: Driver) -> tuple[Driver, Meter]:
    """The driver for one request: bounded by its time, its cost counted apart from others'."""
    meter = Meter()
    return replace(driver, meter=meter).within(request.seconds), meter


def answer(
    meter: Meter,
    view: Any,
    *,
    status: int = 200,
    headers: Mapping[str, str] | None = None,
    figures: Mapping[str, float] | None = None,
) -> Response:
    """A JSON value as an answer; what it cost joins its figures."""
    figures = {**(figures or {}), **consumed(meter.units)}
    return Response(status=status, body=text_of(view), headers=headers or {}, figures=figures)


def appends(events: Sequence[object], *, replayed: bool) -> dict[str, float]:
    """Figures of an append of these events; none where an earlier request has made it."""
    return {} if replayed else {"Appends": 1.0, "Events": float(len(events))}


def consumed(units: Units) -> dict[str, float]:
    """What a request cost, as figures for its metrics."""
    return {"ReadUnits": units.read, "WriteUnits": units.write}
