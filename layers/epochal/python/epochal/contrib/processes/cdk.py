"""A process as it is deployed: two reactions with the same code, one that takes inputs and one that performs outputs.

Both append to streams, which reactions do not. What targets need is for the outbox alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from aws_cdk import aws_iam as iam
from constructs import Construct

from epochal.cdk.parts import grants
from epochal.cdk.parts.functions import settings_of
from epochal.cdk.reaction import Reaction, declared_name
from epochal.hosting.function import PROCESS

if TYPE_CHECKING:
    from epochal.cdk.store import Store


class Process(Construct):
    """A process on the events of a store.

    Attributes:
        inbox, outbox: its reactions.
    """

    def __init__(
        self,
        scope: Construct,
        id_: str,
        *,
        store: Store,
        entry: str | Path,
        handler: str = "handler.handler",
        name: str | None = None,
        environment: Mapping[str, str] | None = None,
        allowed: Sequence[iam.PolicyStatement] = (),
        **more: Any,
    ) -> None:
        """Add a process to a stack.

        Args:
            scope: the stack, or a construct in it.
            id_: the construct's.
            store: what feeds it, and holds its instances.
            entry: folder with the user's code.
            handler: `module:process` in that folder, a class with the decorator; or `module.function`, where
                `function = lambda_handler(process)`.
            name: the process's, as its decorator has it; read from there where it is not given.
            environment: more of it, for what outputs call.
            allowed: what that needs.
            more: of both reactions, as `Reaction` has it.

        Raises:
            BadSetting, InstallerFailed: as `Reaction`.
        """
        super().__init__(scope, id_)
        name = declared_name(Path(entry).resolve(), handler, name, "process")
        stage, stores = store.stage, store.stores(self)
        writing = grants.appending(stage, stores)
        told = {**settings_of(stage, stores).environment("append"), PROCESS: name, **(environment or {})}
        both: Any = {"store": store, "entry": entry, "handler": handler, "environment": told, **more}
        self.inbox: Final = Reaction(self, "Inbox", name=f"{name}-inbox", allowed=writing, **both)
        self.outbox: Final = Reaction(
            self, "Outbox", name=f"{name}-outbox", allowed=[*writing, *allowed], **both
        )
