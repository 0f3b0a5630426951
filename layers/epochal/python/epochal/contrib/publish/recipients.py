"""Where published events go: a bus of EventBridge, a queue, a topic, a stream of Kinesis, a delivery stream of
Firehose, or an HTTPS address. And the reaction that sends them there.

Each takes a batch, in order, or raises; the whole batch may be sent again, since its events are named. A FIFO queue or
topic, or a stream of Kinesis, has then taken the events before one that it has not taken, and none after it.

What each takes is in one table, `LIMITS`. Queues and topics have limits of their own below that, which are asked for:
a topic takes 256 KiB unless its `MaximumMessageSize` says more, an older queue likewise.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache, partial
from http import HTTPStatus
from http.client import HTTPException
from typing import Any, Final
from urllib.error import HTTPError
from urllib.request import HTTPRedirectHandler, Request, build_opener

from epochal.codec.bodies import DIRECT, Encoded, claim_for
from epochal.contrib.publish.cloudevents import Keep, Message, Shown, batches, cloud_event, message
from epochal.contrib.publish.signatures import header_value, request_id, signed, signing_key
from epochal.dynamo.aws_errors import translated
from epochal.dynamo.clients import service_client
from epochal.dynamo.interpreter import deployed, lazily
from epochal.errors import EpochalError, InvalidInput, InvalidRequest, Unavailable
from epochal.feed.history import FeedEvent, name_of
from epochal.hosting.function import Handler, lambda_handler
from epochal.lazy_dataclasses import asdict, dataclass, replace
from epochal.plugins import at
from epochal.reactions.reaction import Delivery, Reaction
from epochal.settings import Settings
from epochal.store.encoding import Bodies

Send = Callable[[Sequence[Message]], None]

PARTITION_KEY: Final = 256
"""Characters of a key that tells which shard of Kinesis a record goes to."""

DETAIL_TYPE: Final = 128
"""Characters that a bus takes of a type; the event itself has all of it."""

CONTENT_TYPE: Final = "application/cloudevents+json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """What a recipient takes.

    Attributes:
        message: bytes of one event as a message, at most; less than AWS says, by what is around it.
        request: bytes of all messages of a request.
        messages: of a request.
    """

    message: int
    request: int
    messages: int = 10


_AROUND: Final = 16 * 1024
"""Bytes left for what is sent beside a message and counts: source, type, attributes, keys."""

_KIB, _MB = 1024, 1_000_000

LIMITS: Final = {
    "bus": Limit(
        message=_MB - _AROUND, request=_MB - _AROUND
    ),  # 1 MB an entry and a request, since January 2026
    "queue": Limit(message=_KIB**2 - _AROUND, request=_KIB**2 - _AROUND),  # 1 MiB, since August 2025
    "topic": Limit(message=_KIB**2 - _AROUND, request=_KIB**2 - _AROUND),  # 1 MiB, where the topic says so
    "stream": Limit(
        message=_KIB**2 - _AROUND, request=_KIB**2, messages=500
    ),  # up to 10 MiB, where the stream says so
    "firehose": Limit(message=1_000 * _KIB - _AROUND, request=4 * _KIB**2 - _AROUND, messages=500),
    "webhook": Limit(message=256 * _KIB - _AROUND, request=256 * _KIB - _AROUND),  # ours: addresses differ
}
"""By kinds of recipients. https://docs.aws.amazon.com: quotas of EventBridge, SQS, SNS, Kinesis and Firehose."""

UNTOLD: Final = 256 * _KIB - _AROUND
"""What queues and topics took for years: assumed where one does not say what it takes."""


def limit_of(kind: str, place: str, most: int | None = None, *, client: Any = None) -> Limit:
    """What the recipient takes, as it says itself or `most` does; raises `InvalidInput` where there is no such kind."""
    if kind not in LIMITS:
        raise InvalidInput("to", f"must be {', '.join(LIMITS)}")
    limit = LIMITS[kind]
    if most is None and kind in ("queue", "topic"):
        most = _told_by(kind, client or lazily(partial(service_client, _SENDERS[kind][0])), place)
    if most is None:
        return limit
    return replace(limit, message=most, request=max(most, limit.request) if kind == "stream" else most)


def _told_by(kind: str, client: Any, place: str) -> int:
    """`MaximumMessageSize` of a queue or topic. One of another account may send without letting anyone look."""
    try:
        with translated("MaximumMessageSize"):
            if kind == "queue":
                answer = client.get_queue_attributes(QueueUrl=place, AttributeNames=["MaximumMessageSize"])
            else:
                answer = client.get_topic_attributes(TopicArn=place)
    except EpochalError:
        return UNTOLD
    told = int(answer.get("Attributes", {}).get("MaximumMessageSize", 0))
    return min(told - _AROUND, LIMITS[kind].message) if told > _AROUND else UNTOLD


def recipient(kind: str, place: str, *, client: Any = None, proof: Proof | None = None) -> Send:
    """What sends to a `bus` (its name or ARN), a `queue` (its URL), a `topic` or a `stream` of Kinesis (its ARN), a
    delivery stream of `firehose` (its name) or a `webhook` (its address, to which `proof` tells who sends).

    Raises:
        InvalidInput: there is no such kind.
    """
    if kind not in LIMITS:
        raise InvalidInput("to", f"must be {', '.join(LIMITS)}")
    if kind == "webhook":
        return to_webhook(place, proof or Proof())
    service, send = _SENDERS[kind]
    return partial(send, client or lazily(partial(service_client, service)), place)


def _to_bus(client: Any, bus: str, events: Sequence[Message]) -> None:
    entries = [
        {
            "EventBusName": bus,
            "Source": each.source,
            "DetailType": each.type[:DETAIL_TYPE],
            "Detail": each.text,
        }
        for each in events
    ]
    with translated("PutEvents"):
        answer = client.put_events(Entries=entries)
    _all_taken([each["ErrorCode"] for each in answer["Entries"] if "ErrorCode" in each], events)


def _to_queue(client: Any, url: str, events: Sequence[Message]) -> None:
    for part in _requests(events, url):
        entries = [
            {"Id": str(number), "MessageBody": each.text, **_attributes(), **_ordered(each, url)}
            for number, each in enumerate(part)
        ]
        with translated("SendMessageBatch"):
            answer = client.send_message_batch(QueueUrl=url, Entries=entries)
        _all_taken([each["Code"] for each in answer.get("Failed", ())], part)


def _to_topic(client: Any, arn: str, events: Sequence[Message]) -> None:
    for part in _requests(events, arn):
        entries = [
            {"Id": str(number), "Message": each.text, **_attributes(each), **_ordered(each, arn)}
            for number, each in enumerate(part)
        ]
        with translated("PublishBatch"):
            answer = client.publish_batch(TopicArn=arn, PublishBatchRequestEntries=entries)
        _all_taken([each["Code"] for each in answer.get("Failed", ())], part)


def _to_stream(client: Any, arn: str, events: Sequence[Message]) -> None:
    """One by one: of a batch, a later event of a stream may be taken where an earlier one is not. A shard takes what
    has one partition key, in the order of its requests.
    """
    for each in events:
        with translated("PutRecord"):
            client.put_record(StreamARN=arn, PartitionKey=each.group[:PARTITION_KEY], Data=each.text.encode())


def _to_firehose(client: Any, name: str, events: Sequence[Message]) -> None:
    """A line each: what Firehose writes are records end to end. Those that are not taken are sent again by themselves:
    it keeps no order, and the rest would come twice.
    """
    records, failed = [{"Data": f"{each.text}\n".encode()} for each in events], list[str]()
    for pause in (*AGAIN, None):
        with translated("PutRecordBatch"):
            answer = client.put_record_batch(DeliveryStreamName=name, Records=records)
        said = [each.get("ErrorCode") for each in answer["RequestResponses"]]
        records = [each for each, code in zip(records, said, strict=True) if code]
        failed = [code for code in said if code]
        if not failed or pause is None:
            break
        time.sleep(pause)
    _all_taken(failed, events)


AGAIN: Final = (0.1, 0.4, 1.6)
"""Seconds between the tries of records that Firehose does not take: it is over its limit of the second."""

_SENDERS: Final[dict[str, tuple[str, Callable[[Any, str, Sequence[Message]], None]]]] = {
    "bus": ("events", _to_bus),
    "queue": ("sqs", _to_queue),
    "topic": ("sns", _to_topic),
    "stream": ("kinesis", _to_stream),
    "firehose": ("firehose", _to_firehose),
}
"""By kinds of recipients: the service, and what sends to it."""


def _attributes(event: Message | None = None) -> dict[str, Any]:
    """By which receivers know what a message is; subscriptions of a topic filter by the type."""
    told = {"content-type": CONTENT_TYPE} | ({"type": event.type} if event else {})
    return {
        "MessageAttributes": {
            name: {"DataType": "String", "StringValue": value} for name, value in told.items()
        }
    }


def _requests(events: Sequence[Message], place: str) -> Iterable[Sequence[Message]]:
    """What is sent at once: all, but in order one by one, since of a batch a later event may be taken alone."""
    return ([each] for each in events) if _keeps_order(place) else [events]


def _keeps_order(place: str) -> bool:
    return place.endswith(".fifo")


def _ordered(event: Message, place: str) -> dict[str, str]:
    """In a FIFO queue or topic, a stream keeps its order, and what was sent already is dropped."""
    if not _keeps_order(place):
        return {}
    names = {"MessageGroupId": event.group, "MessageDeduplicationId": f"{event.source} {event.id}"}
    return {name: hashlib.sha256(each.encode()).hexdigest() for name, each in names.items()}


def _all_taken(failed: Sequence[str], events: Sequence[Message]) -> None:
    if failed:
        raise Unavailable(f"{len(failed)} of {len(events)} events were not taken: {failed[0]}")


# An HTTPS address that published events are sent to, and the proof of who sends them.

SECONDS: Final = 10
"""For an answer."""

AUTHORIZATION: Final = "Authorization"
BATCH_TYPE: Final = "application/cloudevents-batch+json"

_REFUSED: Final = (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN)


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """What proves who sends.

    Attributes:
        sign_with: has the key of signatures.
        authorization: is the value of `header`.
    """

    sign_with: Secret | None = None
    authorization: Secret | None = None
    header: str = AUTHORIZATION
    clock: Callable[[], float] = time.time

    def headers(self, events: Sequence[Message], content: bytes) -> dict[str, str]:
        """Of a request with these events; raises `InvalidInput` where a secret is none that can be used."""
        found = {}
        if self.sign_with is not None:
            found = signed(request_id(events), int(self.clock()), content, _keys(self.sign_with.values()))
        if self.authorization is not None:
            found[self.header] = header_value(self.authorization.values()[0])
        return found

    def forget(self) -> None:
        """Read the secrets again: what they were has been refused."""
        for each in (self.sign_with, self.authorization):
            if each is not None:
                each.forget()


def _keys(secrets: Sequence[str]) -> list[bytes]:
    """The first has to be one; what it took the place of may never have been."""
    keys = [signing_key(secrets[0])]
    for each in secrets[1:]:
        with suppress(InvalidInput):
            keys.append(signing_key(each))
    return keys


class _NoRedirects(HTTPRedirectHandler):
    """A redirected POST becomes a GET, which an address answers with success and without the events; and its headers
    would go to whoever is named.
    """

    def redirect_request(self, *_: Any, **__: Any) -> None: ...


_OPENER: Final = build_opener(_NoRedirects)


def to_webhook(address: str, proof: Proof) -> Callable[[Sequence[Message]], None]:
    """What sends a batch to an address, or raises; raises `InvalidInput` at once where it is none."""
    if not address.startswith(("https://", "http://")):
        raise InvalidInput("to", "must be an address of the web")

    def send(events: Sequence[Message]) -> None:
        content = f"[{','.join(each.text for each in events)}]".encode()
        headers = {"Content-Type": BATCH_TYPE, **proof.headers(events, content)}
        request = Request(address, content, headers, method="POST")  # noqa: S310  # checked
        try:
            with _OPENER.open(request, timeout=SECONDS):
                pass
        # Whatever the address answers but success, and whatever keeps it from answering.
        except (OSError, HTTPException) as error:
            if isinstance(error, HTTPError) and error.code in _REFUSED:
                proof.forget()
            raise Unavailable(f"{address} did not take {len(events)} events: {error}") from error

    return send


# Secrets of Secrets Manager, kept for a while: what a function reads in order to prove who it is.
#
# KEPT_SECONDS       a value is read again after them, or when it was refused somewhere
# OVERLAP_SECONDS    for so long after a rotation the value before it counts as well
#
# Values are text. A current value of bytes is refused. One before it is left out: it was refused while it was
# current, so nobody relies on it.

KEPT_SECONDS: Final = 300
OVERLAP_SECONDS: Final = 86_400

_CURRENT: Final = "AWSCURRENT"
_MISSING: Final = "ResourceNotFoundException"


class Secret:
    """One secret, by its ARN or name."""

    def __init__(self, client: Any, name: str, *, clock: Callable[[], float] = time.time) -> None:
        self._client = client
        self._name = name
        self._clock = clock
        self._values: tuple[str, ...] = ()
        self._read_at = 0.0

    def values(self) -> tuple[str, ...]:
        """The value, and behind it the one that it took the place of, if that was lately.

        Raises:
            Refused: it must not be read.
            Unavailable: Secrets Manager does not answer.
            InvalidRequest: there is no such secret.
            InvalidInput: the current one is no text.
        """
        values = self._values  # another thread may have it forgotten meanwhile
        if not values or self._clock() - self._read_at >= KEPT_SECONDS:
            values = self._read()
            self._values, self._read_at = values, self._clock()
        return values

    def forget(self) -> None:
        """Read it again next time."""
        self._values = ()

    def _read(self) -> tuple[str, ...]:
        current = self._version(_CURRENT)
        if "SecretString" not in current:
            raise InvalidInput(f"secret {self._name}, version {_CURRENT}", "must be text, not bytes")
        value = str(current["SecretString"])
        if self._clock() - current["CreatedDate"].timestamp() >= OVERLAP_SECONDS:
            return (value,)
        try:
            previous = self._version("AWSPREVIOUS")
        except InvalidRequest as error:
            if error.code != _MISSING:
                raise
            return (value,)
        return (value, str(previous["SecretString"])) if "SecretString" in previous else (value,)

    def _version(self, stage: str) -> Any:
        with translated("secretsmanager:GetSecretValue"):
            return self._client.get_secret_value(SecretId=self._name, VersionStage=stage)


# The built-in reaction that forwards events as CloudEvents. Whatever does not take an event fails the delivery. It
# comes again, event by event, and the stream is parked in the end, as of any reaction: an operator replays it when the
# other side is there again.


@dataclass(frozen=True, slots=True, kw_only=True)
class Publication:
    """What is forwarded, and where to.

    Attributes:
        name: of the reaction.
        to: a kind of recipient (`hosting.recipients`).
        place: which one.
        source: what events say that they come from.
        categories: of streams; None for all.
        types: of events; None for all.
        sign_with: the secret that requests to an address are signed with.
        authorization: the secret that is the value of a header of theirs.
        header: that one.
        mapping: what says what is shown of an event, as `module:function` of the code beside it.
        codec: what brings events to the version of today, as `module:name`, where there is no mapping.
        message_bytes: of one message, at most, where the recipient does not tell.
        as_rows: events are sent as rows (`rows`), and not as CloudEvents.
    """

    name: str
    to: str
    place: str
    source: str
    categories: tuple[str, ...] | None = None
    types: tuple[str, ...] | None = None
    sign_with: str | None = None
    authorization: str | None = None
    header: str | None = None
    mapping: str | None = None
    codec: str | None = None
    message_bytes: int | None = None
    as_rows: bool | None = None

    def text(self) -> str:
        """As the function's environment has it."""
        return json.dumps({name: each for name, each in asdict(self).items() if each is not None})


ROW_AT: Final = "row_at"
"""What a row that is sent has beside the columns of every row: where all of it is, as JSON, if it is too large for a
record. Its bodies are null then."""

_BODIES: Final = ("data", "data64", "metadata", "metadata64")

_RECORD: Final = 64 * 1024
"""Bytes of rows that go together: Firehose charges a record by 5 KB, begun ones too."""


PUBLISH: Final = "EPOCHAL_PUBLISH"
"""The variable that tells a function what to forward."""


def publication_of(environment: Mapping[str, str]) -> Publication:
    """What the environment tells; raises `InvalidInput` where it tells nothing."""
    if PUBLISH not in environment:
        raise InvalidInput(PUBLISH, "must say what is forwarded, and where to")
    told = json.loads(environment[PUBLISH])
    lists = {name: tuple(told[name]) for name in ("categories", "types") if name in told}
    return Publication(**{**told, **lists})


def proof_of(publication: Publication, client: Any = None) -> Proof:
    """What proves to an address who sends: nothing, where the publication names no secret."""
    client = client or lazily(lambda: service_client("secretsmanager"))
    sign_with, authorization = (
        Secret(client, each) if each else None for each in (publication.sign_with, publication.authorization)
    )
    return Proof(sign_with=sign_with, authorization=authorization, header=publication.header or AUTHORIZATION)


def shown_by(publication: Publication) -> Shown:
    """What is shown of an event: as the user's mapping says, or all of it, by his codec where there is one."""
    if publication.mapping is not None:
        shown: Shown = at(publication.mapping)
        return shown
    codec = None if publication.codec is None else at(publication.codec)
    return partial(cloud_event, codec=codec)


def publisher(
    publication: Publication,
    bodies: Bodies | None,
    bucket: str,
    send: Send | None = None,
    limit: Limit | None = None,
) -> Reaction:
    """The reaction that forwards.

    Args:
        bodies: where content is put that is too large for a message.
        bucket: what it is called.
        send: to where the publication says, if it is not given.
        limit: of what is sent; as the recipient says, if it is not given.
    """
    to = send or recipient(publication.to, publication.place, proof=proof_of(publication))
    shown = shown_by(publication)

    @cache
    def most() -> Limit:  # asked for with the first delivery, and not while a process starts
        return limit or limit_of(publication.to, publication.place, publication.message_bytes)

    def keep(content: bytes) -> str:
        if bodies is None:
            raise InvalidInput("bucket", "must be there for events that are too large for a message")
        claim = claim_for(Encoded(DIRECT, content))
        bodies.put(claim, content)
        return f"s3://{bucket}/{claim.key}"

    def messages(events: Iterable[FeedEvent]) -> Iterator[Message]:
        for event in events:
            if event.gone is None and (seen := shown(event)) is not None:
                yield message(event, seen, publication.source, keep=keep, most=most().message)

    def rows(events: Iterable[FeedEvent]) -> Iterator[Message]:
        there = (event for event in events if event.gone is None)
        return together(row_message(event, publication.source, keep, most().message) for event in there)

    def forward(delivery: Delivery) -> None:
        sent = rows if publication.as_rows else messages
        for batch in batches(sent(delivery.events), events=most().messages, size=most().request):
            to(batch)

    chosen = publication.categories, publication.types
    categories, types = (None if each is None else frozenset(each) for each in chosen)
    return Reaction(name=publication.name, handler=forward, categories=categories, types=types, once=True)


def row_message(event: FeedEvent, source: str, keep: Keep, most: int) -> Message:
    """An event as a row of JSON; raises why it cannot be read."""
    from epochal.contrib.transfer.rows import as_json, row_of  # noqa: PLC0415  most functions that forward send no rows

    if event.fault is not None:
        raise event.fault
    row = as_json(row_of(event)) | {ROW_AT: None}
    text = _line(row)
    if len(text.encode()) > most:
        text = _line(row | dict.fromkeys(_BODIES) | {ROW_AT: keep(text.encode())})
    return Message(id=name_of(event), source=source, type=event.type, group=event.stream, text=text)


def _line(row: Mapping[str, Any]) -> str:
    return json.dumps(row, ensure_ascii=False, separators=(",", ":"))


def together(messages: Iterable[Message], size: int = _RECORD) -> Iterator[Message]:
    """Messages in their order, as many lines in one as it should have bytes."""
    for batch in batches(messages, events=size, size=size):
        yield replace(batch[0], text="\n".join(each.text for each in batch))


def deployed_publisher(environment: Mapping[str, str]) -> Handler:
    """The handler of a function that forwards what its environment says."""
    settings = Settings.from_environment(environment)
    bodies = deployed(settings).bucket.bodies
    return lambda_handler(publisher(publication_of(environment), bodies, settings.bucket), environment)
