"""Alarms on the other stacks, and a dashboard: a stack of their own, which the embedded AWS does without."""

from __future__ import annotations

from typing import Any, Final

from aws_cdk import Stack
from constructs import Construct

from epochal.cdk.parts.watch import Watch
from epochal.cdk.stages import Stage
from stacks.api import ApiStack
from stacks.feed import FeedStack
from stacks.store import StoreStack


class WatchStack(Stack):
    """Alarms on the other stacks, but for reactions, which bring their own; and a dashboard of them all."""

    def __init__(
        self,
        scope: Construct,
        id_: str,
        *,
        stage: Stage,
        store: StoreStack,
        feed: FeedStack,
        api: ApiStack,
        **stack: Any,
    ) -> None:
        super().__init__(scope, id_, **stack)
        self.watch: Final = Watch(self, stage=stage, stores=store.storage.stores, feed=feed.feed, api=api.api)
