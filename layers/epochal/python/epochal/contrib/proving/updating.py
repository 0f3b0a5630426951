"""The check that a setting is changed on a deployed stage, and changed back, while appends go on."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from copy import deepcopy
from typing import Any, Final

from epochal.contrib.proving.deployed_stacks import DeployedFunction, functions_of
from epochal.contrib.proving.proof import Broken, ProofRun, Unproven, trial
from epochal.contrib.proving.store import stream_writer
from epochal.contrib.proving.writers import KIND
from epochal.dynamo.aws_errors import translate_errors
from epochal.model.events import Event
from epochal.model.expected_version import ANY

SETTING: Final = "POWERTOOLS_LOG_LEVEL"
FUNCTION: Final = "indexer"

UPDATE_SECONDS: Final = 240.0
"""Seconds for CloudFormation to change the setting of a function: usually one minute is enough."""

TEMPLATE_BYTES: Final = 51_200
"""Bytes of a template that CloudFormation takes in a request; a larger one has to be in a bucket."""

ROOM: Final = 10
"""Bytes that another value of the setting may add to a template."""

CAPABILITIES: Final = ("CAPABILITY_IAM", "CAPABILITY_NAMED_IAM", "CAPABILITY_AUTO_EXPAND")


@trial("a stack update changes a setting, another changes it back, and appends continue meanwhile", 0.001)
def changed_setting(proof: ProofRun) -> str:
    """Change a function's log level by updating its stack, and change it back, appending meanwhile.

    Raises:
        Broken: an update fails, the function does not get the setting, or an append is lost.
        Unproven: updates are not allowed, or every template is too large for a request.
    """
    if not proof.updates:
        raise Unproven("this check updates a stack: allow it with --update")
    function, before = _updatable(proof)
    value = "INFO" if function.environment.get(SETTING) == "DEBUG" else "DEBUG"
    after = _having(before, function, value)
    writer, appended = stream_writer(proof, "update"), list[int]()
    proof.removals.append(writer.remove)
    original, began, changed = function.environment[SETTING], proof.clock(), [True]

    def remove() -> str:
        """Change the setting back if that has not been done; return in words what stays."""
        try:
            if changed and _settled(proof, function, lambda: None) and _value(proof, function) != original:
                _update(proof, function, before, original, lambda: None)
        except Broken as broken:
            return f"{SETTING} of {function.name}, which was {original}: {broken}"
        return f"updates of the stack {function.stack.name}"

    def append() -> None:
        """Append one event to the stream of this check."""
        appended.append(len(appended))
        writer.store.append(writer.stream, [Event.json(KIND, {"n": appended[-1]})], expected=ANY)

    proof.removals.append(remove)
    _update(proof, function, after, value, append)
    _update(proof, function, before, original, append)
    changed.clear()
    if writer.read() != appended:
        raise Broken(
            f"{len(writer.read())} of {len(appended)} events appended during the updates were read back"
        )
    return f"{SETTING} of {function.name} to {value} and back, in {proof.clock() - began:.0f} s"


def _updatable(proof: ProofRun) -> tuple[DeployedFunction, dict[str, Any]]:
    """Return a function, if possible the indexer, and its stack's template; raise `Unproven` without one.

    The template fits a request.

    Raises:
        Unproven: no function is known, or the templates of all are too large.
    """
    functions = sorted(
        functions_of(proof.stacks, proof.client), key=lambda function: function.kind != FUNCTION
    )
    if not functions:
        raise Unproven("no stack with a function is known")
    templates = dict[str, dict[str, Any]]()
    for function in functions:
        name = function.stack.name
        if name not in templates:
            templates[name] = _template(proof, name)
        if len(_text(templates[name])) <= TEMPLATE_BYTES - ROOM:
            return function, templates[name]
    names = ", ".join(templates)
    raise Unproven(
        f"the templates of {names} have more than {TEMPLATE_BYTES:,} bytes, so an update needs a bucket"
    )


def _template(proof: ProofRun, stack: str) -> dict[str, Any]:
    """Return the template of a stack, as it was deployed."""
    with translate_errors("GetTemplate"):
        body = proof.client("cloudformation").get_template(StackName=stack)["TemplateBody"]
    template: dict[str, Any] = json.loads(body) if isinstance(body, str) else body
    return template


def _having(template: Mapping[str, Any], function: DeployedFunction, value: str) -> dict[str, Any]:
    """Return a template in which a function has another value of the setting."""
    changed = deepcopy(dict(template))
    ids = [id_ for id_, name in function.stack.physical.items() if name == function.name]
    (logical,) = (id_ for id_ in ids if changed["Resources"][id_]["Type"] == "AWS::Lambda::Function")
    changed["Resources"][logical]["Properties"]["Environment"]["Variables"][SETTING] = value
    return changed


def _update(
    proof: ProofRun,
    function: DeployedFunction,
    template: Mapping[str, Any],
    value: str,
    meanwhile: Callable[[], None],
) -> None:
    """Update a function's stack to a template; raise `Broken` unless the function has `value` afterwards.

    Args:
        meanwhile: function that is called at every look at the stack.

    Raises:
        Broken: the update fails, or the function has another value afterwards.
    """
    cloudformation, stack = proof.client("cloudformation"), function.stack
    with translate_errors("UpdateStack"):
        cloudformation.update_stack(
            StackName=stack.name,
            TemplateBody=_text(template),
            Parameters=[{"ParameterKey": name, "UsePreviousValue": True} for name in stack.parameters],
            Capabilities=[*CAPABILITIES],
        )
    status = _settled(proof, function, meanwhile)
    if status != "UPDATE_COMPLETE":
        raise Broken(f"the update of {stack.name} ended in {status}: see its events in CloudFormation")
    if (current := _value(proof, function)) != value:
        raise Broken(f"{function.name} has {SETTING} {current!r} after the update, not {value!r}")


def _settled(proof: ProofRun, function: DeployedFunction, meanwhile: Callable[[], None]) -> str:
    """Wait, calling `meanwhile`, until a stack's update ends or `UPDATE_SECONDS` pass; return its status.

    Args:
        meanwhile: function that is called at every look at the stack.
    """
    cloudformation, status = proof.client("cloudformation"), [""]

    def ended() -> bool:
        """Call `meanwhile`, and return whether no update is in progress."""
        meanwhile()
        with translate_errors("DescribeStacks"):
            (described,) = cloudformation.describe_stacks(StackName=function.stack.name)["Stacks"]
        status[0] = described["StackStatus"]
        return not status[0].endswith("_IN_PROGRESS")

    proof.until(ended, UPDATE_SECONDS, every=2.0)
    return status[0]


def _value(proof: ProofRun, function: DeployedFunction) -> str | None:
    """Return the setting's value of a function as it is deployed now."""
    with translate_errors("GetFunctionConfiguration"):
        deployed = proof.client("lambda").get_function_configuration(FunctionName=function.name)
    value: str | None = deployed["Environment"]["Variables"].get(SETTING)
    return value


def _text(template: Mapping[str, Any]) -> str:
    """Return a template as JSON without spaces."""
    return json.dumps(template, separators=(",", ":"))
