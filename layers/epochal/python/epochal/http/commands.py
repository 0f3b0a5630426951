"""What each operation asks for, parsed from a request: nothing reaches a store that has not been through here.

Every function is pure and total: a command, or an `InvalidInput` that names the field and the rule.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, Literal

from epochal.errors import InvalidInput, TooLarge
from epochal.http import events as parse
from epochal.http.document import document, no_document
from epochal.http.fields import Node
from epochal.http.message import Request
from epochal.http.preconditions import Precondition, precondition
from epochal.http.query import Query
from epochal.index.checkpoints import Checkpoint, parse_checkpoint
from epochal.model.events import Claim, Event, Unfold
from epochal.model.names import StreamName, stream_name
from epochal.model.versions import MAX_VERSION, Token, parse_token
from epochal.settings import MAX_WAIT_SECONDS

DEFAULT_LIMIT: Final = 1_000
MAX_LIMIT: Final = 10_000
"""Events of a page. Most pages of the usual 300 bytes an event reach 4 MB before."""

TAIL: Final = "tail"

_CATEGORY: Final = re.compile(r"[A-Za-z0-9_.:~@+=]{1,512}", re.ASCII)
_PARTITION: Final = re.compile(r"0|[1-9]\d{0,8}", re.ASCII)
_KEY: Final = re.compile(r"[\x21-\x7e]{1,255}", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class AppendEvents:
    """`POST /streams/{stream}/events`."""

    stream: StreamName
    events: tuple[Event, ...]
    unfolds: tuple[Unfold, ...] | None
    precondition: Precondition[Token]
    idempotency_key: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadState:
    """`GET /streams/{stream}`."""

    stream: StreamName
    events: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadEvents:
    """`GET /streams/{stream}/events`."""

    stream: StreamName
    start: int | None
    limit: int
    direction: Literal["forward", "backward"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadFeed:
    """`GET /feed/{partition}`.

    Attributes:
        start: a checkpoint; None for the tail as it is now.
        wait: seconds to wait at the tail for something to come; the deployment may wait fewer.
    """

    partition: int
    start: Checkpoint | None
    limit: int
    data: bool
    categories: frozenset[str] | None
    wait: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PruneStream:
    """`POST /streams/{stream}/prune`."""

    stream: StreamName
    before: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteStream:
    """`DELETE /streams/{stream}`."""

    stream: StreamName
    precondition: Precondition[Token]
    leave_open: bool


def append_events(request: Request) -> AppendEvents:
    """Parse an append."""
    Query(request)
    stream = _stream(request)
    fields = document(request).members(("events", "unfolds", "expected"))
    given = tuple(map(parse.event, _items(fields, "events", parse.MAX_EVENTS)))
    unfolds = tuple(map(parse.unfold, _items(fields, "unfolds", parse.MAX_UNFOLDS)))
    if not given and not unfolds:
        raise InvalidInput("events", "at least one event, or one unfold, is required")
    return AppendEvents(
        stream=stream,
        events=given,
        unfolds=unfolds if "unfolds" in fields else None,
        precondition=precondition(request, fields.get("expected"), parse_token),
        idempotency_key=idempotency_key(request),
    )


def upload_body(request: Request, most: int) -> Claim:
    """Parse `POST /bodies`: the claim check of the body to be uploaded, which may have so many bytes at most."""
    Query(request)
    root = document(request)
    fields = root.members(("sha256", "bytes"))
    claim = parse.claim_of(parse.required(root, fields, "sha256"), parse.required(root, fields, "bytes"))
    if claim.size > most:
        raise TooLarge("bytes", claim.size, most)
    return claim


def read_state(request: Request) -> ReadState:
    """Parse a read of the Tip."""
    no_document(request)
    query = Query(request, ("events",))
    return ReadState(stream=_stream(request), events=query.flag("events"))


def read_events(request: Request) -> ReadEvents:
    """Parse a read of a page of events."""
    no_document(request)
    query = Query(request, ("from", "limit", "direction"))
    direction = query.choice("direction", ("forward", "backward"))
    return ReadEvents(
        stream=_stream(request),
        start=query.whole("from", 0, MAX_VERSION),
        limit=query.whole("limit", 1, MAX_LIMIT) or DEFAULT_LIMIT,
        direction="forward" if direction == "forward" else "backward",
    )


def prune_stream(request: Request) -> PruneStream:
    """Parse a pruning."""
    Query(request)
    stream = _stream(request)
    root = document(request)
    before = parse.required(root, root.members(("before",)), "before")
    return PruneStream(stream=stream, before=before.whole(0, MAX_VERSION))


def delete_stream(request: Request) -> DeleteStream:
    """Parse the deletion of a stream."""
    no_document(request)
    query = Query(request, ("leaveOpen",))
    return DeleteStream(
        stream=_stream(request),
        precondition=precondition(request, None, parse_token),
        leave_open=query.flag("leaveOpen"),
    )


def read_feed(request: Request) -> ReadFeed:
    """Parse a read of a page of the feed."""
    no_document(request)
    query = Query(request, ("from", "limit", "data", "wait"), lists=("category",))
    start, categories = query.text("from"), query.texts("category")
    for category in categories:
        if not _CATEGORY.fullmatch(category):
            raise InvalidInput("category", "must be what precedes the first - of stream names")
    return ReadFeed(
        partition=_partition(request.path["partition"]),
        start=None if start == TAIL else parse_checkpoint("0" if start is None else start),
        limit=query.whole("limit", 1, MAX_LIMIT) or DEFAULT_LIMIT,
        data=query.flag("data"),
        categories=frozenset(categories) or None,
        wait=query.whole("wait", 0, MAX_WAIT_SECONDS) or 0,
    )


def nothing(request: Request) -> None:
    """Refuse whatever is sent to an operation that takes no input."""
    no_document(request)
    Query(request)


def _stream(request: Request) -> StreamName:
    return stream_name(request.path["stream"])


def _partition(text: str) -> int:
    if not _PARTITION.fullmatch(text):
        raise InvalidInput("partition", "must be a partition's number, as GET /feed lists them")
    return int(text)


def _items(fields: dict[str, Node], name: str, most: int) -> tuple[Node, ...]:
    return fields[name].items(most) if name in fields else ()


def idempotency_key(request: Request) -> str | None:
    """The request's idempotency key, if it has one."""
    key = request.header("Idempotency-Key")
    if key is not None and not _KEY.fullmatch(key):
        raise InvalidInput("Idempotency-Key", "must be 1 to 255 visible ASCII characters")
    return key
