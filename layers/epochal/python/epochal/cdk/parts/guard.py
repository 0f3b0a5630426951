"""The guard of a store: a function that refuses a deployment which changes what stored events depend on.

It is deployed with the tables, and every function of the store depends on it: a refused deployment changes no function
and no output, and CloudFormation rolls back the other changes. It loads no code of the user's: a custom resource must
always answer CloudFormation, or a deployment that fails cannot be rolled back.

The type of its resource contains the store's name. CloudFormation refuses another type when it reads the template, and
so refuses another name before it makes tables of that name and deletes the tables that hold the events.
"""

from __future__ import annotations

from typing import Any, Final

from aws_cdk import Aws, CustomResource, Duration
from aws_cdk import aws_iam as iam
from constructs import Construct

from epochal.cdk.parts import iam_statements
from epochal.cdk.parts.function_settings import settings_of
from epochal.cdk.parts.functions import Function, Shared
from epochal.hosting.fixed_settings import fixed
from epochal.layout.tables import INDEX
from epochal.settings import variable

TIMEOUT: Final = Duration.minutes(1)

ANSWERED_WITHIN: Final = Duration.minutes(2)
"""Time within which the guard must answer. By default, CloudFormation waits an hour for a custom resource."""


class SettingsGuard(Construct):
    """The function `guard`, and the custom resource that calls the function.

    Attributes:
        agreed: the custom resource; constructs that depend on it change only after the guard has agreed.
    """

    def __init__(self, scope: Construct, id_: str, shared: Shared) -> None:
        """Make the Lambda function of the guard, and the custom resource that calls the function."""
        super().__init__(scope, id_)
        stage, stores = shared.stage, shared.stores
        heads = {layout.table: stores.tables[layout.port.heads.kind] for layout in stage.deployed_layouts()}
        index = stores.tables[INDEX.kind]
        environment = {variable("index_table"): index.table_name}
        environment |= {variable(name): table.table_name for name, table in heads.items()}
        if brought := stage.brought_layouts():
            environment[variable("plugins")] = ",".join(brought)
        function = Function(
            self,
            "Function",
            name="guard",
            named=False,
            description="refuses deployments that change what stored events depend on",
            shared=shared,
            timeout=TIMEOUT,
            environment=environment,
            allowed=[
                iam_statements.on_table(index, "GetItem"),
                *(iam_statements.on_table(table, "Scan") for table in heads.values()),
                iam.PolicyStatement(actions=["cloudformation:DescribeStacks"], resources=[Aws.STACK_ID]),
                *iam_statements.on_key(stores.key, write=False),
            ],
        ).function
        self.agreed: Final = CustomResource(
            self,
            "Settings",
            service_token=function.function_arn,
            resource_type=f"Custom::EpochalStore-{stage.named('')}",
            service_timeout=ANSWERED_WITHIN,
            properties={"Store": stage.named(""), "Index": index.table_name, "Layouts": _chosen(shared)},
        )


def _chosen(shared: Shared) -> dict[str, dict[str, Any]]:
    """Return each layout's partitions and the settings that stored events depend on, as text.

    CloudFormation passes only text to a custom resource unchanged.
    """
    settings = settings_of(shared.stage, shared.stores)
    return {
        layout.name: {
            "Partitions": str(settings.partitions(layout.partitions)),
            "Settings": {
                setting.name: setting.text(settings.value(setting.name)) for setting in fixed(layout)
            },
        }
        for layout in shared.stage.deployed_layouts()
    }
