"""A store that an app has or finds: what reactions, functions and programs beside it need to know of it.

A construct in the store's own stack refers to its tables. One in another stack finds them by their names, which are the
same whenever they are told: no stack exports anything, so none holds up a change of another.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from aws_cdk import ArnFormat, Stack, Token
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from epochal.cdk.parts import grants
from epochal.cdk.parts.functions import Code, Layers, settings_of
from epochal.cdk.parts.grants import on_key, on_table
from epochal.cdk.parts.storage import keyed_table
from epochal.cdk.parts.stores import Stores, topic_of
from epochal.cdk.sources import known_python
from epochal.cdk.stages import BadSetting, Stage
from epochal.layout.subjects import FORGET_LOG, SUBJECT_KEYS

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
        self._grant(function, "append", stores, grants.append(self.stage, stores))

    def grant_read(self, function: lambda_.Function) -> None:
        """Let a function read streams, and tell it where they are."""
        stores = self._stores_for(function, "Read")
        self._grant(function, "replay", stores, grants.replay(self.stage, stores))

    def grant_feed(self, function: lambda_.Function) -> None:
        """Let a function read the feed, with the events of every layout, and tell it where they are."""
        stores = self._stores_for(function, "Feed")
        self._grant(function, "feed", stores, grants.feed(self.stage, stores))

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


# A store is used in its own account and region: what would look for it elsewhere is refused before it is deployed.
#
# Names say nothing of an account, so a function in another one would look for tables of its own account by those
# names, and find none, or another store's. What a stack does not say is not compared.

INSTEAD = (
    "publish its events to the other account, or let the function there assume a role of the store's account"
)


def refuse_elsewhere(store: Construct, scope: Construct) -> None:
    """Raise `BadSetting` where what is in `scope` is deployed to another account or region than `store`."""
    there, here = Stack.of(store), Stack.of(scope)
    for what, its, own in (("account", there.account, here.account), ("region", there.region, here.region)):
        if _differ(its, own):
            rule = (
                f"is in {what} {its}, and {scope.node.path} in {own}: a store is used where it is; {INSTEAD}"
            )
            raise BadSetting(f"store {store.node.path}", rule)


def refuse_tables_elsewhere(scope: Construct, stage: Stage) -> None:
    """Raise `BadSetting` where a table that is taken over is in another account or region than the stack's."""
    stack = Stack.of(scope)
    for kind, arn in stage.existing_tables.items():
        _, _, _, region, account, *_ = arn.split(":")
        for what, its, own in (("account", account, stack.account), ("region", region, stack.region)):
            if _differ(its, own):
                rule = f"must be in {what} {own}, where the stack goes, not in {its}: functions know it by its name"
                raise BadSetting(f"existing_{kind.replace('-', '_')}", rule)


def _differ(one: str, other: str) -> bool:
    return one != other and not Token.is_unresolved(one) and not Token.is_unresolved(other)


# Keys of subjects, and the log of who was forgotten: two tables for applications that seal what is personal.
#
# The first must not come back: whatever the stage says of its other tables, no moment of this one can be restored.
# The second has no keys in it, and may. Neither is the deployment's own, whose functions pass sealed bodies through.


class SubjectKeys(Construct):
    """Both tables, kept and protected as the other tables of a store are."""

    def __init__(self, scope: Construct, id_: str, *, store: Store) -> None:
        """Add them to a stack.

        Args:
            scope: the stack, or a construct in it.
            id_: the construct's.
            store: whose subjects they are of; they are called after it.
        """
        super().__init__(scope, id_)
        stage = store.stage
        self._key: Final = kms.Key.from_key_arn(self, "Key", stage.kms_key) if stage.kms_key else None
        for_ever = replace(stage, recovery_days=0)
        self.keys: Final = keyed_table(self, "Keys", spec=SUBJECT_KEYS, stage=for_ever, key=self._key)
        self.log: Final = keyed_table(self, "ForgetLog", spec=FORGET_LOG, stage=stage, key=self._key)

    def grant_sealing(self, grantee: iam.IGrantable) -> None:
        """Allow to seal and to unseal, but for what is forgotten."""
        self._grant(grantee, on_table(self.log, "GetItem"))

    def grant_forgetting(self, grantee: iam.IGrantable) -> None:
        """Allow to forget, and to forget again after a restore."""
        self._grant(grantee, on_table(self.log, "GetItem", "PutItem", "Scan"))

    def _grant(self, grantee: iam.IGrantable, log: iam.PolicyStatement) -> None:
        keys = on_table(self.keys, "GetItem", "PutItem")
        for statement in (keys, log, *on_key(self._key, write=True)):
            grantee.grant_principal.add_to_principal_policy(statement)
