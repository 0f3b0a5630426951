"""Events of a store sent to others as CloudEvents: a reaction that is there already, with a function of ours.

Publish(self, "Orders", store=store, categories=["Order"], to=bus)
Publish(self, "Orders", store=store, to=Webhook("https://shop.example/events", sign_with=secret))
Publish(self, "Orders", store=store, to=stream, entry="publish", mapping="orders:shown")
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, cast

from aws_cdk import aws_events as events
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kinesis as kinesis
from aws_cdk import aws_kinesisfirehose as firehose
from aws_cdk import aws_secretsmanager as secretsmanager
from aws_cdk import aws_sns as sns
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from epochal.cdk.parts import grants
from epochal.cdk.parts.grants import BODIES
from epochal.cdk.reaction import Reaction, module_of
from epochal.cdk.stages import BadSetting
from epochal.cdk.store import Store
from epochal.contrib.publish.publication import PUBLISH, Publication

_HEADER: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_TAKEN: Final = (
    "content-type",
    "content-length",
    "host",
    "webhook-id",
    "webhook-signature",
    "webhook-timestamp",
)


class Webhook:
    """An HTTPS address, and how it knows who sends.

    Attributes:
        address: begins with `https://`.
        sign_with: requests are signed with this secret as Standard Webhooks has it: base64 of 24 to 64 bytes, with or
            without `whsec_` before it. For a day after a rotation they have two signatures.
        authorization: this secret is all of a header's value: `Bearer …`.
        header: that header.
    """

    def __init__(
        self,
        address: str,
        *,
        sign_with: secretsmanager.ISecret | None = None,
        authorization: secretsmanager.ISecret | None = None,
        header: str = "Authorization",
    ) -> None:
        """Name an address; raises `BadSetting` where there cannot be such a one, or such a header."""
        if not address.startswith("https://"):
            raise BadSetting("Publish.to", f"must be a construct, or an https:// address, not {address!r}")
        if not _HEADER.fullmatch(header) or header.lower() in _TAKEN:
            raise BadSetting(
                "Webhook.header", f"must be a header that requests do not have yet, not {header!r}"
            )
        if header != "Authorization" and authorization is None:
            raise BadSetting("Webhook.header", "means nothing without authorization, its value")
        self.address: Final = address
        self.sign_with: Final = sign_with
        self.authorization: Final = authorization
        self.header: Final = header


Recipient = (
    events.IEventBus
    | sqs.IQueue
    | sns.ITopic
    | kinesis.IStream
    | firehose.IDeliveryStream
    | firehose.CfnDeliveryStream
    | Webhook
)


class Publish(Reaction):
    """A reaction that forwards events."""

    _decorator = None
    _named = "epochal.contrib.publish.function.handler"

    def __init__(
        self,
        scope: Construct,
        id_: str,
        *,
        store: Store,
        to: Recipient | str,
        categories: Sequence[str] | None = None,
        types: Sequence[str] | None = None,
        name: str | None = None,
        source: str | None = None,
        entry: str | Path | None = None,
        mapping: str | None = None,
        codec: str | None = None,
        message_bytes: int | None = None,
        as_rows: bool = False,
    ) -> None:
        """Add one to a stack.

        Args:
            scope: the stack, or a construct in it.
            id_: the construct's.
            store: whose events are forwarded.
            to: a bus of EventBridge, a queue, a topic, a stream of Kinesis, a delivery stream of Firehose, or an
                `https://` address; `Webhook` for one with secrets.
            categories: of streams, types of aggregates and groups of tags; all where none are given.
            types: of events; all where none are given.
            name: of the reaction, which is made of `id_` where it is not given. Another name sends all events anew.
            source: what events say that they come from; `epochal/` and the store's name where it is not given.
            entry: folder with code of the user's: the module of `mapping` or `codec`, and a `requirements.txt` of what
                that needs.
            mapping: `module:function` in that folder, from a `FeedEvent` to a `CloudEvent`, or to None for one that is
                not sent. All of an event is, where it is not given.
            codec: `module:name` in that folder, of an `EventCodec` that brings events to the version of today.
            message_bytes: of a message, at most; what is larger is referred to. As the recipient says or AWS does,
                where it is not given.
            as_rows: events are sent as rows of one flat table, some in a record, and not as CloudEvents: to a delivery
                stream alone, as `Lake` has it.

        Raises:
            BadSetting: there is no such recipient, categories or types are one name and no list, or the code is not
                there.
        """
        name = name or re.sub(r"[^A-Za-z0-9]+", "-", f"publish-{id_}").strip("-").lower()
        for field, names in (("categories", categories), ("types", types)):
            if isinstance(names, str):
                raise BadSetting(f"Publish.{field}", "must be a list of names, not one")
        own = _own(entry, mapping, codec)
        there = Webhook(to) if isinstance(to, str) else to
        kind, place, allowed = _reached(there, store)
        if as_rows and (own or kind != "firehose"):
            raise BadSetting("Publish.as_rows", "is for a delivery stream, and without a mapping or a codec")
        publication = Publication(
            name=name,
            to=kind,
            place=place,
            source=source or f"epochal/{store.stage.named('')}",
            categories=None if categories is None else tuple(categories),
            types=None if types is None else tuple(types),
            mapping=mapping,
            codec=codec,
            message_bytes=message_bytes,
            as_rows=as_rows or None,
            **_secrets(there),
        )
        super().__init__(
            scope,
            id_,
            store=store,
            entry=own or store.code().lambdas / "publisher",
            handler=mapping or codec or "handler.handler",
            name=name,
            environment={PUBLISH: publication.text()},
            allowed=allowed,
        )
        # Where a message would be too large, what it refers to is put among the bodies.
        self.function.add_to_role_policy(grants.on_objects(self._stores.bucket, BODIES, "PutObject"))


def _own(entry: str | Path | None, mapping: str | None, codec: str | None) -> Path | None:
    """The folder of the user's code, if there is any; raises `BadSetting` where it lacks what it is to have."""
    named = {"mapping": mapping, "codec": codec}
    said = {name: place for name, place in named.items() if place is not None}
    if len(said) > 1:
        raise BadSetting("Publish.codec", "means nothing beside a mapping, which reads by its own codec")
    if (entry is None) != (not said):
        raise BadSetting("Publish.entry", "is the folder of a mapping or a codec: both are given, or neither")
    if entry is None:
        return None
    folder = Path(entry).resolve()
    for field, place in said.items():
        if not re.fullmatch(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*", place) or not module_of(folder, place).is_file():
            raise BadSetting(f"Publish.{field}", f"must be module:name of a file in {folder}, not {place!r}")
    return folder


def _secrets(to: Recipient) -> dict[str, Any]:
    """Where the secrets of an address are: the function reads them, and nothing that is deployed has them."""
    if not isinstance(to, Webhook):
        return {}
    secrets = {"sign_with": to.sign_with, "authorization": to.authorization}
    told = {name: secret.secret_arn for name, secret in secrets.items() if secret is not None}
    return told | ({"header": to.header} if to.authorization else {})


def _reached(to: Recipient, store: Store) -> tuple[str, str, list[iam.PolicyStatement]]:
    """What a recipient is, where, and what sending to it takes."""
    named = store.stage.batches_named
    if isinstance(to, Webhook):
        secrets = [each for each in (to.sign_with, to.authorization) if each is not None]
        return "webhook", to.address, [each for secret in secrets for each in grants.on_secret(secret)]
    if hasattr(to, "event_bus_arn"):
        put = iam.PolicyStatement(actions=["events:PutEvents"], resources=[to.event_bus_arn])
        return "bus", to.event_bus_arn, [put]
    if hasattr(to, "queue_url"):
        queue = cast(sqs.IQueue, to)
        send = grants.on_queue(queue, "GetQueueAttributes", *grants.batched("SendMessage", named=named))
        return "queue", queue.queue_url, [send, *grants.on_key(queue.encryption_master_key, write=True)]
    if hasattr(to, "topic_arn"):
        topic = cast(sns.ITopic, to)
        publish = grants.on_topic(topic, "GetTopicAttributes", *grants.batched("Publish", named=named))
        key = getattr(topic, "master_key", None)
        return "topic", topic.topic_arn, [publish, *grants.on_key(key, write=True)]
    if isinstance(to, firehose.CfnDeliveryStream) or hasattr(to, "delivery_stream_arn"):
        if isinstance(to, firehose.CfnDeliveryStream):
            arn, name = to.attr_arn, to.ref
        else:
            delivery = cast(firehose.IDeliveryStream, to)
            arn, name = delivery.delivery_stream_arn, delivery.delivery_stream_name
        record = iam.PolicyStatement(actions=["firehose:PutRecordBatch"], resources=[arn])
        return "firehose", name, [record]
    if hasattr(to, "stream_arn"):
        stream = cast(kinesis.IStream, to)
        put = iam.PolicyStatement(actions=["kinesis:PutRecord"], resources=[stream.stream_arn])
        return "stream", stream.stream_arn, [put, *grants.on_key(stream.encryption_key, write=True)]
    rule = "must be a bus, a queue, a topic, a stream, a delivery stream or an address"
    raise BadSetting("Publish.to", f"{rule}, not {type(to).__name__}")
