"""A store is used in its own account and region: a construct elsewhere is refused before it is deployed.

Names do not include the account, so a function in another account would look for tables of its own account by those
names, and find none, or another store's. An account or region that a stack leaves open is not compared.
"""

from __future__ import annotations

from collections.abc import Iterator

from aws_cdk import Stack, Token
from constructs import Construct

from epochal.cdk.rules import BadSetting
from epochal.cdk.stages import Stage

INSTEAD = (
    "publish its events to the other account, or let the function there assume a role of the store's account"
)


def refuse_elsewhere(store: Construct, scope: Construct) -> None:
    """Raise `BadSetting` if `scope` is deployed to another account or region than `store`."""
    store_stack = Stack.of(store)
    for what, its, actual in _differing(Stack.of(scope), store_stack.account, store_stack.region):
        rule = (
            f"is in {what} {its}, and {scope.node.path} in {actual}: "
            f"a store can only be used in its own account and region; {INSTEAD}"
        )
        raise BadSetting(f"store {store.node.path}", rule)


def refuse_tables_elsewhere(scope: Construct, stage: Stage) -> None:
    """Raise `BadSetting` if an existing table is in another account or region than the stack."""
    for kind, arn in stage.existing_tables.items():
        _, _, _, region, account, *_ = arn.split(":")
        for what, its, actual in _differing(Stack.of(scope), account, region):
            rule = (
                f"must be in {what} {actual}, where the stack is deployed, not in {its}: "
                "functions find the table by its name alone"
            )
            raise BadSetting(f"existing_{kind.replace('-', '_')}", rule)


def _differing(stack: Stack, account: str, region: str) -> Iterator[tuple[str, str, str]]:
    """Yield `account` and `region` where a place and a stack differ, with both values."""
    for what, its, actual in (("account", account, stack.account), ("region", region, stack.region)):
        if its != actual and not Token.is_unresolved(its) and not Token.is_unresolved(actual):
            yield what, its, actual
