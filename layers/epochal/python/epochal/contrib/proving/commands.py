"""`prove`: Epochal's promises, tried on a deployed stage in one's own account; and what of it the account
alone shows: event source mappings, settings, loops, roles, alarms.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

import click

from epochal import extensions
from epochal.cli import inputs, output
from epochal.cli.target import OpenedStore, on_store
from epochal.contrib.proving.deployed_stacks import (
    AWS,
    DeployedFunction,
    DeployedStack,
    functions_of,
    resolved,
    stacks_of,
    stacks_with_functions,
)
from epochal.contrib.proving.proof import Broken, ProofReport, ProofRun, Result, Trial, Unproven, trial
from epochal.contrib.proving.proof import prove as tried
from epochal.contrib.proving.signed_http import SignedHttp
from epochal.contrib.proving.store import quarantine, store_checks
from epochal.contrib.proving.updating import changed_setting
from epochal.dynamo.aws_errors import translate_errors
from epochal.dynamo.clients import credentials
from epochal.errors import InvalidInput, Unavailable
from epochal.hosting.services import Metric, measuring
from epochal.http.routes import operations
from epochal.layout.registry import layouts_in
from epochal.plugins import NATIVE
from epochal.settings import Settings, setting_of_variable

METRICS_SECONDS: Final = 180.0
"""Seconds to wait for metrics: CloudWatch has a function's metric some two minutes later."""

SINCE_SECONDS: Final = 3_600

ALARMS_AT_ONCE: Final = 50
"""Alarms in one answer of CloudWatch, at most, however many are named."""

UNKNOWN: Final = "INSUFFICIENT_DATA"
"""State of an alarm that has not been evaluated: Epochal's alarms count missing data as good."""

WOKEN: Final = ("indexer",)
SERVING: Final = ("append", "replay", "feed")
"""Functions that a proof runs: those of `WOKEN` always, these where it knows the API."""

ITEMS: Final = ("GetItem", "BatchGetItem", "Query", "Scan", "PutItem", "UpdateItem", "DeleteItem")
ON_TABLES: Final = [f"dynamodb:{action}" for action in (*ITEMS, "DeleteTable", "UpdateTable", "CreateBackup")]
NOWHERE: Final = ("iam:PassRole", "lambda:UpdateFunctionCode", "lambda:InvokeFunction", "s3:ListAllMyBuckets")
"""Actions that no function may do on any resource."""

BODIES: Final = "bodies/"
OBJECTS: Final = ("GetObject", "PutObject", "DeleteObject")
ON_OBJECTS: Final[Mapping[str, Sequence[str]]] = {
    "append": ("GetObject", "PutObject"),
    "replay": ("GetObject",),
    "feed": ("GetObject",),
    "indexer": (),
    "auditor": (),
    "reaction": ("GetObject",),
    "process": ("GetObject", "PutObject"),
    "timers": ("GetObject", "PutObject"),
}
"""S3 actions that each function does on large bodies."""

_OF_HEADS: Final = ("GetItem", "Query", "BatchGetItem", "PutItem", "UpdateItem")
ON_INDEX: Final[Mapping[str, Sequence[str]]] = {
    "append": (),
    "replay": (),
    "feed": (*_OF_HEADS, "DeleteItem"),  # it pauses, resets and deletes groups
    "indexer": _OF_HEADS,
    "auditor": _OF_HEADS,
    "reaction": (*_OF_HEADS, "DeleteItem"),
    "process": (*_OF_HEADS, "DeleteItem"),
    "timers": (),
}
"""DynamoDB actions that each function does on items of the index; layouts declare those on other tables."""


@trial("every event source mapping is enabled, and its last batch went well")
def mappings(proof: ProofRun) -> str:
    """Return a count of event source mappings; raise `Broken` if one is off or its last batch failed."""
    lambda_, wrong, count = proof.client("lambda"), list[str](), 0
    for stack in proof.stacks:
        for name, _ in stack.of("AWS::Lambda::EventSourceMapping"):
            with translate_errors("GetEventSourceMapping"):
                mapping = lambda_.get_event_source_mapping(UUID=name)
            count += 1
            source = mapping.get("EventSourceArn", "").rpartition(":")[2]
            if mapping.get("State") != "Enabled":
                wrong.append(f"{source} is {mapping.get('State')}")
            if "PROBLEM" in (last := str(mapping.get("LastProcessingResult", ""))):
                wrong.append(f"{source}: {last}")
    return _judged(wrong, count, "mappings are enabled")


@trial("functions have the settings from their templates and from the outputs of the tables' stack")
def settings(proof: ProofRun) -> str:
    """Check deployed functions against templates and stack outputs; raise `Broken` at a difference.

    The outputs are those of the stack of the tables.
    """
    stage_settings = proof.store.settings
    wrong, count = list[str](), 0
    for function in functions_of(proof.stacks, proof.client):
        count += 1
        wrong += [f"{function.name}: {what}" for what in _differs_from_template(function)]
        for name, value in function.environment.items():
            setting = setting_of_variable(name)
            if (
                setting is None
                or not setting.output
                or not (text := setting.text(stage_settings.value(setting.name)))
            ):
                continue
            if value != text:
                wrong.append(
                    f"{function.name}: {name} is {value}, but the output of the tables' stack is {text}"
                )
    return _judged(wrong, count, "functions match their templates")


def _differs_from_template(function: DeployedFunction) -> Iterator[str]:
    """Yield in words each variable, timeout, memory, handler or runtime that differs from the template."""
    variables = function.synthesised.get("Environment", {}).get("Variables", {})
    for name in sorted({*variables, *function.environment}):
        value = resolved(variables[name], function.stack) if name in variables else ""
        if value is not None and value != function.environment.get(name, ""):
            yield f"{name} is {function.environment.get(name)!r}, but {value!r} in the template"
    for name in ("Timeout", "MemorySize", "Handler", "Runtime"):
        if name in function.synthesised and function.synthesised[name] != function.deployed.get(name):
            yield f"{name} is {function.deployed.get(name)}, but {function.synthesised[name]} in the template"


@trial("Lambda lets reactions wake themselves up")
def loops(proof: ProofRun) -> str:
    """Return a count of reactions; raise `Broken` unless Lambda's recursion setting is `Allow` for each.

    A long catch-up is a chain of calls and no endless loop; Lambda would end it after some 16 calls.

    Raises:
        Unproven: the stage has no reaction.
    """
    lambda_, wrong, count = proof.client("lambda"), list[str](), 0
    for function in functions_of(proof.stacks, proof.client):
        if not function.reaction:
            continue
        with translate_errors("GetFunctionRecursionConfig"):
            detection = lambda_.get_function_recursion_config(FunctionName=function.name)["RecursiveLoop"]
        count += 1
        if detection != "Allow":
            wrong.append(
                f"{function.name} has RecursiveLoop: {detection}, so Lambda stops its catch-ups after about "
                "16 invocations"
            )
    if not count:
        raise Unproven("the stage has no reaction")
    return _judged(wrong, count, "reactions may wake themselves up")


@trial("each function has exactly the permissions on tables and bodies that its code needs")
def roles(proof: ProofRun) -> str:
    """Simulate each function's IAM role; raise `Broken` unless it allows what its code does, and no more.

    A role must allow what the function's code does, and nothing more.
    """
    iam, wrong, count = proof.client("iam"), list[str](), 0
    functions = list(functions_of(proof.stacks, proof.client))
    chosen = settings_of_stage(proof.store.settings, functions)
    for function in functions:
        for arn, actions, does in _resources(chosen, function):
            may, unsure = _allowed(iam, function.deployed["Role"], arn, actions, proof)
            count += 1
            wrong += [
                f"{function.name} may {action} on {arn}, but never does" for action in sorted(may - does)
            ]
            lacks = sorted(does - may - unsure)
            wrong += [f"{function.name} may not {action} on {arn}, but needs to" for action in lacks]
    return _judged(
        wrong, count, "pairs of a role and a resource have the right permissions, as simulated by IAM"
    )


def settings_of_stage(outputs: Settings, functions: Iterable[DeployedFunction]) -> Settings:
    """Return the settings from stack outputs, completed with those from variables of functions.

    What a function may do depends on both: some settings, such as `keep`, are only in variables. No function has all
    variables, so those of all functions are put together.
    """
    chosen = outputs
    for function in functions:
        for variable, text in function.environment.items():
            setting = setting_of_variable(variable)
            if setting is not None:
                chosen = chosen.having(**{setting.name: setting.parse(text, variable)})
    return chosen


def _resources(
    settings: Settings, function: DeployedFunction
) -> Iterator[tuple[str, Sequence[str], set[str]]]:
    """Yield for a function each resource to simulate: ARN, actions to ask about, actions it needs."""
    _, partition, _, region, account, *_ = function.deployed["FunctionArn"].split(":")
    for kind, table in {**settings.tables, "index": settings.index_table}.items():
        does = _does(settings, function.kind, kind)
        if does is not None and table:
            yield f"arn:{partition}:dynamodb:{region}:{account}:table/{table}", ON_TABLES, does
    if function.kind in ON_OBJECTS and settings.bucket:
        objects = f"arn:{partition}:s3:::{settings.bucket}/{BODIES}proof"
        yield (
            objects,
            [f"s3:{action}" for action in OBJECTS],
            {f"s3:{it}" for it in ON_OBJECTS[function.kind]},
        )
    if function.kind in ON_INDEX and not function.reaction:  # what else a reaction may do, its stage declares
        yield "*", NOWHERE, set()


def _does(settings: Settings, function: str, kind: str) -> set[str] | None:
    """Return the DynamoDB actions that a function's code does on a table, as declared; None if unknown.

    Args:
        settings: the settings of the stage.
        function: kind of the function, as `append`.
        kind: kind of the table, as `index`.
    """
    if function not in ON_INDEX:
        return None
    if kind == "index":
        return {f"dynamodb:{action}" for action in ON_INDEX[function]}
    layouts = layouts_in(settings)
    if all(kind != spec.kind for layout in layouts for spec in layout.port.tables):
        return None
    return {
        f"dynamodb:{action}"
        for layout in layouts
        for twin in _alike(function, layout.name)
        for access in layout.port.access(settings).get(twin, ())
        if access.table.kind == kind and not access.index
        for action in access.actions
        if action in ITEMS
    }


def _alike(function: str, layout: str) -> Sequence[str]:
    """Return a function's own kind; for `process`, the kinds whose accesses to a layout it has.

    A function of a process is a reaction that appends to streams.
    """
    if function != "process":
        return (function,)
    return ("reaction", "append") if layout == NATIVE else ("reaction",)


def _allowed(
    iam: Any, role: str, arn: str, actions: Sequence[str], proof: ProofRun
) -> tuple[set[str], set[str]]:
    """Return the actions that IAM allows a role on a resource, and those that depend on conditions.

    Conditions, for example on keys, depend on values of a request, which a simulation does not have. A throttled
    simulation is repeated up to four times.

    Raises:
        Unproven: the simulation stays throttled.
    """
    request = {"PolicySourceArn": role, "ActionNames": [*actions], "ResourceArns": [arn]}
    for tries in range(5):
        try:
            with translate_errors("SimulatePrincipalPolicy"):
                results = iam.simulate_principal_policy(**request)["EvaluationResults"]
        except Unavailable:  # it takes a few requests a second
            proof.sleep(2.0**tries)
            continue
        may = {result["EvalActionName"] for result in results if result["EvalDecision"] == "allowed"}
        return may, {result["EvalActionName"] for result in results if result.get("MissingContextValues")}
    raise Unproven("SimulatePrincipalPolicy is throttled")


@trial("every alarm is OK, and the alarms on functions that ran have data", dollars=0.02)
def alarms(proof: ProofRun) -> str:
    """Wait until all alarms are OK, and those on functions that ran have data; else raise `Broken`.

    Waits up to `METRICS_SECONDS` for the metrics.

    Raises:
        Unproven: the stacks have no alarms, or nothing evaluates them as CloudWatch does.
    """
    names = [name for stack in proof.stacks for name, _ in stack.of("AWS::CloudWatch::Alarm")]
    if not names:
        raise Unproven("the stacks have no alarms")
    cloudwatch = proof.client("cloudwatch")
    if AWS not in cloudwatch.meta.endpoint_url:
        raise Unproven("a stand-in for AWS does not evaluate alarms as CloudWatch does")
    measure, ran = measuring(cloudwatch), (*WOKEN, *SERVING) if proof.http else WOKEN
    described = _described(cloudwatch, names)
    if all(alarm["StateValue"] == UNKNOWN for alarm in described) and not any(
        _always(alarm, ran) for alarm in described
    ):
        raise Unproven(
            f"none of {len(described)} alarms has been evaluated: the stage is too new, or nothing "
            "evaluates alarms here"
        )
    silent = {alarm["AlarmName"]: metric for alarm in described if (metric := _always(alarm, ran))}
    count = len(silent)

    def all_is_well() -> bool:
        """Remove alarms that have data from `silent`; return whether none is left and all alarms are OK."""
        now = time.time()
        proof.used["metrics"] += len(silent)
        sums = measure(list(silent.values()), now - SINCE_SECONDS, now, 60) if silent else []
        for name, series in zip(list(silent), sums, strict=True):
            if series:
                del silent[name]
        described[:] = _described(cloudwatch, names)
        # An alarm that was on for a minute is OK again by then; an alarm that stays on is a finding.
        return not silent and all(alarm["StateValue"] == "OK" for alarm in described)

    proof.until(all_is_well, METRICS_SECONDS, every=30.0)
    wrong = [
        f"{name} does not exist" for name in sorted(set(names) - {alarm["AlarmName"] for alarm in described})
    ]
    wrong += [
        f"{alarm['AlarmName']} is in state {alarm['StateValue']}"
        for alarm in described
        if alarm["StateValue"] != "OK"
    ]
    wrong += [f"{name} has no data, though its function ran" for name in silent]
    return _judged(wrong, len(described), f"alarms are OK, and the {count} that must have data have it")


def _described(cloudwatch: Any, names: Sequence[str]) -> list[Mapping[str, Any]]:
    """Return the descriptions of the named alarms, read in batches; missing alarms are left out."""
    described = list[Mapping[str, Any]]()
    for start in range(0, len(names), ALARMS_AT_ONCE):
        with translate_errors("DescribeAlarms"):
            answer = cloudwatch.describe_alarms(AlarmNames=names[start : start + ALARMS_AT_ONCE])
        described += answer["MetricAlarms"]
    return described


def _always(alarm: Mapping[str, Any], ran: Sequence[str]) -> Metric | None:
    """Return an alarm's metric if it must have data because the proof ran its function, else None."""
    dimensions = {dimension["Name"]: dimension["Value"] for dimension in alarm.get("Dimensions", ())}
    name = dimensions.get("FunctionName", "").rpartition("-")[2]
    if alarm.get("Namespace") != "AWS/Lambda" or name not in ran:
        return None
    if alarm["MetricName"] not in ("Errors", "Throttles"):
        return None
    return Metric(namespace="AWS/Lambda", name=alarm["MetricName"], dimensions=dimensions)


def _judged(wrong: Sequence[str], count: int, what: str) -> str:
    """Return a count in words; raise `Broken` if there are findings, `Unproven` if the count is 0."""
    if wrong:
        raise Broken("; ".join(wrong))
    if not count:
        raise Unproven("the known stacks of the stage have none: add other stacks with --also")
    return f"{count} {what}"


ACCOUNT: Final = (mappings, settings, loops, roles, alarms)
"""Checks of the account in their order: alarms come last, since metrics take minutes."""


GATEWAY = "ApiUrl"
"""Name of the output with the URL of the gateway. A stage without one may have `AppendUrl` and the like."""


@click.command()
@click.option(
    "--api",
    default="",
    envvar="EPOCHAL_API_URL",
    help="URL of the HTTP API, if no stack has it as an output.",
)
@click.option("--token", default="", envvar="EPOCHAL_TOKEN", help="Token for the HTTP API, if it needs one.")
@click.option(
    "--also",
    multiple=True,
    metavar="STACK",
    help="Another stack to check, such as one without functions. May be repeated.",
)
@click.option(
    "--only", multiple=True, metavar="WORD", help="Run only checks whose names contain WORD. May be repeated."
)
@click.option(
    "--skip", multiple=True, metavar="WORD", help="Skip checks whose names contain WORD. May be repeated."
)
@click.option(
    "--sql", default="", metavar="URL", help="SQLAlchemy URL of a database in which to swap a read model."
)
@click.option(
    "--update",
    "updates",
    is_flag=True,
    help="Change a setting of a stack during the checks, and change it back.",
)
@click.option("--report", metavar="PATH", help="Write the report to PATH.json and, as a page, to PATH.md.")
@click.option("--strict", is_flag=True, help="Fail also if a promise could not be checked.")
@inputs.YES
@on_store
def prove(
    store: OpenedStore,
    *,
    api: str,
    token: str,
    also: Sequence[str],
    only: Sequence[str],
    skip: Sequence[str],
    sql: str,
    updates: bool,
    report: str | None,
    strict: bool,
    yes: bool,
) -> None:
    """Check on a deployed stage that Epochal keeps its promises.

    This takes up to ten minutes and costs a few cents. The checks write events of a category of their own, and
    delete what can be deleted. Reactions to all categories receive these events, too.
    """
    index = store.deployment.settings.index_table
    cloudformation = store.client("cloudformation")
    stacks = stacks_of(cloudformation, index, also)
    stacks += stacks_with_functions(cloudformation, store.client("lambda"), index, stacks)
    proof = ProofRun(
        store=store.deployment,
        client=store.client,
        stacks=stacks,
        http=_http(store, stacks, api, token),
        marker=secrets.token_hex(4),
        starts={partition.partition: partition.tail for partition in store.feed.partitions()},
        sql=sql,
        updates=updates,
    )
    checks = _chosen(
        [*store_checks(proof), *_of_packages(proof), *ACCOUNT, changed_setting, quarantine], only, skip
    )
    price = _price(index, checks)
    inputs.confirm(f"{price}. Go on?", yes=yes)
    if yes:
        click.echo(price, err=True)
    began = datetime.now(UTC).isoformat(timespec="seconds")
    with output.progress("proving") as tell:
        tell(checks[0].name)
        results = tried(proof, checks, _tell)
    done = ProofReport(
        stage=index,
        version=version("epochal"),
        began=began,
        marker=proof.marker,
        results=results,
        used=proof.used,
        left=proof.left,
    )
    if report:
        _keep(done, report)
    _print(done)
    bad = ("failed", "not proven") if strict else ("failed",)
    if failed := [result.check.name for result in results if result.verdict in bad]:
        raise inputs.Unsound(f"some checks did not pass: {', '.join(failed)}")


def _of_packages(proof: ProofRun) -> Iterator[Trial]:
    """Yield the checks of other optional packages."""
    for trials in extensions.parts("proofs"):
        yield from trials(proof)


def _price(index: str, checks: Sequence[Trial]) -> str:
    """Describe what the proof costs at most and what it sets off, for the confirmation."""
    cents = 100 * sum(check.dollars for check in checks)
    many = f"{len(checks)} check{'s' if len(checks) > 1 else ''}"
    alarm = ", and the alarm feed-set-aside will go off" if quarantine in checks else ""
    reactions = f"reactions to all categories will receive the events{alarm}"
    return f"{many} on {index}: at most ten minutes and {cents:.1f} cents; {reactions}"


def _chosen(checks: Sequence[Trial], only: Sequence[str], skip: Sequence[str]) -> list[Trial]:
    """Return the checks that the words of `--only` and `--skip` select; raise `InvalidInput` if none.

    Raises:
        InvalidInput: no check is left.
    """

    def has(check: Trial, words: Sequence[str]) -> bool:
        return any(word in check.name for word in words)

    chosen = [check for check in checks if (not only or has(check, only)) and not has(check, skip)]
    if not chosen:
        names = ", ".join(check.name for check in checks)
        raise InvalidInput("--only", f"no check is selected; the checks are {names}")
    return chosen


def _http(store: OpenedStore, stacks: Sequence[DeployedStack], api: str, token: str) -> SignedHttp | None:
    """Make a client of the stage's HTTP API; None where neither `api` nor a stack output has a URL."""
    meta = store.client("cloudformation").meta
    # URLs from the stacks of a stand-in would be requested from AWS, with whatever credentials there are.
    telling = stacks if AWS in meta.endpoint_url else ()
    outputs = {name: url for stack in telling for name, url in stack.outputs.items() if name.endswith("Url")}
    gateway = api or outputs.get(GATEWAY, "")
    if not gateway and "AppendUrl" not in outputs:
        return None

    def base(method: str, path: str) -> str:
        """Return the gateway's base URL; without a gateway, that of the function that serves the request."""
        if gateway:
            return gateway.rstrip("/")
        place = path.partition("?")[0]
        serving = (
            operation
            for operation in operations()
            if operation.method == method and operation.parameters(place) is not None
        )
        return outputs[f"{next(serving).function.capitalize()}Url"].rstrip("/")

    service = "execute-api" if gateway else "lambda"
    return SignedHttp(
        base=base, service=service, region=meta.region_name, credentials=credentials, token=token
    )


def _tell(result: Result) -> None:
    """Print the verdict of a check, unless the output is JSON."""
    if not output.as_json():
        click.echo(f"{result.verdict:<10}  {result.check.name}  {result.detail}")


def _keep(report: ProofReport, path: str) -> None:
    """Write a report to `path`.json and `path`.md; raise `InvalidInput` if they cannot be written.

    Raises:
        InvalidInput: the files cannot be written.
    """
    try:
        Path(f"{path}.json").write_bytes(report.json() + b"\n")
        Path(f"{path}.md").write_text(report.page(), "utf-8")
    except OSError as error:
        raise InvalidInput("--report", f"cannot be written: {error}") from error


def _print(report: ProofReport) -> None:
    """Print what the proof left behind and what it cost, as text or as the JSON of the report."""
    lines = (
        *(f"left        {leftover}" for leftover in report.left),
        f"metered cost: {100 * report.dollars:.2f} cents",
    )
    output.document(report.view(), lines)


COMMANDS: Final = (prove,)
