"""The real CDK command line, run against a stand-in; its output is turned into lines for people.

It is the project's own, one on PATH that is new enough, or else one that is fetched. First it synthesises, and the
assembly has the accounts and regions of the stacks. None of these is bootstrapped: of all that a bootstrap makes,
only the buckets for assets and the parameter with the bootstrap version are created; CDK does without roles that
cannot be assumed. That takes no time; a bootstrap takes ten seconds, as much as the deployment.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections import deque
from collections.abc import Iterable, Mapping
from contextlib import suppress
from itertools import takewhile
from pathlib import Path, PurePosixPath

from epochal.cdk.user_cache import user_cache
from epochal.contrib.local import programs
from epochal.contrib.local.assembly import Assembly, Stack, assembly_in, refuse_lookups
from epochal.contrib.local.endpoint import REGION, Endpoint
from epochal.contrib.local.errors import CommandFailed
from epochal.contrib.local.failed_resources import EVENT, FailedResources, line_of_failure
from epochal.contrib.local.processes import Tell
from epochal.contrib.local.programs import Package, Places

PACKAGE = Package(
    title="the CDK command line, 8 MB",
    folder="cdk",
    name="aws-cdk",
    version="2.1148.1",  # which package.json pins for the checkout; later majors cannot read the assembly
    sha256="01b5e99ce9b096cec11f19369c4b3ba0aeea0d9000c7824014deffafe92a4c86",
    part=PurePosixPath("package"),
)

ACCOUNTS = Path(__file__).with_name("accounts.cjs")
"""Plugin of CDK that has credentials for every account, and shortens CDK's waits."""

BOOTSTRAP_VERSION = "31"
"""Bootstrap version that is new enough for every application."""

OUTPUT_END_LINES = 40

SETTINGS = {
    "CDK_DISABLE_CLI_TELEMETRY": "1",
    "CDK_DISABLE_VERSION_CHECK": "1",
    "CDK_VALIDATION": "false",  # ten seconds of CPU; this AWS shows what is wrong with a template at once
    "EPOCHAL_TARGET": "embedded",  # for constructs, which read no context
    "JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION": "20",
    "NODE_NO_WARNINGS": "1",  # of Node releases near their end; they work
}


def synthesise(
    places: Places,
    endpoint: Endpoint,
    *,
    work: Path,
    app: str | None = None,
    context: Mapping[str, str] | None = None,
    tell: Tell = str,
) -> Assembly:
    """Run `cdk synth` on a project, unless `app` is a folder with an assembly; return the assembly.

    Args:
        places: the project.
        endpoint: the stand-in for AWS.
        work: folder that takes the assembly.
        app: command of the application where it is not that of cdk.json, or a folder with an assembly, which is read as
            it is.
        context: context values of the application.
        tell: function that takes progress messages.

    Raises:
        ProgramMissing: Node is not installed.
        LookupNeeded: the application looks something up in an account that is not here.
        AccountRefused: a stack names an account that does not have twelve digits.
        CommandFailed: the command failed otherwise; carries the end of its output.
    """
    if app and (places.root / app / "manifest.json").is_file():
        return assembly_in(places.root / app)
    folder = work / "cdk.out"
    options = [
        option for name, value in (context or {}).items() for option in ("--context", f"{name}={value}")
    ]
    command = [
        *command_line(places, tell=tell),
        *("synth", "--quiet"),
        *(("--app", app) if app else ()),
        *("--output", str(folder)),
        *options,
    ]
    try:
        _run(command, places, endpoint, tell, doing="synth")
    except CommandFailed:
        refuse_lookups(folder)
        raise
    return assembly_in(folder)


def prepare_account(stacks: Iterable[Stack], endpoint: Endpoint) -> None:
    """Create missing asset buckets, and set the bootstrap parameters that stacks of an environment expect.

    Buckets that exist already stay as they are.
    """
    s3 = endpoint.client("s3")
    location = {} if endpoint.region == REGION else {"LocationConstraint": endpoint.region}
    for bucket in sorted({name for stack in stacks for name in stack.buckets}):
        with suppress(s3.exceptions.BucketAlreadyOwnedByYou):
            s3.create_bucket(Bucket=bucket, **({"CreateBucketConfiguration": location} if location else {}))
    for parameter in sorted({stack.parameter for stack in stacks} - {""}):
        endpoint.client("ssm").put_parameter(
            Name=parameter, Value=BOOTSTRAP_VERSION, Type="String", Overwrite=True
        )


def deploy(places: Places, endpoint: Endpoint, assembly: Assembly, *, tell: Tell = str) -> None:
    """Run `cdk deploy` for all stacks of an assembly on a stand-in; raise `CommandFailed` if it fails.

    It has credentials for each stack's account.

    Raises:
        ProgramMissing: Node is not installed.
        CommandFailed: the deployment failed; carries the reason of each resource that was refused, or else the end of
            its output.
    """
    command = [
        *command_line(places, tell=tell),
        *("deploy", "**" if assembly.staged else "--all"),
        *("--app", str(assembly.folder)),
        *("--plugin", str(ACCOUNTS)),
        *("--require-approval", "never"),
        *("--method", "direct"),  # nobody reviews a change set
        *("--progress", "events"),
    ]
    _run(command, places, endpoint, tell, doing="deploy")


def command_line(places: Places, *, tell: Tell = str) -> list[str]:
    """Return the command that runs CDK: the project's own, a recent one on PATH, or a downloaded one.

    Raises:
        ProgramMissing: Node is not installed, or npm where CDK has to be fetched.
    """
    node = programs.find(programs.NODE)
    for directory in (places.root, *places.root.parents):
        own = directory / "node_modules" / "aws-cdk" / "bin" / "cdk"
        if own.is_file():
            return [node, str(own)]
    on_path = shutil.which("cdk")
    if on_path is not None and _fits(on_path):
        return [on_path]
    return [node, str(programs.fetch(PACKAGE, user_cache(), tell=tell) / "bin" / "cdk")]


def _fits(cdk: str) -> bool:
    """Whether a CDK command line has the pinned major version and is at least as new."""
    ran = subprocess.run([cdk, "--version"], capture_output=True, text=True, check=False)
    matched = re.match(r"(\d+)\.(\d+)", ran.stdout)
    major, minor, *_ = map(int, PACKAGE.version.split("."))
    return matched is not None and int(matched[1]) == major and int(matched[2]) >= minor


def _build_environment(endpoint: Endpoint) -> dict[str, str]:
    """Return the environment of CDK: the stand-in's variables, with this Python first on PATH.

    So `python` has the libraries, whether its virtual environment is activated or not.
    """
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
    return endpoint.environment(os.environ) | SETTINGS | {"PATH": path}


def line_for_people(line: str) -> str | None:
    """Return short text for CDK's line on a completed or failed resource; None for any other line."""
    event = EVENT.match(line)
    if event is None:
        return None
    if event["status"].endswith("_FAILED"):
        return line_of_failure(event)
    if event["status"].endswith("_COMPLETE"):
        return f"{event['stack']}: {event['type']} {event['what'].split(' (')[0].strip()}"
    return None


def _run(command: list[str], places: Places, endpoint: Endpoint, tell: Tell, *, doing: str) -> None:
    """Run a CDK command in the project, report its progress; raise `CommandFailed` if it fails.

    Raises:
        CommandFailed: the command failed; carries the end of its output and the reasons of failed resources.
    """
    end: deque[str] = deque(maxlen=OUTPUT_END_LINES)
    failed = FailedResources()
    with subprocess.Popen(
        command,
        cwd=places.root,
        env=_build_environment(endpoint),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        encoding="utf-8",
        errors="replace",
    ) as process:
        if process.stdout is not None:
            for line in process.stdout:
                end.append(line)
                failed.read(line.rstrip())
                shown = line_for_people(line.rstrip())
                if shown is not None:
                    tell(shown)
    if process.returncode != 0:
        reasons = failed.reasons or _refusal(end)
        raise CommandFailed(f"cdk {doing}", process.returncode, "".join(end).strip(), reasons)


def _refusal(output: Iterable[str]) -> list[str]:
    """Return the lines that an app printed of a construct's error (`epochal.cdk.uncaught`); empty where it did not."""
    lines = [line.rstrip() for line in output]
    first = next((number for number, line in enumerate(lines) if line.startswith("epochal: ")), len(lines))
    return [*lines[first : first + 1], *takewhile(lambda line: line.startswith("  at "), lines[first + 1 :])]
