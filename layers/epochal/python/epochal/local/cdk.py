"""The real CDK command line, run against a stand-in, its output turned into lines a person reads.

It is the project's own, one on the path that is new enough, or else one that is fetched. First it synthesises, and
what came of that tells which accounts and regions stacks go to. None is bootstrapped: of all that a bootstrap makes, a
deployment finds the bucket for assets and the parameter that says how new it is; CDK does without roles that cannot be
assumed. That takes no time; a bootstrap takes ten seconds, as much as the deployment.
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
from pathlib import Path, PurePosixPath

from epochal.local import npm, programs
from epochal.local.assembly import Assembly, Stack, assembly_in, refuse_lookups
from epochal.local.endpoint import REGION, Endpoint
from epochal.local.errors import CommandFailed
from epochal.local.npm import Package
from epochal.local.places import Places, user_cache
from epochal.local.processes import Tell

PACKAGE = Package(
    title="the CDK command line, 8 MB",
    folder="cdk",
    name="aws-cdk",
    version="2.1148.1",  # which package.json pins for the checkout; later majors cannot read the assembly
    sha256="01b5e99ce9b096cec11f19369c4b3ba0aeea0d9000c7824014deffafe92a4c86",
    part=PurePosixPath("package"),
)

ACCOUNTS = Path(__file__).with_name("accounts.cjs")
"""A plugin, which has credentials for every account."""

BOOTSTRAP_VERSION = "31"
"""New enough for whatever an application asks of the bootstrapped account."""

OUTPUT_END_LINES = 40

SETTINGS = {
    "CDK_DISABLE_CLI_TELEMETRY": "1",
    "CDK_DISABLE_VERSION_CHECK": "1",
    "CDK_VALIDATION": "false",  # ten seconds of CPU; this AWS shows what is wrong with a template at once
    "EPOCHAL_TARGET": "embedded",  # for constructs, which read no context
    "JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION": "20",
    "NODE_NO_WARNINGS": "1",  # of Node releases near their end; they work
}

_EVENT = re.compile(
    r"^(?P<stack>\S+) \|[^|]*\|[^|]*\| (?P<status>\w+)\s*\| (?P<type>[\w:]+)\s*\| (?P<what>.*)$"
)


def synthesise(
    places: Places,
    endpoint: Endpoint,
    *,
    work: Path,
    app: str | None = None,
    context: Mapping[str, str] | None = None,
    tell: Tell | None = None,
) -> Assembly:
    """`cdk synth` of a project; `app` is the application where it is not that of cdk.json, `work` takes the assembly.

    Raises:
        ProgramMissing: Node is not there.
        LookupNeeded: it wants to know of an account what nothing here can tell.
        AccountRefused: a stack is to go to an account that is none.
        CommandFailed: it failed otherwise; carries the end of its output.
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
    """Make what stacks expect of a bootstrapped account and region. Does no harm when it is there."""
    s3 = endpoint.client("s3")
    there = {} if endpoint.region == REGION else {"LocationConstraint": endpoint.region}
    for bucket in sorted({each for stack in stacks for each in stack.buckets}):
        with suppress(s3.exceptions.BucketAlreadyOwnedByYou):
            s3.create_bucket(Bucket=bucket, **({"CreateBucketConfiguration": there} if there else {}))
    for parameter in sorted({stack.parameter for stack in stacks} - {""}):
        endpoint.client("ssm").put_parameter(
            Name=parameter, Value=BOOTSTRAP_VERSION, Type="String", Overwrite=True
        )


def deploy(places: Places, endpoint: Endpoint, assembly: Assembly, *, tell: Tell | None = None) -> None:
    """`cdk deploy` of every stack of an assembly, with the credentials of the account that each is for.

    Raises:
        ProgramMissing: Node is not there.
        CommandFailed: the deployment failed; carries the end of its output.
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


def command_line(places: Places, *, tell: Tell | None = None) -> list[str]:
    """The command that is CDK's: of the project, of the path, or fetched for this user."""
    node = programs.find(programs.NODE)
    for directory in (places.root, *places.root.parents):
        own = directory / "node_modules" / "aws-cdk" / "bin" / "cdk"
        if own.is_file():
            return [node, str(own)]
    on_path = shutil.which("cdk")
    if on_path is not None and _fits(on_path):
        return [on_path]
    return [node, str(npm.fetch(PACKAGE, user_cache(), tell=tell) / "bin" / "cdk")]


def _fits(cdk: str) -> bool:
    """Whether it is of the same major version and at least as new as what is fetched."""
    ran = subprocess.run([cdk, "--version"], capture_output=True, text=True, check=False)
    found = re.match(r"(\d+)\.(\d+)", ran.stdout)
    major, minor, *_ = map(int, PACKAGE.version.split("."))
    return found is not None and int(found[1]) == major and int(found[2]) >= minor


def _environment(endpoint: Endpoint) -> dict[str, str]:
    """The stand-in's; and `python` is this one, which has the libraries, be its environment activated or not."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
    return endpoint.environment(os.environ) | SETTINGS | {"PATH": path}


def line_for_people(line: str) -> str | None:
    """What of a line of the command line's output is worth telling, if anything."""
    event = _EVENT.match(line)
    if event is None:
        return None
    if event["status"].endswith("_FAILED"):
        return f"{event['stack']}: {event['status']} {event['type']} {event['what'].strip()}"
    if event["status"].endswith("_COMPLETE"):
        return f"{event['stack']}: {event['type']} {event['what'].split(' (')[0].strip()}"
    return None


def _run(command: list[str], places: Places, endpoint: Endpoint, tell: Tell | None, *, doing: str) -> None:
    end: deque[str] = deque(maxlen=OUTPUT_END_LINES)
    with subprocess.Popen(
        command,
        cwd=places.root,
        env=_environment(endpoint),
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
                told = line_for_people(line.rstrip())
                if tell is not None and told is not None:
                    tell(told)
    if process.returncode != 0:
        raise CommandFailed(f"cdk {doing}", process.returncode, "".join(end).strip())
