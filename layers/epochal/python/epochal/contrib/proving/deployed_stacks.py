"""What is deployed, as CloudFormation has it: the stacks of a stage with their templates and their resources.

The stack of the tables is found by its output `IndexTable`. Where it is called `epochal-prod-store`, the stacks that
begin with `epochal-prod-` are of the same stage. Other stacks are found by their functions, whose environment names the
index table; those without such a function are named.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from json import loads
from typing import Any, Final

from epochal.dynamo.aws_errors import translate_errors
from epochal.hosting.function import PROCESS
from epochal.lazy_dataclasses import dataclass, field
from epochal.settings import variable

AWS: Final = "amazonaws."
"""Part of the address of every AWS service; stand-ins do not have it."""

STORE: Final = "-store"
REACTION: Final = variable("reaction")
INDEX_TABLE: Final = variable("index_table")


@dataclass(frozen=True, slots=True, kw_only=True)
class DeployedStack:
    """A stack of CloudFormation: its outputs, parameters and resources.

    Attributes:
        resources: resources of the template by logical id, each with its `Type` and `Properties`.
        physical: physical ids of the resources, which are their names in the account, by logical id.
    """

    name: str
    outputs: Mapping[str, str] = field(default_factory=dict)
    parameters: Mapping[str, str] = field(default_factory=dict)
    resources: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    physical: Mapping[str, str] = field(default_factory=dict)

    def of(self, kind: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """Yield the physical id and the template's properties of each resource of a type."""
        for logical, resource in self.resources.items():
            if resource["Type"] == kind and logical in self.physical:
                yield self.physical[logical], resource.get("Properties", {})


@dataclass(frozen=True, slots=True, kw_only=True)
class DeployedFunction:
    """A Lambda function: its configuration as deployed, and its properties in the template."""

    stack: DeployedStack
    name: str
    synthesised: Mapping[str, Any]
    deployed: Mapping[str, Any]

    @property
    def environment(self) -> Mapping[str, str]:
        """Environment variables of the function as it is deployed."""
        variables: Mapping[str, str] = self.deployed.get("Environment", {}).get("Variables", {})
        return variables

    @property
    def reaction(self) -> str:
        """Name of the reaction that the function runs; empty for none."""
        return self.environment.get(REACTION, "")

    @property
    def kind(self) -> str:
        """Kind of the function in its stage: `process`, `reaction`, or the last part of its name."""
        if PROCESS in self.environment:
            return "process"
        return "reaction" if self.reaction else self.name.rpartition("-")[2]


def stacks_of(cloudformation: Any, index_table: str, also: Sequence[str]) -> list[DeployedStack]:
    """Return the stacks of the stage with this index table, and those in `also`; empty if none has it.

    Empty where no stack has the table among its outputs.
    """
    by_name = _described(cloudformation)
    home = next((name for name, stack in by_name.items() if index_table in _outputs(stack).values()), "")
    if not home:
        return []
    stage = home.removesuffix(STORE)
    of_stage = [name for name in by_name if home.endswith(STORE) and name.startswith(f"{stage}-")]
    return [
        _stack(cloudformation, by_name[name])
        for name in dict.fromkeys([home, *of_stage, *also])
        if name in by_name
    ]


def stacks_with_functions(
    cloudformation: Any, lambda_: Any, index_table: str, stacks: Sequence[DeployedStack]
) -> Iterator[DeployedStack]:
    """Yield stacks, except those in `stacks`, with functions whose environment names this index table."""
    missing = _functions_on(lambda_, index_table).difference(*(stack.physical.values() for stack in stacks))
    names = {stack.name for stack in stacks}
    for name, described in _described(cloudformation).items() if missing else ():
        if missing and name not in names:
            physical = _physical(cloudformation, name)
            if missing.intersection(physical.values()):
                missing.difference_update(physical.values())
                yield _stack(cloudformation, described)


def _described(cloudformation: Any) -> dict[str, Mapping[str, Any]]:
    """Describe all stacks of the account and region, by name."""
    with translate_errors("DescribeStacks"):
        pages = cloudformation.get_paginator("describe_stacks").paginate()
        return {stack["StackName"]: stack for page in pages for stack in page["Stacks"]}


def _functions_on(lambda_: Any, index_table: str) -> set[str]:
    """Return the names of all functions of the account whose environment names this index table."""
    with translate_errors("ListFunctions"):
        pages = lambda_.get_paginator("list_functions").paginate()
        return {
            function["FunctionName"]
            for page in pages
            for function in page["Functions"]
            if function.get("Environment", {}).get("Variables", {}).get(INDEX_TABLE) == index_table
        }


def functions_of(stacks: Sequence[DeployedStack], client: Callable[[str], Any]) -> list[DeployedFunction]:
    """Return Epochal's own Lambda functions in these stacks: those that have a service name set."""
    functions = list[DeployedFunction]()
    for stack in stacks:
        lambda_ = client("lambda")
        for name, properties in stack.of("AWS::Lambda::Function"):
            with translate_errors("GetFunctionConfiguration"):
                deployed = lambda_.get_function_configuration(FunctionName=name)
            function = DeployedFunction(stack=stack, name=name, synthesised=properties, deployed=deployed)
            if "POWERTOOLS_SERVICE_NAME" in properties.get("Environment", {}).get("Variables", {}):
                functions.append(function)
    return functions


def resolved(value: Any, stack: DeployedStack) -> str | None:
    """Resolve a value of a template to text; None where the template and the stack do not suffice."""
    match value:
        case str() | int() | float():
            return str(value)
        case {"Ref": name}:
            return stack.physical.get(name, stack.parameters.get(name))
        case {"Fn::Join": [between, parts]}:
            texts = [resolved(part, stack) for part in parts]
            return None if None in texts else between.join(texts)
        case _:
            return None


def _stack(cloudformation: Any, described: Mapping[str, Any]) -> DeployedStack:
    """Read the template and the resources of a described stack from CloudFormation."""
    name = described["StackName"]
    with translate_errors("GetTemplate"):
        body = cloudformation.get_template(StackName=name)["TemplateBody"]
    template = loads(body) if isinstance(body, str) else body
    return DeployedStack(
        name=name,
        outputs=_outputs(described),
        parameters={
            entry["ParameterKey"]: entry["ParameterValue"] for entry in described.get("Parameters", ())
        },
        resources=template.get("Resources", {}),
        physical=_physical(cloudformation, name),
    )


def _physical(cloudformation: Any, stack: str) -> dict[str, str]:
    """Read the physical ids of a stack's resources, by logical id."""
    with translate_errors("ListStackResources"):
        pages = cloudformation.get_paginator("list_stack_resources").paginate(StackName=stack)
        return {
            entry["LogicalResourceId"]: entry["PhysicalResourceId"]
            for page in pages
            for entry in page["StackResourceSummaries"]
            if entry.get("PhysicalResourceId")
        }


def _outputs(described: Mapping[str, Any]) -> dict[str, str]:
    return {output["OutputKey"]: output["OutputValue"] for output in described.get("Outputs", ())}
