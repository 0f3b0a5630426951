"""Outputs, by which those who know a stack's name alone find what it holds: commands, clients, the local deployment."""

from __future__ import annotations

from aws_cdk import CfnOutput
from constructs import Construct


def output(scope: Construct, name: str, value: str, description: str) -> CfnOutput:
    """An output of the stack around `scope` that is called `name`, however deep `scope` is."""
    made = CfnOutput(scope, name, value=value, description=description)
    made.override_logical_id(name)
    return made
