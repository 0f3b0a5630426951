"""The built-in reaction that forwards events as CloudEvents: what it is told, and what it does with a delivery.

Whatever does not take an event fails the delivery. It comes again, event by event, and the stream is parked in the end,
as of any reaction: an operator replays it when the other side is there again.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final

from epochal.codec.bodies import DIRECT, Encoded
from epochal.codec.claims import claim_for
from epochal.dynamo.clients import service_client
from epochal.dynamo.lazy_clients import lazily
from epochal.dynamo.recipients import Send, recipient
from epochal.dynamo.secrets import Secret
from epochal.dynamo.webhook import AUTHORIZATION, Proof
from epochal.errors import InvalidInput
from epochal.reactions.cloudevents import batches, cloud_event
from epochal.reactions.reaction import Delivery, Reaction
from epochal.store.bodies import Bodies

PUBLISH: Final = "EPOCHAL_PUBLISH"
"""The variable that tells a function what to forward."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Publication:
    """What is forwarded, and where to.

    Attributes:
        name: of the reaction.
        to: `bus`, `queue`, `topic` or `webhook`.
        place: which one.
        source: what events say that they come from.
        categories: of streams; None for all.
        types: of events; None for all.
        sign_with: the secret that requests to an address are signed with.
        authorization: the secret that is the value of a header of theirs.
        header: that one.
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

    def text(self) -> str:
        """As the function's environment has it."""
        return json.dumps({name: each for name, each in asdict(self).items() if each is not None})


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


def publisher(
    publication: Publication, bodies: Bodies | None, bucket: str, send: Send | None = None
) -> Reaction:
    """The reaction that forwards.

    Args:
        bodies: where content is put that is too large for a message.
        bucket: what it is called.
        send: to where the publication says, if it is not given.
    """
    to = send or recipient(publication.to, publication.place, proof=proof_of(publication))

    def keep(content: bytes) -> str:
        if bodies is None:
            raise InvalidInput("bucket", "must be there for events that are too large for a message")
        claim = claim_for(Encoded(DIRECT, content))
        bodies.put(claim, content)
        return f"s3://{bucket}/{claim.key}"

    def forward(delivery: Delivery) -> None:
        there = (event for event in delivery.events if event.gone is None)
        for batch in batches(cloud_event(event, publication.source, keep) for event in there):
            to(batch)

    chosen = publication.categories, publication.types
    categories, types = (None if each is None else frozenset(each) for each in chosen)
    return Reaction(name=publication.name, handler=forward, categories=categories, types=types, once=True)
