"""The HTTP API, and the functions behind it."""

from __future__ import annotations

from typing import Any, Final

from aws_cdk import Stack
from constructs import Construct

from epochal.cdk.parts.api import Api
from epochal.cdk.parts.functions import Code, Layers, Shared
from epochal.cdk.parts.stores import Stores
from epochal.cdk.parts.watch import watch_api
from epochal.cdk.stages import Stage


class ApiStack(Stack):
    """The functions `append`, `replay` and `feed`, and how they are reached; and, where it is `watched`, an alarm."""

    def __init__(
        self, scope: Construct, id_: str, *, stage: Stage, code: Code, watched: bool, **stack: Any
    ) -> None:
        super().__init__(scope, id_, **stack)
        layers = Layers(self, "Layers", code=code)
        stores = Stores.named(Construct(self, "Stores"), stage)
        shared = Shared(stage=stage, stores=stores, code=code, layers=layers)
        self.api: Final = Api(self, shared)
        if watched:
            watch_api(Construct(self, "Watch"), stage=stage, api=self.api)
