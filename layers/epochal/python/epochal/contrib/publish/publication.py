"""The built-in reaction that forwards events as CloudEvents or as rows.

Whatever does not take an event fails the delivery. It comes again, event by event, and the stream is parked in the end,
as of any reaction: an operator replays it when the other side is there again.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from functools import cache, partial
from typing import Any, Final

from epochal.codec.bodies import DIRECT, Encoded
from epochal.codec.bucket_bodies import claim_for
from epochal.contrib.publish.cloudevents import Message, Shown, batches, cloud_event, message
from epochal.contrib.publish.recipients import Limit, Send, limit_of, recipient
from epochal.contrib.publish.rows import row_message, together
from epochal.contrib.publish.secrets import Secret
from epochal.contrib.publish.webhook import AUTHORIZATION, Proof
from epochal.dynamo.clients import service_client
from epochal.dynamo.interpreter import open_deployment
from epochal.dynamo.lazy_clients import lazily
from epochal.errors import InvalidInput
from epochal.feed.events import FeedEvent
from epochal.hosting.function import Handler, lambda_handler
from epochal.lazy_dataclasses import asdict, dataclass
from epochal.named_objects import load_object
from epochal.reactions.definition import Delivery, Reaction
from epochal.settings import Settings
from epochal.store.encoding import Bodies


@dataclass(frozen=True, slots=True, kw_only=True)
class Publication:
    """Settings of a reaction that forwards events: which events, how, and to which recipient.

    Attributes:
        name: name of the reaction.
        to: kind of the recipient, a key of `LIMITS`.
        place: address of the recipient.
        source: `source` of the CloudEvents.
        categories: categories of streams; None for all.
        types: types of events; None for all.
        sign_with: ARN of the secret with which requests to an HTTPS address are signed.
        authorization: ARN of the secret that is the value of a header of these requests.
        header: name of that header.
        mapping: `module:function` in the code beside it, which turns an event into a CloudEvent.
        codec: `module:name` of a codec that brings events to their current version, if there is no mapping.
        message_bytes: maximum bytes of one message, if the recipient does not say.
        as_rows: whether events are sent as rows (`rows`), and not as CloudEvents.
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
        """Serialize the settings as JSON for the function's environment."""
        return json.dumps({name: value for name, value in asdict(self).items() if value is not None})


PUBLISH: Final = "EPOCHAL_PUBLISH"
"""Environment variable with a function's publication, as JSON."""


def publication_of(environment: Mapping[str, str]) -> Publication:
    """Return the publication in a function's environment variable; raise `InvalidInput` without it.

    Raises:
        InvalidInput: the variable is not there.
    """
    if PUBLISH not in environment:
        raise InvalidInput(PUBLISH, "must define which events are published, and where")
    settings = json.loads(environment[PUBLISH])
    lists = {name: tuple(settings[name]) for name in ("categories", "types") if name in settings}
    return Publication(**{**settings, **lists})


def proof_of(publication: Publication, client: Any = None) -> Proof:
    """Make the proof of the sender from a publication's secrets; an empty one if it names none.

    Args:
        client: a Secrets Manager client; made at its first use if it is not given.
    """
    client = client or lazily(lambda: service_client("secretsmanager"))
    sign_with, authorization = (
        Secret(client, secret_name) if secret_name else None
        for secret_name in (publication.sign_with, publication.authorization)
    )
    return Proof(sign_with=sign_with, authorization=authorization, header=publication.header or AUTHORIZATION)


def shown_by(publication: Publication) -> Shown:
    """Return the function that turns events into CloudEvents: the user's mapping, or one with the codec."""
    if publication.mapping is not None:
        shown: Shown = load_object(publication.mapping)
        return shown
    codec = None if publication.codec is None else load_object(publication.codec)
    return partial(cloud_event, codec=codec)


def publisher(
    publication: Publication,
    bodies: Bodies | None,
    bucket: str,
    send: Send | None = None,
    limit: Limit | None = None,
) -> Reaction:
    """Make the reaction that sends a publication's events to its recipient, or to `send` if given.

    Args:
        publication: its settings.
        bodies: store of content that is too large for a message; None for none.
        bucket: name of the bucket of these bodies.
        send: function that sends messages; by default, one for the publication's recipient.
        limit: limits of messages and requests; by default, those of the recipient.
    """
    to = send or recipient(publication.to, publication.place, proof=proof_of(publication))
    shown = shown_by(publication)

    @cache
    def most() -> Limit:  # asked for with the first delivery, and not while a process starts
        """Return the limits of the recipient, read at the first delivery and then cached."""
        return limit or limit_of(publication.to, publication.place, publication.message_bytes)

    def keep(content: bytes) -> str:
        """Store content that is too large for a message in the bucket, and return its address."""
        if bodies is None:
            raise InvalidInput("bucket", "is needed for events that are too large for a message")
        claim = claim_for(Encoded(DIRECT, content))
        bodies.put(claim, content)
        return f"s3://{bucket}/{claim.key}"

    def messages(events: Iterable[FeedEvent]) -> Iterator[Message]:
        """Yield a message for each event that is there and is to be sent."""
        for event in events:
            if event.gone is None and (shown_event := shown(event)) is not None:
                yield message(event, shown_event, publication.source, keep=keep, most=most().message)

    def rows(events: Iterable[FeedEvent]) -> Iterator[Message]:
        """Yield messages of rows for the events that are there, several rows in one."""
        present_events = (event for event in events if event.gone is None)
        return together(
            row_message(event, publication.source, keep, most().message) for event in present_events
        )

    def forward(delivery: Delivery) -> None:
        """Send the events of a delivery to the recipient, in batches."""
        sent = rows if publication.as_rows else messages
        for batch in batches(sent(delivery.events), events=most().messages, size=most().request):
            to(batch)

    chosen = publication.categories, publication.types
    categories, types = (None if names is None else frozenset(names) for names in chosen)
    return Reaction(name=publication.name, handler=forward, categories=categories, types=types, once=True)


def deployed_publisher(environment: Mapping[str, str]) -> Handler:
    """Make the Lambda handler of the function that forwards events as its environment says."""
    settings = Settings.from_environment(environment)
    bodies = open_deployment(settings).bucket.bodies
    return lambda_handler(publisher(publication_of(environment), bodies, settings.bucket), environment)
