"""What must outlive everything else: tables, and the bucket of large bodies and projection states.

Its own stack, because it is the only one that holds data: the others can be deleted and deployed again, and
this one refuses to go in production.
"""

from __future__ import annotations

from typing import Any, Final

from aws_cdk import CfnResource, CfnWaitConditionHandle, Stack
from aws_cdk import aws_ssm as ssm
from constructs import Construct

from epochal.cdk.parts.storage import Storage, stream_of
from epochal.cdk.stages import Stage


class StoreStack(Stack):
    """The tables of every layout, the index, and the bucket."""

    def __init__(self, scope: Construct, id_: str, *, stage: Stage, **stack: Any) -> None:
        super().__init__(scope, id_, **stack)
        self.storage: Final = Storage(self, stage=stage)
        self._tell_streams(stage)
        self._exist()

    def _tell_streams(self, stage: Stage) -> None:
        """To the stack that follows them; of a table that is taken over, the setting says it."""
        for kind, arn in self.storage.streams.items():
            if not stage.existing(kind):
                ssm.StringParameter(
                    self,
                    f"Stream-{kind}",
                    parameter_name=stream_of(stage, kind),
                    string_value=arn,
                    description=f"Epochal: the stream of {stage.named(kind)}",
                )

    def _exist(self) -> None:
        """Where everything is taken over, make what costs and does nothing.

        A stack without resources is not deployed, or deleted where it was, and with it go the outputs.
        """
        if not any(CfnResource.is_cfn_resource(each) for each in self.node.find_all()):
            CfnWaitConditionHandle(self, "Nothing")
