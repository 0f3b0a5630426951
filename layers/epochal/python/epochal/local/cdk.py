"""The real CDK command line, run against a stand-in, its output turned into lines a person reads.

Nothing is bootstrapped. The stacks of `-c target=embedded` travel with the caller's own credentials
(CliCredentialsStackSynthesizer), and of all that a bootstrap makes they use only the bucket for assets. Making that
bucket takes no time; a bootstrap takes ten seconds, as much as the whole deployment.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections import deque
from collections.abc import Mapping
from pathlib import Path

from epochal.local import programs
from epochal.local.endpoint import ACCOUNT, Endpoint
from epochal.local.errors import CommandFailed, ProgramMissing
from epochal.local.places import Places
from epochal.local.processes import Tell

QUALIFIER = "hnb659fds"
"""What CDK puts into the names of a bootstrapped account's resources, unless told otherwise."""

OUTPUT_END_LINES = 40

SETTINGS = {
    "CDK_DISABLE_CLI_TELEMETRY": "1",
    "CDK_DISABLE_VERSION_CHECK": "1",
    "NODE_NO_WARNINGS": "1",  # of Node releases near their end; they work
}

_EVENT = re.compile(
    r"^(?P<stack>\S+) \|[^|]*\|[^|]*\| (?P<status>\w+)\s*\| (?P<type>[\w:]+)\s*\| (?P<what>.*)$"
)


def prepare_account(endpoint: Endpoint) -> None:
    """Make what a deployment expects to find: the bucket that assets go to. Does no harm when it is there."""
    bucket = f"cdk-{QUALIFIER}-assets-{ACCOUNT}-{endpoint.region}"
    endpoint.client("s3").create_bucket(Bucket=bucket)


def deploy(
    places: Places, endpoint: Endpoint, *, work: Path, context: Mapping[str, str], tell: Tell | None = None
) -> Path:
    """`cdk deploy --all` of this checkout to `endpoint`; returns the file with the stacks' outputs.

    `work` takes the assembly and the outputs. Raises `ProgramMissing` without Node or the command line, and
    `CommandFailed` with the end of its output when the deployment fails.
    """
    outputs = work / "outputs.json"
    options = [option for name, value in context.items() for option in ("--context", f"{name}={value}")]
    command = [
        *(programs.find(programs.NODE), str(_cdk(places))),
        *("deploy", "--all"),
        *(
            "--app",
            f"{shlex.quote(sys.executable)} app.py unvalidated",
        ),  # this interpreter: it has the libraries
        *("--output", str(work / "cdk.out")),
        *("--outputs-file", str(outputs)),
        *("--require-approval", "never"),
        *("--method", "direct"),  # nobody reviews a change set
        *("--progress", "events"),
        *options,
    ]
    _run(command, places, endpoint, tell)
    return outputs


def line_for_people(line: str) -> str | None:
    """What of a line of the command line's output is worth telling, if anything."""
    event = _EVENT.match(line)
    if event is not None:
        if event["status"].endswith("_FAILED"):
            return f"{event['stack']}: {event['status']} {event['type']} {event['what'].strip()}"
        if event["status"].endswith("_COMPLETE"):
            return f"{event['stack']}: {event['type']} {event['what'].split(' (')[0].strip()}"
        return None
    return line.strip(" ✨") if line.startswith("✨  Synthesis") else None


def _cdk(places: Places) -> Path:
    if not places.cdk.exists():
        raise ProgramMissing("cdk", f"{places.cdk} is not there", "npm ci --ignore-scripts, or make setup")
    return places.cdk


def _run(command: list[str], places: Places, endpoint: Endpoint, tell: Tell | None) -> None:
    end: deque[str] = deque(maxlen=OUTPUT_END_LINES)
    with subprocess.Popen(
        command,
        cwd=places.root,
        env=endpoint.environment(os.environ) | SETTINGS,
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
        raise CommandFailed("cdk deploy", process.returncode, "".join(end).strip())
