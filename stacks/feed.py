"""The feed: the indexer, the notifier, the auditor, what wakes them, and where their failures go."""

from __future__ import annotations

from typing import Any, Final

from aws_cdk import Stack
from constructs import Construct

from epochal.cdk.parts.feed import Feed
from epochal.cdk.parts.functions import Code, Layers, Shared
from epochal.cdk.stages import Stage
from stacks.store import StoreStack


class FeedStack(Stack):
    """The functions that streams and schedules wake."""

    def __init__(
        self, scope: Construct, id_: str, *, stage: Stage, store: StoreStack, code: Code, **stack: Any
    ) -> None:
        super().__init__(scope, id_, **stack)
        layers = Layers(self, "Layers", code=code)
        shared = Shared(stage=stage, stores=store.storage.stores, code=code, layers=layers)
        self.feed: Final = Feed(self, shared)
