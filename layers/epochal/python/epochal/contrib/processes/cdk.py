"""A process as it is deployed: two reactions with the same code, one that takes inputs and one that performs outputs.

Both append to streams, which reactions do not. What targets need is for the outbox alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from epochal.cdk.arguments import checked_arguments
from epochal.cdk.parts import grants
from epochal.cdk.parts.function_settings import settings_of
from epochal.cdk.parts.functions import MEMORY_MB, Network
from epochal.cdk.reaction import (
    BATCH_SIZE,
    REACTION_RULES,
    SCHEDULE_MINUTES,
    TIMEOUT_SECONDS,
    Reaction,
)
from epochal.cdk.reaction_code import declared_name
from epochal.hosting.function import PROCESS
from epochal.hosting.leases import MAX_RECEIVES

if TYPE_CHECKING:
    from epochal.cdk.store import Store


class Process(Construct):
    """Construct of a process on the events of a store: its two reactions.

    Attributes:
        inbox, outbox: the reactions that take inputs and perform outputs.
    """

    @checked_arguments("Process", REACTION_RULES)
    def __init__(
        self,
        scope: Construct,
        id_: str,
        *,
        store: Store,
        entry: str | Path,
        handler: str = "handler.handler",
        name: str | None = None,
        memory_mb: int = MEMORY_MB,
        timeout_seconds: int = TIMEOUT_SECONDS,
        batch_size: int = BATCH_SIZE,
        max_receives: int = MAX_RECEIVES,
        schedule_minutes: int = SCHEDULE_MINUTES,
        environment: Mapping[str, str] | None = None,
        permissions: Sequence[iam.PolicyStatement] = (),
        read_models: Sequence[str] = (),
        more_layers: Sequence[lambda_.ILayerVersion] = (),
        reserved_concurrency: int | None = None,
        network: Network | None = None,
        python: str | None = None,
        architecture: lambda_.Architecture | None = None,
    ) -> None:
        """Add the two reactions that run a process, its inbox and its outbox, to a stack.

        Args:
            scope: the stack, or a construct in it.
            id_: id of the construct in its scope.
            store: the store whose events are inputs, and which holds the process's instances.
            entry: folder with the user's code.
            handler: `module:process` in that folder, a class with the decorator; or `module.function`, where
                `function = lambda_handler(process)`.
            name: name of the process, as in its decorator; read from there if it is not given.
            memory_mb: memory of each of the two functions in MB, and with it its share of a CPU.
            timeout_seconds: timeout of one invocation. One call of the process must end within a fifth of it.
            batch_size: most wake-ups of one invocation, at most 10, whose partitions run one after another.
            max_receives: number of failures after which a wake-up moves to the dead-letter queue and raises an alarm.
            schedule_minutes: interval at which every partition is woken in case a notice was lost.
            environment: further environment variables, for the targets of outputs.
            permissions: permissions that these targets need.
            read_models: names of the read models that the process makes; the stage must have their table.
            more_layers: layers besides the library's.
            reserved_concurrency: concurrent invocations reserved for each function, and its limit; None for none.
            network: VPC that the functions run in, for example to reach a database; None for Lambda's own network.
            python, architecture: Python version and processor of the functions; None for the store's.

        Raises:
            BadSetting: an argument breaks its rule, the name is taken by another reaction to the store, or the code
                does not exist.
            InstallerFailed: pip found no wheels of a required package for that Python and processor.
        """
        super().__init__(scope, id_)
        name = declared_name(Path(entry).resolve(), handler, name, "process")
        stage, stores = store.stage, store.stores(self)
        writing = grants.appending(stage, stores)
        variables = {**settings_of(stage, stores).environment("append"), PROCESS: name, **(environment or {})}
        both: Any = {
            "store": store,
            "entry": entry,
            "handler": handler,
            "memory_mb": memory_mb,
            "timeout_seconds": timeout_seconds,
            "batch_size": batch_size,
            "max_receives": max_receives,
            "schedule_minutes": schedule_minutes,
            "environment": variables,
            "read_models": read_models,
            "more_layers": more_layers,
            "reserved_concurrency": reserved_concurrency,
            "network": network,
            "python": python,
            "architecture": architecture,
        }
        self.inbox: Final = Reaction(self, "Inbox", name=f"{name}-inbox", permissions=writing, **both)
        self.outbox: Final = Reaction(
            self, "Outbox", name=f"{name}-outbox", permissions=[*writing, *permissions], **both
        )
