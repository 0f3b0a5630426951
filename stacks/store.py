"""What must outlive everything else: tables, and the bucket of large bodies and projection states.

Its own stack, because it is the only one that holds data: the others can be deleted and deployed again, and
this one refuses to go in production.
"""

from __future__ import annotations

from typing import Any, Final

from aws_cdk import Stack
from aws_cdk import aws_ssm as ssm
from constructs import Construct

from epochal.cdk.parts.functions import Code, Layers, Shared
from epochal.cdk.parts.guard import SettingsGuard
from epochal.cdk.parts.resource_names import stream_of
from epochal.cdk.parts.storage import Storage
from epochal.cdk.stages import Stage


class StoreStack(Stack):
    """The tables of every layout, the index, the bucket, and the guard of what they depend on."""

    def __init__(self, scope: Construct, id_: str, *, stage: Stage, code: Code, **stack: Any) -> None:
        super().__init__(scope, id_, **stack)
        self.storage: Final = Storage(self, stage=stage)
        self._tell_streams(stage)
        layers = Layers(self, "Layers", code=code)
        SettingsGuard(
            self, "Guard", Shared(stage=stage, stores=self.storage.stores, code=code, layers=layers)
        )

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
