"""A store is used in its own account and region: what would look for it elsewhere is refused before it is deployed.

Names say nothing of an account, so a function in another one would look for tables of its own account by those names,
and find none, or another store's. What a stack does not say is not compared.
"""

from __future__ import annotations

from aws_cdk import Stack, Token
from constructs import Construct

from epochal.cdk.stages import BadSetting, Stage

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
