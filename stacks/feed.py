"""The feed: the indexer, the auditor, what wakes them, and where their failures go; and timers."""

from __future__ import annotations

from typing import Any, Final

from aws_cdk import Stack
from constructs import Construct

from epochal import extensions
from epochal.cdk.parts.feed import Feed
from epochal.cdk.parts.functions import Code, Layers, Shared
from epochal.cdk.parts.stores import Stores, streams_named
from epochal.cdk.parts.watch import watch_mappings
from epochal.cdk.stages import Stage
from epochal.cdk.store import Store


class FeedStack(Stack):
    """The functions that streams and schedules wake, and those of timers; and, where it is `watched`, alarms on what
    wakes them.
    """

    def __init__(
        self, scope: Construct, id_: str, *, stage: Stage, code: Code, watched: bool, **stack: Any
    ) -> None:
        super().__init__(scope, id_, **stack)
        layers = Layers(self, "Layers", code=code)
        stores = Stores.named(Construct(self, "Stores"), stage)
        shared = Shared(stage=stage, stores=stores, code=code, layers=layers)
        self.feed: Final = Feed(self, shared, streams_named(self, stage))
        if stage.timers:
            store = Store(self, "Store", stage=stage, code=lambda *_: code, layers=layers)
            timers = extensions.required_part("construct", "timers")
            timers(self, "Timers", store=store, shared=shared, notices=self.feed.notices)
        if watched:
            watch_mappings(Construct(self, "Watch"), stage=stage, feed=self.feed)
