"""What is deployed, as CloudFormation has it: the stacks of a stage with their templates, and what those made.

The stack of the tables is found by its output `IndexTable`. Where it is called `epochal-prod-store`, the stacks that
begin with `epochal-prod-` are of the same stage; others are named.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, Final

from epochal.dynamo.aws_errors import Codes, translated
from epochal.hosting.services import CLOUDWATCH, LAMBDA
from epochal.settings import variable

AWS: Final = "amazonaws."
"""In the address of each of its services."""

STORE: Final = "-store"
REACTION: Final = variable("reaction")

_CODES: Final = Codes(denied=CLOUDWATCH.denied | LAMBDA.denied, busy=CLOUDWATCH.busy | LAMBDA.busy)


def asking(action: str) -> AbstractContextManager[None]:
    """Errors of whichever service is asked, as what they mean."""
    return translated(action, codes=_CODES)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeployedStack:
    """A stack.

    Attributes:
        resources: the properties of each in the template, by logical id, with its type as `Type`.
        physical: what each is called in the account.
    """

    name: str
    outputs: Mapping[str, str] = field(default_factory=dict)
    parameters: Mapping[str, str] = field(default_factory=dict)
    resources: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    physical: Mapping[str, str] = field(default_factory=dict)

    def of(self, kind: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """Names in the account and properties of the resources of a type."""
        for logical, each in self.resources.items():
            if each["Type"] == kind and logical in self.physical:
                yield self.physical[logical], each.get("Properties", {})


@dataclass(frozen=True, slots=True, kw_only=True)
class DeployedFunction:
    """A function as it is deployed, and as its template has it."""

    stack: DeployedStack
    name: str
    synthesised: Mapping[str, Any]
    deployed: Mapping[str, Any]

    @property
    def environment(self) -> Mapping[str, str]:
        """As it is deployed."""
        found: Mapping[str, str] = self.deployed.get("Environment", {}).get("Variables", {})
        return found

    @property
    def reaction(self) -> str:
        """The reaction that it runs; empty for none."""
        return self.environment.get(REACTION, "")

    @property
    def kind(self) -> str:
        """What it is called within its stage, all reactions alike."""
        return "reaction" if self.reaction else self.name.rpartition("-")[2]


def stacks_of(cloudformation: Any, index_table: str, also: Sequence[str]) -> list[DeployedStack]:
    """The stacks of the stage whose index this is, and those that are named besides; none where no stack holds it."""
    with asking("DescribeStacks"):
        pages = cloudformation.get_paginator("describe_stacks").paginate()
        found = {each["StackName"]: each for page in pages for each in page["Stacks"]}
    home = next((name for name, each in found.items() if index_table in _outputs(each).values()), "")
    if not home:
        return []
    stage = home.removesuffix(STORE)
    of_stage = [name for name in found if home.endswith(STORE) and name.startswith(f"{stage}-")]
    return [
        _stack(cloudformation, found[name])
        for name in dict.fromkeys([home, *of_stage, *also])
        if name in found
    ]


def functions_of(stacks: Sequence[DeployedStack], client: Callable[[str], Any]) -> list[DeployedFunction]:
    """The functions of stacks that are Epochal's: they have a service's name."""
    found = list[DeployedFunction]()
    for stack in stacks:
        lambda_ = client("lambda")
        for name, properties in stack.of("AWS::Lambda::Function"):
            with asking("GetFunctionConfiguration"):
                deployed = lambda_.get_function_configuration(FunctionName=name)
            each = DeployedFunction(stack=stack, name=name, synthesised=properties, deployed=deployed)
            if "POWERTOOLS_SERVICE_NAME" in properties.get("Environment", {}).get("Variables", {}):
                found.append(each)
    return found


def resolved(value: Any, stack: DeployedStack) -> str | None:
    """What a value of a template stands for; None where the template and the stack alone do not tell."""
    match value:
        case str() | int() | float():
            return str(value)
        case {"Ref": name}:
            return stack.physical.get(name, stack.parameters.get(name))
        case {"Fn::Join": [between, parts]}:
            texts = [resolved(each, stack) for each in parts]
            return None if None in texts else between.join(texts)
        case _:
            return None


def _stack(cloudformation: Any, described: Mapping[str, Any]) -> DeployedStack:
    name = described["StackName"]
    with asking("GetTemplate"):
        body = cloudformation.get_template(StackName=name)["TemplateBody"]
    with asking("ListStackResources"):
        pages = cloudformation.get_paginator("list_stack_resources").paginate(StackName=name)
        made = [each for page in pages for each in page["StackResourceSummaries"]]
    template = json.loads(body) if isinstance(body, str) else body
    return DeployedStack(
        name=name,
        outputs=_outputs(described),
        parameters={each["ParameterKey"]: each["ParameterValue"] for each in described.get("Parameters", ())},
        resources=template.get("Resources", {}),
        physical={
            each["LogicalResourceId"]: each["PhysicalResourceId"]
            for each in made
            if each.get("PhysicalResourceId")
        },
    )


def _outputs(described: Mapping[str, Any]) -> dict[str, str]:
    return {each["OutputKey"]: each["OutputValue"] for each in described.get("Outputs", ())}
