"""Events of a store sent to others as CloudEvents: a reaction that is there already, with a function of ours.

Publish(self, "Orders", store=store, categories=["Order"], to=bus)
Publish(self, "Orders", store=store, to=Webhook("https://shop.example/events", sign_with=secret))
Publish(self, "Orders", store=store, to=stream, entry="publish", mapping="orders:shown")
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, cast

from aws_cdk import aws_events as events
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kinesis as kinesis
from aws_cdk import aws_kinesisfirehose as firehose
from aws_cdk import aws_secretsmanager as secretsmanager
from aws_cdk import aws_sns as sns
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from epochal.cdk.arguments import (
    NAMES,
    TEXT,
    an_instance,
    an_object_with,
    checked_arguments,
)
from epochal.cdk.parts import iam_statements
from epochal.cdk.parts.iam_statements import BODIES
from epochal.cdk.reaction import REACTION_RULES, STORE, Reaction
from epochal.cdk.reaction_code import module_of
from epochal.cdk.rules import BadSetting, a_flag, a_number, a_text, or_null
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


_SHORTER: Final = "Name categories in place of types, or divide the types among several Publish constructs"
"""What to do where the names of types and categories are too long for a function's environment."""


_SECRET: Final = or_null(an_object_with("secret_arn", "a secret of aws_secretsmanager"))
_MAX_MESSAGE_BYTES: Final = 1024 * 1024
"""Bytes of the largest message that any recipient takes."""


class Webhook:
    """An HTTPS address to which events are sent, with the secrets that authenticate the sender.

    Attributes:
        address: URL that begins with `https://`.
        sign_with: secret with which requests are signed according to Standard Webhooks: base64 of 24 to 64 bytes, with
            or without the prefix `whsec_`. For a day after a rotation, requests have two signatures.
        authorization: secret that is the whole value of a header, such as `Bearer …`.
        header: name of that header.
    """

    @checked_arguments(
        "Webhook",
        {
            "address": a_text(r"\S+", "an https:// address"),
            "sign_with": _SECRET,
            "authorization": _SECRET,
            "header": a_text(r".+", "the name of a header"),
        },
    )
    def __init__(
        self,
        address: str,
        *,
        sign_with: secretsmanager.ISecret | None = None,
        authorization: secretsmanager.ISecret | None = None,
        header: str = "Authorization",
    ) -> None:
        """Make the recipient for an HTTPS address; raise `BadSetting` if address or header cannot be used.

        Args:
            address: URL that begins with `https://`.
            sign_with: secret with which requests are signed according to Standard Webhooks: base64 of 24 to 64 bytes,
                with or without the prefix `whsec_`. None for unsigned requests.
            authorization: secret that is the whole value of a header, such as `Bearer …`; None for no such header.
            header: name of that header.

        Raises:
            BadSetting: the address does not begin with `https://`, or a request cannot have the header.
        """
        if not address.startswith("https://"):
            raise BadSetting("Publish.to", f"must be a construct, or an https:// address, not {address!r}")
        if not _HEADER.fullmatch(header) or header.lower() in _TAKEN:
            raise BadSetting(
                "Webhook.header", f"must be a header that requests do not already have, not {header!r}"
            )
        if header != "Authorization" and authorization is None:
            raise BadSetting("Webhook.header", "needs authorization, which is its value")
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
    """Construct of a reaction that forwards a store's events to a recipient."""

    _decorator = None
    _named = "epochal.contrib.publish.function.handler"
    _remedies = MappingProxyType({PUBLISH: ("Publish.environment", _SHORTER)})

    @checked_arguments(
        "Publish",
        {
            "store": STORE,
            "categories": NAMES,
            "types": NAMES,
            "name": REACTION_RULES["name"],
            "source": or_null(TEXT),
            "entry": or_null(an_instance((str, Path), "a folder")),
            "mapping": or_null(TEXT),
            "codec": or_null(TEXT),
            "message_bytes": or_null(a_number(1, _MAX_MESSAGE_BYTES)),
            "as_rows": a_flag,
        },
    )
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
        """Add to a stack the reaction that sends a store's events to the recipient `to`.

        Args:
            scope: the stack, or a construct in it.
            id_: id of the construct in its scope.
            store: the store whose events are forwarded.
            to: recipient: an EventBridge bus, a queue, a topic, a Kinesis stream, a Firehose delivery stream, or an
                `https://` address; `Webhook` for an address with secrets.
            categories: categories of streams, types of aggregates and groups of tags whose events are forwarded; all
                if None.
            types: types of events that are forwarded; all if None.
            name: name of the reaction; derived from `id_` if it is not given. Another name sends all events anew.
            source: `source` of the CloudEvents; by default `epochal/` and the store's name.
            entry: folder with the user's code: the module of `mapping` or `codec`, and a `requirements.txt` of what it
                needs.
            mapping: `module:function` in that folder, which turns a `FeedEvent` into a `CloudEvent`, or into None for
                an event that is not sent. By default, all of an event is sent.
            codec: `module:name` in that folder, of an `EventCodec` that brings events to their current version.
            message_bytes: maximum bytes of a message; a larger one contains a reference to its content. The default is
                the limit of the recipient, or of AWS.
            as_rows: whether events are sent as rows of one flat table, several in a record, and not as CloudEvents:
                only to a delivery stream, as `Lake` has it.

        Raises:
            BadSetting: the recipient is of an unknown kind, categories or types are a single name and not a list, or
                the code is not there.
        """
        name = name or re.sub(r"[^A-Za-z0-9]+", "-", f"publish-{id_}").strip("-").lower()
        for field, names in (("categories", categories), ("types", types)):
            if names is not None and not names:
                raise BadSetting(f"Publish.{field}", "must not be empty; leave it out to select all")
        own = _own(entry, mapping, codec)
        there = Webhook(to) if isinstance(to, str) else to
        kind, place, permissions = _reached(there, store)
        if as_rows and (own or kind != "firehose"):
            raise BadSetting(
                "Publish.as_rows", "needs a delivery stream as the recipient, and no mapping or codec"
            )
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
            permissions=permissions,
        )
        # The content of a message that is too large is put into the bucket, beside the bodies.
        self.function.add_to_role_policy(iam_statements.on_objects(self._stores.bucket, BODIES, "PutObject"))


def _own(entry: str | Path | None, mapping: str | None, codec: str | None) -> Path | None:
    """Return the folder of the mapping or codec, or None without both; raise `BadSetting` if it is wrong.

    Raises:
        BadSetting: the folder or its modules are not there, or the arguments contradict each other.
    """
    keywords = {"mapping": mapping, "codec": codec}
    said = {name: place for name, place in keywords.items() if place is not None}
    if len(said) > 1:
        raise BadSetting("Publish.codec", "must not be given with a mapping, which uses its own codec")
    if (entry is None) != (not said):
        raise BadSetting("Publish.entry", "must be given together with a mapping or a codec")
    if entry is None:
        return None
    folder = Path(entry).resolve()
    for field, place in said.items():
        if not re.fullmatch(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*", place) or not module_of(folder, place).is_file():
            raise BadSetting(f"Publish.{field}", f"must be module:name of a file in {folder}, not {place!r}")
    return folder


def _secrets(to: Recipient) -> dict[str, Any]:
    """Return the ARNs of an address's secrets, and the header's name, as settings of the publication.

    The function reads the secrets itself, so that their values are not part of what is deployed.
    """
    if not isinstance(to, Webhook):
        return {}
    secrets = {"sign_with": to.sign_with, "authorization": to.authorization}
    arns = {name: secret.secret_arn for name, secret in secrets.items() if secret is not None}
    return arns | ({"header": to.header} if to.authorization else {})


def _reached(to: Recipient, store: Store) -> tuple[str, str, list[iam.PolicyStatement]]:
    """Return a recipient's kind and address, and the IAM permissions that sending to it takes.

    Raises:
        BadSetting: the recipient is of an unknown kind.
    """
    named = store.stage.batches_named
    if isinstance(to, Webhook):
        secrets = [secret for secret in (to.sign_with, to.authorization) if secret is not None]
        return (
            "webhook",
            to.address,
            [statement for secret in secrets for statement in iam_statements.on_secret(secret)],
        )
    if hasattr(to, "event_bus_arn"):
        put = iam.PolicyStatement(actions=["events:PutEvents"], resources=[to.event_bus_arn])
        return "bus", to.event_bus_arn, [put]
    if hasattr(to, "queue_url"):
        queue = cast(sqs.IQueue, to)
        send = iam_statements.on_queue(
            queue, "GetQueueAttributes", *iam_statements.batched("SendMessage", named=named)
        )
        return (
            "queue",
            queue.queue_url,
            [send, *iam_statements.on_key(queue.encryption_master_key, write=True)],
        )
    if hasattr(to, "topic_arn"):
        topic = cast(sns.ITopic, to)
        publish = iam_statements.on_topic(
            topic, "GetTopicAttributes", *iam_statements.batched("Publish", named=named)
        )
        key = getattr(topic, "master_key", None)
        return "topic", topic.topic_arn, [publish, *iam_statements.on_key(key, write=True)]
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
        return "stream", stream.stream_arn, [put, *iam_statements.on_key(stream.encryption_key, write=True)]
    rule = "must be a bus, a queue, a topic, a stream, a delivery stream or an address"
    raise BadSetting("Publish.to", f"{rule}, not {type(to).__name__}")
