"""Alarms on the other stacks, and a dashboard: a stack of their own, which the embedded AWS does without."""

from __future__ import annotations

from typing import Any, Final

from aws_cdk import Stack
from constructs import Construct

from epochal.cdk.parts.stores import Stores
from epochal.cdk.parts.watch import Watch
from epochal.cdk.stages import Stage


class WatchStack(Stack):
    """Alarms on what has a name that stays, wherever it is; and a dashboard of them all."""

    def __init__(self, scope: Construct, id_: str, *, stage: Stage, **stack: Any) -> None:
        super().__init__(scope, id_, **stack)
        stores = Stores.named(Construct(self, "Stores"), stage)
        self.watch: Final = Watch(self, stage=stage, stores=stores)
