"""Synthesised applications, the CDK command line that deploys them to a stand-in, and what was deployed."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import Any, Final

from epochal.cdk.user_cache import user_cache
from epochal.contrib.local import programs
from epochal.contrib.local.endpoint import ACCOUNT, REGION, Endpoint
from epochal.contrib.local.errors import AccountRefused, CommandFailed, LookupNeeded
from epochal.contrib.local.failed_resources import EVENT, FailedResources, line_of_failure
from epochal.contrib.local.processes import Server, Tell
from epochal.contrib.local.programs import Package, Places, note, noted
from epochal.lazy_dataclasses import asdict, dataclass

# What an application was synthesised to: its stacks, the account and region of each, and what they look for there.
#
# A stack that names none goes where whoever deploys is at home: the one account and the one region that others name,
# or those of the embedded AWS.

UNKNOWN: Final = ("unknown-account", "unknown-region")
"""What CDK says of a stack that names none."""

_ENVIRONMENT: Final = re.compile(r"aws://([^/]+)/(.+)")
_ACCOUNT: Final = re.compile(r"\d{12}")


@dataclass(frozen=True, slots=True, order=True)
class Environment:
    """An account and a region."""

    account: str
    region: str


HERE: Final = Environment(ACCOUNT, REGION)
"""Those of the embedded AWS, where nothing else is said."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stack:
    """A stack that was synthesised.

    Attributes:
        id: as the application knows it: `Prod/Shop`.
        name: as CloudFormation knows it, of which each environment may have one.
        buckets: where its assets go.
        parameter: which tells how new the bootstrap is; empty where it does not ask.
    """

    id: str
    name: str
    environment: Environment
    buckets: frozenset[str]
    parameter: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Assembly:
    """What is in the folder of an assembly.

    Attributes:
        folder: which one.
        staged: its stacks are in stages of the application's, all of them.
    """

    folder: Path
    home: Environment
    stacks: tuple[Stack, ...]
    staged: bool = False


def assembly_in(folder: Path) -> Assembly:
    """The assembly that an application was synthesised to; raises `AccountRefused` where an account is none."""
    found = list(_stacks(folder))
    home = _home([_named(artifact) for _, artifact in found])
    top = [artifact for at, artifact in found if at == folder]
    stacks = tuple(_stack(at, artifact, home) for at, artifact in found if not top or at == folder)
    return Assembly(folder=folder, home=home, stacks=stacks, staged=not top)


def refuse_lookups(folder: Path) -> None:
    """Raise `LookupNeeded` where an application wants to know of an account what nothing here can tell."""
    if not (folder / "manifest.json").is_file():
        return
    for missing in _manifest(folder).get("missing", ()):
        asked = missing["props"].get("account"), missing["props"].get("region")
        stacks = [_id(each) for _, each in _stacks(folder) if _named(each) == asked]
        raise LookupNeeded(stacks, missing["key"])


def _manifest(folder: Path) -> dict[str, Any]:
    manifest: dict[str, Any] = json.loads((folder / "manifest.json").read_text("utf-8"))
    return manifest


def _stacks(folder: Path) -> Iterator[tuple[Path, Mapping[str, Any]]]:
    """Stacks with the folders that they are in: a stage of the application's has one of its own."""
    for id_, artifact in _manifest(folder).get("artifacts", {}).items():
        if artifact["type"] == "aws:cloudformation:stack":
            yield folder, {"displayName": id_, **artifact, "id": id_}
        if artifact["type"] == "cdk:cloud-assembly":
            yield from _stacks(folder / artifact["properties"]["directoryName"])


def _id(artifact: Mapping[str, Any]) -> str:
    """`displayName` has the name in parentheses, where it is another."""
    return str(artifact["displayName"]).partition(" (")[0]


def _named(artifact: Mapping[str, Any]) -> tuple[str, ...]:
    found = _ENVIRONMENT.fullmatch(artifact["environment"])
    return found.groups() if found else UNKNOWN


def _home(named: list[tuple[str, ...]]) -> Environment:
    accounts, regions = ({each[at] for each in named} - {UNKNOWN[at]} for at in (0, 1))
    return Environment(
        accounts.pop() if len(accounts) == 1 else HERE.account,
        regions.pop() if len(regions) == 1 else HERE.region,
    )


def _stack(folder: Path, artifact: Mapping[str, Any], home: Environment) -> Stack:
    account, region = (
        there if name == unknown else name
        for name, unknown, there in zip(_named(artifact), UNKNOWN, (home.account, home.region), strict=True)
    )
    if not _ACCOUNT.fullmatch(account):
        raise AccountRefused(_id(artifact), account)
    environment, properties = Environment(account, region), artifact["properties"]
    return Stack(
        id=_id(artifact),
        name=properties.get("stackName", artifact["id"]),
        environment=environment,
        buckets=frozenset(_buckets(folder, artifact, environment)),
        parameter=properties.get("bootstrapStackVersionSsmParameter", ""),
    )


def _buckets(folder: Path, artifact: Mapping[str, Any], environment: Environment) -> Iterator[str]:
    artifacts = _manifest(folder)["artifacts"]
    for id_ in artifact.get("dependencies", ()):
        if artifacts[id_]["type"] == "cdk:asset-manifest":
            manifest = json.loads((folder / artifacts[id_]["properties"]["file"]).read_text("utf-8"))
            for asset in manifest.get("files", {}).values():
                for destination in asset["destinations"].values():
                    yield (
                        destination["bucketName"]
                        .replace("${AWS::AccountId}", environment.account)
                        .replace("${AWS::Region}", environment.region)
                        .replace("${AWS::Partition}", "aws")
                    )


# The real CDK command line, run against a stand-in, its output turned into lines a person reads.
#
# It is the project's own, one on the path that is new enough, or else one that is fetched. First it synthesises, and
# what came of that tells which accounts and regions stacks go to. None is bootstrapped: of all that a bootstrap
# makes, a deployment finds the bucket for assets and the parameter that says how new it is; CDK does without roles
# that cannot be assumed. That takes no time; a bootstrap takes ten seconds, as much as the deployment.

PACKAGE = Package(
    title="the CDK command line, 8 MB",
    folder="cdk",
    name="aws-cdk",
    version="2.1148.1",  # which package.json pins for the checkout; later majors cannot read the assembly
    sha256="01b5e99ce9b096cec11f19369c4b3ba0aeea0d9000c7824014deffafe92a4c86",
    part=PurePosixPath("package"),
)

ACCOUNTS = Path(__file__).with_name("accounts.cjs")
"""A plugin, which has credentials for every account, and waits less."""

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


def synthesise(
    places: Places,
    endpoint: Endpoint,
    *,
    work: Path,
    app: str | None = None,
    context: Mapping[str, str] | None = None,
    tell: Tell = str,
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


def deploy(places: Places, endpoint: Endpoint, assembly: Assembly, *, tell: Tell = str) -> None:
    """`cdk deploy` of every stack of an assembly, with the credentials of the account that each is for.

    Raises:
        ProgramMissing: Node is not there.
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
    """The command that is CDK's: of the project, of the path, or fetched for this user."""
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
    event = EVENT.match(line)
    if event is None:
        return None
    if event["status"].endswith("_FAILED"):
        return line_of_failure(event)
    if event["status"].endswith("_COMPLETE"):
        return f"{event['stack']}: {event['type']} {event['what'].split(' (')[0].strip()}"
    return None


def _run(command: list[str], places: Places, endpoint: Endpoint, tell: Tell, *, doing: str) -> None:
    end: deque[str] = deque(maxlen=OUTPUT_END_LINES)
    failed = FailedResources()
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
                failed.read(line.rstrip())
                told = line_for_people(line.rstrip())
                if told is not None:
                    tell(told)
    if process.returncode != 0:
        raise CommandFailed(f"cdk {doing}", process.returncode, "".join(end).strip(), failed.reasons)


# What was deployed to the embedded AWS: its stacks with their outputs, kept beside the server that they belong to.
#
# When the server stops, both are gone.


@dataclass(frozen=True, slots=True, kw_only=True)
class Outputs:
    """Of one stack: what it is called, and where it is."""

    stack: str
    environment: Environment = HERE
    values: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class RememberedDeployment:
    """What was deployed; `home` is where commands are, if no store says otherwise."""

    home: Environment = HERE
    stacks: tuple[Outputs, ...] = ()


def environments_of(deployed: Assembly | RememberedDeployment) -> tuple[Environment, ...]:
    """Where stacks are or go, each once, and home."""
    return tuple(sorted({deployed.home, *(each.environment for each in deployed.stacks)}))


def remember(server: Server, deployed: RememberedDeployment) -> None:
    """Keep it beside the server."""
    note(_note(server), asdict(deployed))


def remembered(server: Server) -> RememberedDeployment | None:
    """What was deployed to `server`; None where nothing was."""
    told = noted(_note(server))
    if told is None:
        return None
    stacks = (
        Outputs(**each | {"environment": Environment(**each["environment"])}) for each in told["stacks"]
    )
    return RememberedDeployment(home=Environment(**told["home"]), stacks=tuple(stacks))


def _note(server: Server) -> Path:
    return server.directory / "deployed.json"
