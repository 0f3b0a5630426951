"""Events of the feed as CloudEvents 1.0, in JSON.

    id          the event's own, or stream and index: the same however often an event is sent
    source      the store; with `id` it names the event, so receivers can tell repetitions
    subject     the stream; a tagged event has its tags as an extension, with commas between them
    time        as stored, where it is a time as RFC 3339 has it
    data        JSON as it is, to the digit; anything else as `data_base64`, and so what no reader is sure to take:
                names that appear twice, numbers beyond all bounds, lists in lists without end
    dataref     in place of either, where a message would be too large: an object that holds the content

What is shown of an event is a mapping's to say: `cloud_event` shows all of it, and a function of the user's own may
show less, or something else. `id` and `source` are never a mapping's.

    dataversion     the version of the data's form, where it is not the first: `$v` is ours, and is no part of `data`
    sealed          true of data that only a subject's key opens: they are sent as they are stored
    traceparent, tracestate, and other metadata: each an extension of its name, where CloudEvents has such values
    metadata        what is left of them, as JSON

https://github.com/cloudevents/spec/blob/v1.0.2/cloudevents/spec.md; `dataref`, `partitionkey`, `sequence` and
`traceparent` are documented extensions of it.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any, Final

from epochal.codec import json
from epochal.deciders.codecs import EventCodec
from epochal.errors import InvalidInput
from epochal.feed.events import FeedEvent, name_of
from epochal.lazy_dataclasses import dataclass, field
from epochal.model.bodies import content_of
from epochal.model.body_marks import SEALED, VERSION

_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)", re.ASCII)
_VERSION: Final = re.compile(rb'\s*\{\s*"\$v"\s*:\s*(\d+)\s*(?:,\s*|(?=\}))')
_JSON: Final = re.compile(r"[/+]json\b")
_EXTENSION: Final = re.compile(r"[a-z0-9]{1,40}")
_CONTROLS: Final = re.compile("[\x00-\x1f\x7f-\x9f]")
_INTEGERS: Final = range(-(2**31), 2**31)

_SET: Final = frozenset({"specversion", "id", "source", "type", "subject", "time", "datacontenttype"})
_DATA: Final = frozenset({"data", "data_base64", "dataref"})
_OURS: Final = ("partitionkey", "sequence", "correlationid", "causationid", "tags", "dataversion", "sealed")
_LEFT: Final = "metadata"

_ESCAPED: Final = {0xFFFE: "\\ufffe", 0xFFFF: "\\uffff"}
"""Escapes for characters that JSON allows but that messages of a queue or topic may not contain."""

Keep = Callable[[bytes], str]
"""Function that stores content and returns its address, such as `s3://bucket/key`."""

Extension = str | int | bool


@dataclass(frozen=True, slots=True, kw_only=True)
class CloudEvent:
    """The content of an event in the form that recipients outside get, from which a CloudEvent is made.

    Attributes:
        type: type of the event.
        data: content of the event. Bytes are sent unchanged, as JSON if they are JSON; any other value is converted to
            JSON.
        subject: subject of the event; empty for none.
        time: time of the event in the format of RFC 3339; empty for none.
        extensions: CloudEvents extension attributes, with names of small letters and digits. Values are text, booleans,
            and integers of 32 bits.
        content_type: media type of the data; empty to derive it from the data.
    """

    type: str
    data: Any = b""
    subject: str = ""
    time: str = ""
    extensions: Mapping[str, Extension] = field(default_factory=dict)
    content_type: str = ""


Shown = Callable[[FeedEvent], CloudEvent | None]
"""Function from an event to the CloudEvent that others receive; None for an event that is not sent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """A message that carries one event, or several rows, to a recipient.

    Attributes:
        id: id of the event within its source.
        source: `source` of the CloudEvent.
        type: type of the event as others receive it.
        group: name of the stream, within which the order must be kept.
        text: whole message, as JSON.
    """

    id: str
    source: str
    type: str
    group: str
    text: str

    @property
    def size(self) -> int:
        """Number of bytes of the text."""
        return len(self.text.encode())


def cloud_event(event: FeedEvent, codec: EventCodec[Any] | None = None) -> CloudEvent | None:
    """Convert a feed event with all its content to a CloudEvent; None for a type that `codec` skips.

    With a codec, the data are brought to their current version, and the result is None for a type that the codec
    skips. Sealed data stay sealed in any case.

    Args:
        event: event of the feed, with its data.
        codec: codec of the event's type; None takes the data as they are stored.

    Raises:
        CorruptData, MissingBody, DeniedBody: the event cannot be read. Errors of the codec are raised, too.
    """
    if event.fault is not None:
        raise event.fault
    data, attributes = event.content, {}
    if data.startswith(b'{"%b":' % SEALED.encode()):
        attributes["sealed"] = True
    elif codec is not None:
        today = codec.read(event)
        if today is None:
            return None
        data = content_of(codec.encode(today).data)
    data, version = _versioned(data)
    place = _place(event)
    return CloudEvent(
        type=event.type,
        data=data,
        subject=event.stream,
        time=event.timestamp if _TIME.fullmatch(event.timestamp) else "",
        extensions=place | attributes | version | _metadata(content_of(event.meta), place),
    )


def message(
    event: FeedEvent, shown: CloudEvent, source: str, *, keep: Keep | None = None, most: int = 0
) -> Message:
    """Make an event's message, a CloudEvent in JSON; if it exceeds `most` bytes, `keep` stores the data.

    Args:
        event: the event of the feed, which gives the message its id and group.
        shown: content to send.
        source: `source` of the CloudEvent.
        keep: stores the content if the message has more than `most` bytes; the message then contains its address.
        most: maximum number of bytes.

    Raises:
        InvalidInput: `shown` is not a valid CloudEvent.
    """
    if not isinstance(shown, CloudEvent):
        raise InvalidInput("mapping", f"must return a CloudEvent or None, not {type(shown).__name__}")
    data = shown.data if isinstance(shown.data, bytes) else _json_of(shown.data)
    head = {"specversion": "1.0", "id": name_of(event), "source": source, **_attributes(shown)}
    whole = _text(head, _content(data, shown.content_type))
    if keep is not None and len(whole.encode()) > most:
        whole = _text(head | {"dataref": keep(data)})
    return Message(id=name_of(event), source=source, type=shown.type, group=event.stream, text=whole)


def batches(messages: Iterable[Message], *, events: int, size: int) -> Iterator[list[Message]]:
    """Yield messages in their order, in batches of at most `events` messages and `size` bytes.

    A single message that is larger is a batch of its own.
    """
    batch: list[Message] = []
    held = 0
    for message in messages:
        added = message.size
        if batch and (len(batch) == events or held + added > size):
            yield batch
            batch, held = [], 0
        batch.append(message)
        held += added
    if batch:
        yield batch


def _place(event: FeedEvent) -> dict[str, Extension]:
    """Return the extensions that say where an event belongs: stream, index, causes, tags and user."""
    match_ = {
        "partitionkey": event.stream,
        # Receivers compare sequences as text, so all have the same length.
        "sequence": f"{event.index:020d}",
        "correlationid": event.correlation_id,
        "causationid": event.causation_id,
        "tags": ",".join(map(_listed, event.tags)) or None,
        "user": event.user,
    }
    return {name: value for name, value in match_.items() if value is not None}


def _listed(tag: str) -> str:
    """Escape a tag for a list of tags, in which commas separate them: `%2C` is a comma within a tag."""
    return tag.replace("%", "%25").replace(",", "%2C")


def _versioned(data: bytes) -> tuple[bytes, dict[str, Extension]]:
    """Return data without the version mark `$v`, and the version as an extension, if there is one.

    Codecs write the mark first, so that the remaining bytes are unchanged.
    """
    if b'"%b"' % VERSION.encode() not in data:
        return data, {}
    if match_ := _VERSION.match(data):
        return b"{" + data[match_.end() :], {"dataversion": match_[1].decode()}
    try:
        value = json.loads(data)
    except ValueError:
        return data, {}
    if not isinstance(value, dict) or VERSION not in value:
        return data, {}
    version = value.pop(VERSION)
    return json.dumps_again(value), {"dataversion": f"{version}"}


def _metadata(meta: bytes, place: Collection[str]) -> dict[str, Extension]:
    """Return metadata as extensions; members that cannot be extensions are put together into one, as JSON.

    Args:
        place: names of extensions that are taken already.
    """
    if not meta:
        return {}
    try:
        metadata = json.loads(meta)
    except ValueError:
        return {f"{_LEFT}base64": base64.b64encode(meta).decode()}
    if not isinstance(metadata, dict):
        return {_LEFT: json.dumps_again(metadata).decode()}
    taken = {*_SET, *_DATA, *_OURS, *place, _LEFT}
    extensions = {
        name: value for name, value in metadata.items() if name not in taken and _is_extension(name, value)
    }
    remaining = {name: value for name, value in metadata.items() if name not in extensions}
    return {**extensions, **({_LEFT: json.dumps_again(remaining).decode()} if remaining else {})}


def _is_extension(name: str, value: object) -> bool:
    """Whether CloudEvents allows an extension of this name and value: text, a boolean or a 32-bit integer."""
    if not _EXTENSION.fullmatch(name):
        return False
    return (
        not _CONTROLS.search(value)
        if isinstance(value, str)
        else type(value) in (bool, int) and value in _INTEGERS
    )


def _attributes(shown: CloudEvent) -> dict[str, Extension]:
    """Return the type, subject, time and extensions of a CloudEvent; raise if one of them is invalid.

    Raises:
        InvalidInput: an attribute is not valid.
    """
    if not shown.type:
        raise InvalidInput("type", "must not be empty: it tells recipients the kind of the event")
    if shown.time and not _TIME.fullmatch(shown.time):
        raise InvalidInput("time", "must be a time in RFC 3339 format, with an offset")
    for name, value in shown.extensions.items():
        if name in _SET | _DATA or not _EXTENSION.fullmatch(name):
            rule = (
                "must have a name of at most 40 lower-case letters and digits that is not an attribute of "
                "CloudEvents"
            )
            raise InvalidInput(f"extensions.{name}", rule)
        if not isinstance(value, str) and not _is_extension(name, value):
            raise InvalidInput(f"extensions.{name}", "must be text, a boolean or a 32-bit integer")
    attributes = {"type": shown.type, "subject": shown.subject, "time": shown.time}
    return {name: value for name, value in attributes.items() if value} | dict(shown.extensions)


def _json_of(value: Any) -> bytes:
    """Convert a value to JSON; raise `InvalidInput` if it has no such form.

    Raises:
        InvalidInput: the value has no form in JSON.
    """
    try:
        return json.dumps(value)
    except (TypeError, ValueError) as error:
        raise InvalidInput("data", f"must be bytes or a JSON value: {error}") from error


def _content(data: bytes, content_type: str) -> str:
    """Return the members of the JSON object that hold the data, as text to insert before its end.

    JSON data are inserted as they are, because parsing them would change them.
    """
    if not data:
        return ""
    if _is_json(data, content_type):
        kind, text = content_type or "application/json", data.removeprefix(json.MARK).decode().strip()
        return f',"datacontenttype":{json.dumps(kind).decode()},"data":{text}'
    kind, encoded = content_type or "application/octet-stream", base64.b64encode(data).decode()
    return f',"datacontenttype":{json.dumps(kind).decode()},"data_base64":"{encoded}"'


def _is_json(data: bytes, content_type: str) -> bool:
    """Whether data are JSON, and the content type does not say otherwise."""
    try:
        json.loads(data)
    except ValueError:
        return False
    return not content_type or _JSON.search(content_type) is not None


def _text(attributes: Mapping[str, Any], members: str = "") -> str:
    """Return a JSON object of attributes, with further members inserted as text."""
    return f"{json.dumps(attributes).decode()[:-1]}{members}}}".translate(_ESCAPED)
