"""The built-in reaction that forwards events as CloudEvents or as rows.

Whatever does not take an event fails the delivery. It comes again, event by event, and the stream is parked in the end,
as of any reaction: an operator replays it when the other side is there again.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from functools import cache, partial
from typing import Any, Final

from epochal.codec.bodies import DIRECT, Encoded, claim_for
from epochal.contrib.publish.cloudevents import Message, Shown, batches, cloud_event, message
from epochal.contrib.publish.recipients import Limit, Send, limit_of, recipient
from epochal.contrib.publish.rows import row_message, together
from epochal.contrib.publish.secrets import Secret
from epochal.contrib.publish.webhook import AUTHORIZATION, Proof
from epochal.dynamo.clients import service_client
from epochal.dynamo.interpreter import lazily, open_deployment
from epochal.errors import InvalidInput
from epochal.feed.history import FeedEvent
from epochal.hosting.function import Handler, lambda_handler
from epochal.lazy_dataclasses import asdict, dataclass
from epochal.plugins import at
from epochal.reactions.reaction import Delivery, Reaction
from epochal.settings import Settings
from epochal.store.encoding import Bodies


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


def deployed_publisher(environment: Mapping[str, str]) -> Handler:
    """The handler of a function that forwards what its environment says."""
    settings = Settings.from_environment(environment)
    bodies = open_deployment(settings).bucket.bodies
    return lambda_handler(publisher(publication_of(environment), bodies, settings.bucket), environment)
