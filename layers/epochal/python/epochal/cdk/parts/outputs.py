"""Outputs, by which those who know a stack's name alone find what it holds: commands, clients, the local deployment."""

from __future__ import annotations

from aws_cdk import CfnOutput, Stack
from constructs import Construct


def output(scope: Construct, name: str, value: str, description: str, *, of: str = "") -> CfnOutput:
    """An output of the stack around `scope` that is called `name`, however deep `scope` is; `of` comes before it."""
    made = CfnOutput(scope, name, value=value, description=description)
    made.override_logical_id(of + name)
    return made


def whose(scope: Construct, name: str) -> str:
    """What comes before the outputs of a store called `name`: nothing for the first one of a stack."""
    stack = Stack.of(scope)
    if stack.node.try_find_child(_FIRST) is None:
        Construct(stack, _FIRST)
        return ""
    return "".join(each for each in name if each.isalnum())


_FIRST = "EpochalOutputs"
"""Marks a stack whose outputs without a name before them are taken."""
