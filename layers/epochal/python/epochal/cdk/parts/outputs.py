"""Outputs of stacks, by which commands, clients and the local deployment find resources by the stack's name alone."""

from __future__ import annotations

from aws_cdk import CfnOutput, Stack
from constructs import Construct


def output(scope: Construct, name: str, value: str, description: str, *, group: str = "") -> CfnOutput:
    """Make an output of the stack of `scope` whose logical id is the prefix `group` and `name`.

    Args:
        group: prefix of the output's name.
    """
    resource = CfnOutput(scope, name, value=value, description=description)
    resource.override_logical_id(group + name)
    return resource


def claim_output_prefix(scope: Construct, name: str) -> str:
    """Return a prefix for a store's outputs: empty on a stack's first call, which is noted, else its id.

    Args:
        name: id of the store's construct.
    """
    stack = Stack.of(scope)
    if stack.node.try_find_child(_FIRST) is None:
        Construct(stack, _FIRST)
        return ""
    return "".join(character for character in name if character.isalnum())


_FIRST = "EpochalOutputs"
"""Id of the construct that marks a stack whose outputs without a prefix are taken."""
