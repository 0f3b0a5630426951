"""Events of a store sent to others as CloudEvents: a reaction that is there already, with a function of ours.

Publish(self, "Orders", store=store, categories=["Order"], to=bus)
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import cast

from aws_cdk import aws_events as events
from aws_cdk import aws_iam as iam
from aws_cdk import aws_sns as sns
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from epochal.cdk.parts import grants
from epochal.cdk.parts.stores import BODIES
from epochal.cdk.reaction import Reaction
from epochal.cdk.stages import BadSetting
from epochal.cdk.store import Store
from epochal.hosting.publishing import PUBLISH, Publication

Recipient = events.IEventBus | sqs.IQueue | sns.ITopic | str


class Publish(Reaction):
    """A reaction that forwards events."""

    def __init__(
        self,
        scope: Construct,
        id_: str,
        *,
        store: Store,
        to: Recipient,
        categories: Sequence[str] | None = None,
        types: Sequence[str] | None = None,
        name: str | None = None,
        source: str | None = None,
    ) -> None:
        """Add one to a stack.

        Args:
            scope: the stack, or a construct in it.
            id_: the construct's.
            store: whose events are forwarded.
            to: a bus of EventBridge, a queue, a topic, or an `https://` address.
            categories: of streams, types of aggregates and groups of tags; all where none are given.
            types: of events, likewise.
            name: of the reaction, which is made of `id_` where it is not given. Another name sends all events anew.
            source: what events say that they come from; `epochal/` and the store's name where it is not given.

        Raises:
            BadSetting: there is no such address, or categories or types are one name and no list.
        """
        name = name or re.sub(r"[^A-Za-z0-9]+", "-", f"publish-{id_}").strip("-").lower()
        for field, names in (("categories", categories), ("types", types)):
            if isinstance(names, str):
                raise BadSetting(f"Publish.{field}", "must be a list of names, not one")
        kind, place, allowed = _reached(to, store)
        publication = Publication(
            name=name,
            to=kind,
            place=place,
            source=source or f"epochal/{store.stage.named('')}",
            categories=None if categories is None else tuple(categories),
            types=None if types is None else tuple(types),
        )
        super().__init__(
            scope,
            id_,
            store=store,
            entry=store.code.lambdas / "publisher",
            name=name,
            environment={PUBLISH: publication.text()},
            allowed=allowed,
        )
        # Where a message would be too large, what it refers to is put among the bodies.
        self.function.add_to_role_policy(grants.on_objects(self._stores.bucket, BODIES, "PutObject"))


def _reached(to: Recipient, store: Store) -> tuple[str, str, list[iam.PolicyStatement]]:
    """What a recipient is, where, and what sending to it takes."""
    named = store.stage.batches_named
    if isinstance(to, str):
        if not to.startswith("https://"):
            raise BadSetting("Publish.to", f"must be a construct, or an https:// address, not {to!r}")
        return "webhook", to, []
    if hasattr(to, "event_bus_arn"):
        put = iam.PolicyStatement(actions=["events:PutEvents"], resources=[to.event_bus_arn])
        return "bus", to.event_bus_arn, [put]
    if hasattr(to, "queue_url"):
        send = grants.on_queue(to, *grants.batched("SendMessage", named=named))
        return "queue", to.queue_url, [send, *grants.on_key(to.encryption_master_key, write=True)]
    if hasattr(to, "topic_arn"):
        topic = cast(sns.ITopic, to)
        publish = grants.on_topic(topic, *grants.batched("Publish", named=named))
        key = getattr(topic, "master_key", None)
        return "topic", topic.topic_arn, [publish, *grants.on_key(key, write=True)]
    raise BadSetting("Publish.to", f"must be a bus, a queue, a topic or an address, not {type(to).__name__}")
