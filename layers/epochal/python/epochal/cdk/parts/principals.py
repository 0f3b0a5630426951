"""Checks of grantees, which must have an identity policy in the store's account.

A role, a user or a group gets the statements in its own policy, and so does a construct with a role: a function, a
task, a state machine. Other grantees, such as a service or another account, would need a resource policy, which Epochal
does not give to tables; CDK takes a statement for them and drops it, so that a program would be refused at run time.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import cast

from aws_cdk import Stack, Token
from aws_cdk import aws_iam as iam
from constructs import Construct, IConstruct

from epochal.cdk.rules import BadSetting

IDENTITIES = "a role, user or group of the account, or what has a role, as a function or a task"


def stack_of(grantee: iam.IGrantable, owner: Construct) -> Stack:
    """Return the stack of a grantee's construct, or the owner's stack where it has no construct."""
    for construct in (grantee, grantee.grant_principal):
        if hasattr(construct, "node"):
            return Stack.of(cast("IConstruct", construct))
    return Stack.of(owner)


def refuse_no_grantee(where: str, grantee: object) -> None:
    """Raise `BadSetting` if an object, such as a bucket, cannot be granted permissions.

    Args:
        where: name of the method, for the error.
    """
    if not hasattr(grantee, "grant_principal"):
        raise BadSetting(where, f"must be given {IDENTITIES}, not {_name(grantee)}")


def refuse_other_accounts(where: str, grantee: iam.IGrantable, owner: Construct) -> None:
    """Raise `BadSetting` if a grantee is known to be of another account than the owner.

    Args:
        where: name of the method, for the error.
        owner: construct of the store.
    """
    account = getattr(grantee.grant_principal, "principal_account", None)
    store_account = Stack.of(owner).account
    if (
        account is None
        or Token.is_unresolved(account)
        or Token.is_unresolved(store_account)
        or account == store_account
    ):
        return
    rule = (
        f"must be given {IDENTITIES}, not {_name(grantee)} of account {account}: the store is in {store_account}. "
        "Let it assume a role of the store's account, and grant that"
    )
    raise BadSetting(where, rule)


def add_statements(where: str, grantee: iam.IGrantable, statements: Iterable[iam.PolicyStatement]) -> None:
    """Add statements to a grantee's identity policy; raise `BadSetting` if it has none.

    Args:
        where: name of the method, for the error.

    Raises:
        BadSetting: the grantee has no such policy; then nothing is added.
    """
    principal = grantee.grant_principal
    for statement in statements:
        # For an imported function without a known role, CDK claims that the statement was added.
        unknown = isinstance(principal, iam.UnknownPrincipal)
        if unknown or not principal.add_to_principal_policy(statement).statement_added:
            rule = f"must be given {IDENTITIES}, not {_name(grantee)}, whose policy is not known here"
            raise BadSetting(where, rule)


def _name(grantee: object) -> str:
    """Return a grantee's name for errors: the path of its construct, or its type."""
    node = getattr(grantee, "node", None)
    return node.path if node is not None else type(grantee).__name__
