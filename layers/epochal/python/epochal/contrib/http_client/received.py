"""What is received: events, unfolds and outcomes of appends, made from the JSON of answers.

A body that an answer has as JSON becomes compact JSON in UTF-8, with all digits of its numbers. One that it has as a
link is fetched from the bucket, and its hash compared.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Iterable, Mapping
from hashlib import sha256
from typing import Any, Final

from epochal.codec import json
from epochal.codec.bodies import Encoded, decode_inline
from epochal.contrib.http_client.api import ApiClient, Reply
from epochal.contrib.http_client.exchange import HttpRequest
from epochal.errors import CorruptData, MissingBody, Refused
from epochal.http.bodies import CODINGS
from epochal.lazy_dataclasses import dataclass
from epochal.model.capacity import Capacity
from epochal.model.events import Recorded, RecordedUnfold
from epochal.model.outcomes import Appended, Conflict, Outcome, Undetermined
from epochal.model.position_text import read_position
from epochal.model.positions import Position
from epochal.model.tags import Trail
from epochal.model.tokens import Token, parse_token

_ENCODINGS: Final = {name: number for number, name in CODINGS.items()}

_MADE: Final = (200, 201)


@dataclass(frozen=True, slots=True)
class Omitted:
    """An event that an answer has without its bodies, because they had no room.

    Attributes:
        event: the event, with empty bodies.
    """

    event: Recorded


def recorded_event(api: ApiClient, shown: Mapping[str, Any]) -> Recorded | Omitted:
    """Return an event of an answer, bodies fetched from the bucket; `Omitted` if it came without them."""
    position = shown.get("position")
    omitted = shown.get("omitted", False)
    event = Recorded(
        stream=shown.get("stream", ""),
        index=shown.get("index", 0),
        type=shown["type"],
        data=b"" if omitted else _body(api, shown, "data"),
        meta=b"" if omitted else _body(api, shown, "meta"),
        timestamp=shown["timestamp"],
        correlation_id=shown.get("correlationId"),
        causation_id=shown.get("causationId"),
        tags=tuple(shown.get("tags", ())),
        id=shown.get("id", ""),
        place=shown.get("place", ""),
        trail=None if position is None else Trail.of(read_position(position)),
    )
    return Omitted(event) if omitted else event


def recorded_unfold(api: ApiClient, shown: Mapping[str, Any]) -> RecordedUnfold | None:
    """Return an unfold of an answer; None where its bodies had no room there."""
    if shown.get("omitted", False):
        return None
    return RecordedUnfold(
        version=shown["version"],
        type=shown["type"],
        data=_body(api, shown, "data"),
        meta=_body(api, shown, "meta"),
        timestamp=shown["timestamp"],
    )


def _body(api: ApiClient, shown: Mapping[str, Any], name: str) -> bytes:
    """Return a body of an event or unfold: JSON, base64, a link that is followed, or none."""
    if name in shown:
        return json.dumps(shown[name])
    if f"{name}64" in shown:
        return b64decode(shown[f"{name}64"])
    link = shown.get(f"{name}Url")
    return b"" if link is None else _fetched(api, link)


def _fetched(api: ApiClient, link: Mapping[str, Any]) -> bytes:
    """Return a body from the bucket, decoded; raise if it is gone, refused or has another hash.

    Raises:
        MissingBody: the object is gone.
        Refused: the link is no longer valid.
        CorruptData: the content has another hash.
    """
    answer = api.settled(HttpRequest(method="GET", url=link["url"]), signed=False)
    if answer.status == 404:  # noqa: PLR2004  of S3
        raise MissingBody(link["sha256"])
    if answer.status != 200:  # noqa: PLR2004  of S3
        rule = f"status {answer.status}; links are valid for 15 minutes"
        raise Refused("GetObject from the bucket of the API", rule)
    if sha256(answer.body).hexdigest() != link["sha256"]:
        raise CorruptData(f"the downloaded body {link['sha256']} has another hash")
    return decode_inline(Encoded(_ENCODINGS[link["encoding"]], answer.body))


def capacity_of(document: Mapping[str, Any]) -> Capacity:
    """Return the capacity units that an answer names; the number of requests to DynamoDB is not known."""
    units = document.get("capacity", {})
    return Capacity(read=float(units.get("read", 0)), write=float(units.get("write", 0)))


def position_of(document: Mapping[str, Any]) -> Position:
    """Return the position of an answer; an empty one where it has none."""
    text = document.get("position")
    return Position() if text is None else read_position(text, "position")


def token_of(shown: Mapping[str, Any]) -> Token | None:
    """Return the token of a stream in an answer; None where it has none."""
    text = shown.get("token")
    return None if text is None else parse_token(text, "token")


def events_of(api: ApiClient, shown: Iterable[Mapping[str, Any]]) -> tuple[Recorded, ...]:
    """Return events that stand in the way of an append; those without room have empty bodies."""
    events = (recorded_event(api, one) for one in shown)
    return tuple(event.event if isinstance(event, Omitted) else event for event in events)


def outcome_of(api: ApiClient, reply: Reply) -> Outcome:
    """Return `Appended`, `Conflict` or `Undetermined` from the answer to one append; raise other errors.

    Raises:
        EpochalError: the answer is none of an append.
    """
    document, capacity = reply.document, capacity_of(reply.document)
    if reply.status in _MADE:
        return Appended(
            first=document["first"],
            version=document["version"],
            token=parse_token(document["token"], "token"),
            position=position_of(document),
            replayed=document["replayed"],
            capacity=capacity,
        )
    refused = refusal_of(api, reply)
    if refused is None:
        raise reply.error
    return refused


def outcome_of_all(api: ApiClient, reply: Reply) -> Outcome:
    """Return `Appended`, `Conflict` or `Undetermined` for appends to several streams; raise other errors.

    Raises:
        EpochalError: the answer is none of an append.
    """
    document = reply.document
    if reply.status in _MADE:
        return Appended(
            streams={
                one["stream"]: Appended(
                    first=one["first"],
                    version=one["version"],
                    token=parse_token(one["token"], "token"),
                    replayed=document["replayed"],
                )
                for one in document["streams"]
            },
            position=position_of(document),
            replayed=document["replayed"],
            capacity=capacity_of(document),
        )
    refused = refusal_of(api, reply)
    if refused is None:
        raise reply.error
    return refused


def refusal_of(api: ApiClient, reply: Reply) -> Conflict | Undetermined | None:
    """Return why an append was refused, or that its outcome is unknown; None where the answer is neither."""
    document = reply.document
    match reply.problem:
        case "condition-failed":
            return Conflict(
                events=events_of(api, document["events"]),
                position=position_of(document),
                more=document["more"],
            )
        case "version-conflict" | "precondition-failed" | "stream-deleted":
            if "streams" in document:
                return Conflict(streams={one["stream"]: _conflict(one) for one in document["streams"]})
            return _conflict({"deleted": reply.problem == "stream-deleted", **document})
        case "undetermined":
            if "streams" in document:
                streams = {one["stream"]: Undetermined(first=one["index"]) for one in document["streams"]}
                return Undetermined(streams=streams)
            return Undetermined(first=document["index"])
        case _:
            return None


def _conflict(shown: Mapping[str, Any]) -> Conflict:
    """Return the conflict of one stream, from a problem or from a list of streams."""
    return Conflict(version=shown["version"], token=token_of(shown), deleted=shown.get("deleted", False))
