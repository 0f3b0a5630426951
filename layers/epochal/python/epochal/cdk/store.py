"""A store that an app has or finds: what reactions, functions and programs beside it need to know of it.

A construct in the store's own stack refers to its tables. One in another stack finds them by their names, which are the
same whenever they are told: no stack exports anything, so none holds up a change of another.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from aws_cdk import ArnFormat, Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from epochal.cdk.parts import allowed
from epochal.cdk.parts.accounts import refuse_elsewhere, refuse_tables_elsewhere
from epochal.cdk.parts.environments import settings_of
from epochal.cdk.parts.functions import Code, Layers
from epochal.cdk.parts.names import topic_of
from epochal.cdk.parts.stores import Stores
from epochal.cdk.stages import BadSetting, Stage
from epochal.cdk.targets import known_python

MakeCode = Callable[[str | None, lambda_.Architecture | None], Code]
"""The library and what it needs for a Python and a processor; for the store's own where none is said."""


class Store(Construct):
    """A store: one of this app (`EventStore`), or one that is deployed already (`EventStore.from_name`).

    Attributes:
        stage: what its deployment has chosen.
    """

    def __init__(
        self,
        scope: Construct,
        id_: str,
        *,
        stage: Stage,
        code: MakeCode,
        layers: Layers | None = None,
    ) -> None:
        super().__init__(scope, id_)
        refuse_tables_elsewhere(self, stage)
        self.stage: Final = stage
        self._make: Final = code
        self._made: Final[dict[tuple[str, str], Code]] = {}
        self._layers: Final = layers

    def code(self, python: str | None = None, architecture: lambda_.Architecture | None = None) -> Code:
        """The library, for functions that use the store: fetched when the first one of a Python and processor does.

        Raises:
            BadSetting: functions cannot run on that Python.
            InstallerFailed: pip could not fetch what they need.
        """
        if python is not None:
            known_python("python", python)
        key = (python or "", architecture.name if architecture else "")
        if key not in self._made:
            self._made[key] = self._make(python, architecture)
        return self._made[key]

    def layers(
        self,
        scope: Construct,
        *,
        python: str | None = None,
        architecture: lambda_.Architecture | None = None,
    ) -> Layers:
        """The library and its pins for functions in the stack of `scope`: `function.add_layers(*…versions)`.

        They are for the store's Python and processor, unless others are said.
        """
        if self._layers is not None and python is None and architecture is None:
            return self._layers
        return Layers.of(scope, self.code(python, architecture))

    def stores(self, scope: Construct) -> Stores:
        """Tables and bucket as a construct in `scope` refers to them.

        Raises:
            BadSetting: it is deployed to another account or region.
        """
        refuse_elsewhere(self, scope)
        return Stores.named(scope, self.stage)

    def topic_arn(self, scope: Construct) -> str:
        """The topic that tells which partitions have moved."""
        return Stack.of(scope).format_arn(
            service="sns", resource=topic_of(self.stage), arn_format=ArnFormat.NO_RESOURCE_NAME
        )

    def grant_append(self, function: lambda_.Function) -> None:
        """Let a function append, prune and delete, and tell it where: `EPOCHAL_STREAMS_TABLE`, `EPOCHAL_BUCKET`."""
        stores = self._stores_for(function, "Append")
        self._grant(function, "append", stores, allowed.append(self.stage, stores))

    def grant_read(self, function: lambda_.Function) -> None:
        """Let a function read streams, and tell it where they are."""
        stores = self._stores_for(function, "Read")
        self._grant(function, "replay", stores, allowed.replay(self.stage, stores))

    def grant_feed(self, function: lambda_.Function) -> None:
        """Let a function read the feed, with the events of every layout, and tell it where they are."""
        stores = self._stores_for(function, "Feed")
        self._grant(function, "feed", stores, allowed.feed(self.stage, stores))

    def _stores_for(self, function: lambda_.Function, what: str) -> Stores:
        if not hasattr(function, "add_environment"):
            rule = (
                "must be a function of the app: an imported one has its role and environment from elsewhere"
            )
            raise BadSetting(f"grant_{what.lower()}", rule)
        return self.stores(Construct(function, f"EpochalTo{what}{self.node.addr}"))

    def _grant(
        self, function: lambda_.Function, like: str, stores: Stores, statements: list[iam.PolicyStatement]
    ) -> None:
        for statement in statements:
            function.add_to_role_policy(statement)
        for name, value in settings_of(self.stage, stores).environment(like).items():
            function.add_environment(name, value)
