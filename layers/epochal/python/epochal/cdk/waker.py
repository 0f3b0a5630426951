"""The function that wakes reactions when they are deployed: one in a stack, for all reactions to a store.

It loads no code of the user's: a custom resource must always answer CloudFormation, or a deployment that fails cannot
be rolled back.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import jsii
from aws_cdk import (
    CustomResource,
    Duration,
    FileSystem,
    IgnoreMode,
    IListProducer,
    IResolveContext,
    Lazy,
    Stack,
)
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from epochal.cdk.parts import iam_statements
from epochal.cdk.parts.functions import (
    LITTER,
    Function,
    Layers,
    Shared,
)
from epochal.layout.tables import INDEX
from epochal.settings import variable

WAKER_TIMEOUT: Final = Duration.minutes(1)

ANSWERED_WITHIN: Final = Duration.minutes(2)
"""Time within which the waker must answer. By default, CloudFormation waits an hour for a custom resource."""

_KEPT: Final[list[Waker]] = []
"""Wakers that are kept alive: Node forgets the Python class of a construct that Python does not refer to."""


@jsii.implements(IListProducer)
class _Arns:
    """Collects the ARNs of all reactions' queues in a stack, which the waker's role lists at synthesis."""

    def __init__(self) -> None:
        self.arns: Final[list[str]] = []

    def produce(self, _: IResolveContext) -> list[str]:
        """Return the ARNs known so far; at synthesis, CDK calls this when all reactions are known."""
        return self.arns


class Waker(Construct):
    """The function `waker`, which wakes a store's reactions when they are deployed.

    CloudFormation names the function, since several stacks may have a waker for the same store.
    """

    def __init__(self, scope: Construct, id_: str, shared: Shared) -> None:
        """Create the Lambda function that wakes a stack's reactions when they are deployed.

        Args:
            shared: settings, stores and code of the function.
        """
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
            timeout=WAKER_TIMEOUT,
            environment={variable("index_table"): index.table_name},
            allowed=[
                iam_statements.on_table(index, "GetItem", "Query"),
                iam_statements.on_queues(
                    Lazy.uncached_list(self._queues),
                    *iam_statements.batched("SendMessage", named=shared.stage.batches_named),
                ),
                *iam_statements.on_queue_key(shared.stage),
                *iam_statements.on_key(stores.key, write=False),
            ],
        ).function

    @classmethod
    def of(cls, scope: Construct, store: Construct, shared: Shared) -> Waker:
        """Return the waker of a store in the stack of `scope`; make it on first use."""
        stack, id_ = Stack.of(scope), f"EpochalWaker{store.node.addr[-8:]}"
        existing = stack.node.try_find_child(id_)
        if isinstance(existing, cls):
            return existing
        waker = cls(stack, id_, shared)
        _KEPT.append(waker)
        return waker

    def wake(
        self, scope: Construct, id_: str, *, queue: sqs.Queue, entry: Path, layers: Layers
    ) -> CustomResource:
        """Make a custom resource that wakes a reaction whenever its code or its layers change.

        CloudFormation skips a resource whose properties have not changed.

        Args:
            queue: queue of the reaction's wake-ups.
            entry: folder of the reaction's code.
            layers: layers of the reaction's function.
        """
        self._queues.arns.append(queue.queue_arn)
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
                "Layers": [version.layer_version_arn for version in layers.versions],
            },
        )
