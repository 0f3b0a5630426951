"""The reactions that a stage declares: a stack of nothing but them, so that a failing one holds back no other stack.

A team with more to deploy than a function puts the construct (`epochal.cdk.Reaction`) into a stack of its own.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from aws_cdk import Fn, Stack
from aws_cdk import aws_iam as iam
from constructs import Construct

from epochal import extensions
from epochal.cdk.declared_reactions import Declared, HandlerPermission
from epochal.cdk.parts.functions import MEMORY_MB, Code, Layers
from epochal.cdk.reaction import BATCH_SIZE, TIMEOUT_SECONDS, Reaction
from epochal.cdk.stages import Stage
from epochal.cdk.store import Store

if TYPE_CHECKING:
    from epochal.contrib.processes.cdk import Process


class ReactionsStack(Stack):
    """Reactions by name."""

    def __init__(
        self, scope: Construct, id_: str, *, stage: Stage, code: Code, root: Path, **stack: Any
    ) -> None:
        super().__init__(scope, id_, **stack)
        layers = Layers(self, "Layers", code=code)
        store = Store(self, "Store", stage=stage, code=lambda *_: code, layers=layers)
        self.reactions: Final = {
            name: _reaction(self, name, declared, store=store, root=root)
            for name, declared in stage.reactions.items()
        }


def _reaction(
    scope: Construct, name: str, declared: Declared, *, store: Store, root: Path
) -> Reaction | Process:
    construct: type[Reaction | Process] = Reaction
    if declared.process:
        construct = extensions.required_part("process", f"reactions.{name}.process")
    return construct(
        scope,
        name,
        store=store,
        name=name,
        entry=root / declared.entry,
        handler=declared.handler,
        memory_mb=declared.memory_mb or MEMORY_MB,
        timeout_seconds=declared.timeout_seconds or TIMEOUT_SECONDS,
        batch_size=declared.batch_size or BATCH_SIZE,
        reserved_concurrency=declared.reserved_concurrency,
        environment=declared.environment,
        permissions=[_statement(permission) for permission in declared.permissions],
        read_models=declared.read_models,
    )


def _statement(permission: HandlerPermission) -> iam.PolicyStatement:
    """`${AWS::Region}` and its like stand for what they are where it is deployed."""
    resources = [Fn.sub(each) if "${" in each else each for each in permission.resources]
    return iam.PolicyStatement(actions=[*permission.actions], resources=resources)
