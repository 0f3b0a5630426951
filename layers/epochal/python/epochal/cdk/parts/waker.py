"""The function that wakes reactions when they are deployed: one in a stack, for all reactions to a store.

It is ours, and loads nothing of a user's: what answers CloudFormation has to answer, or a deployment that fails cannot
be rolled back.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import jsii
from aws_cdk import CustomResource, Duration, FileSystem, IgnoreMode, IStableListProducer, Lazy, Stack
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from epochal.cdk.parts import grants
from epochal.cdk.parts.functions import LITTER, Function, Layers, Shared
from epochal.layout.tables import INDEX
from epochal.settings import variable

TIMEOUT: Final = Duration.minutes(1)

ANSWERED_WITHIN: Final = Duration.minutes(2)
"""CloudFormation waits an hour for a custom resource that does not answer, if nobody says otherwise."""

_KEPT: Final[list[Waker]] = []
"""Node forgets which class of Python's a construct is of that nobody in Python holds."""


@jsii.implements(IStableListProducer)
class _Arns:
    """Those of the queues of all reactions in a stack, once all are known: its role has them from the beginning."""

    def __init__(self) -> None:
        self.found: Final[list[str]] = []

    def produce(self) -> list[str]:
        """When the app is synthesised."""
        return self.found


class Waker(Construct):
    """The function `waker`. CloudFormation names it: several stacks may have one for the same store."""

    def __init__(self, scope: Construct, id_: str, shared: Shared) -> None:
        super().__init__(scope, id_)
        stores, self._queues = shared.stores, _Arns()
        index = stores.tables[INDEX.kind]
        self._function: Final = Function(
            self,
            "Function",
            name="waker",
            named=False,
            description="wakes reactions when they are deployed",
            shared=shared,
            timeout=TIMEOUT,
            environment={variable("index_table"): index.table_name},
            allowed=[
                grants.on_table(index, "GetItem", "Query"),
                grants.on_queues(
                    Lazy.list(self._queues), *grants.batched("SendMessage", named=shared.stage.batches_named)
                ),
                *grants.on_key(stores.key, write=False),
            ],
        ).function

    @classmethod
    def of(cls, scope: Construct, store: Construct, shared: Shared) -> Waker:
        """That of the stack around `scope`, for this store."""
        stack, id_ = Stack.of(scope), f"EpochalWaker{store.node.addr[-8:]}"
        found = stack.node.try_find_child(id_)
        if isinstance(found, cls):
            return found
        made = cls(stack, id_, shared)
        _KEPT.append(made)
        return made

    def wake(
        self,
        scope: Construct,
        id_: str,
        *,
        queue: sqs.Queue,
        entry: Path,
        layers: Layers,
    ) -> CustomResource:
        """A wake-up of the reaction with this queue, asked for whenever the code in `entry` or the layers are others:
        CloudFormation passes over a resource that has not changed.
        """
        self._queues.found.append(queue.queue_arn)
        code = FileSystem.fingerprint(str(entry), exclude=[*LITTER], ignore_mode=IgnoreMode.GLOB)
        return CustomResource(
            scope,
            id_,
            service_token=self._function.function_arn,
            resource_type="Custom::EpochalWakeUp",
            service_timeout=ANSWERED_WITHIN,
            properties={
                "Queue": queue.queue_url,
                "Code": code,
                "Layers": [each.layer_version_arn for each in layers.versions],
            },
        )
