"""A synthesised application: its stacks, the account and region of each, and what the stacks expect there.

A stack that names no account or region is deployed to the home environment: the one account and the one region that
other stacks name, or those of the embedded AWS.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from epochal.contrib.local.endpoint import ACCOUNT, REGION
from epochal.contrib.local.errors import AccountRefused, LookupNeeded
from epochal.lazy_dataclasses import dataclass

UNKNOWN: Final = ("unknown-account", "unknown-region")
"""Account and region in the assembly for a stack that names none."""

_ENVIRONMENT: Final = re.compile(r"aws://([^/]+)/(.+)")
_ACCOUNT: Final = re.compile(r"\d{12}")


@dataclass(frozen=True, slots=True, order=True)
class Environment:
    """An account and a region."""

    account: str
    region: str


HERE: Final = Environment(ACCOUNT, REGION)
"""Account and region of the embedded AWS, which are the default."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stack:
    """A synthesised stack: its id, name, environment, asset buckets and bootstrap parameter.

    Attributes:
        id: path of the stack in the application, as `Prod/Shop`.
        name: name in CloudFormation, unique in an environment.
        buckets: names of the buckets that the stack's assets go to.
        parameter: name of the SSM parameter with the bootstrap version; empty where the stack does not check it.
    """

    id: str
    name: str
    environment: Environment
    buckets: frozenset[str]
    parameter: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Assembly:
    """A cloud assembly: the stacks that an application was synthesised to.

    Attributes:
        folder: folder of the assembly.
        home: environment of stacks that name none.
        staged: whether all stacks are in stages of the application.
    """

    folder: Path
    home: Environment
    stacks: tuple[Stack, ...]
    staged: bool = False


def assembly_in(folder: Path) -> Assembly:
    """Return the assembly in a folder: its own stacks, or where it has none, those of its stages.

    Raises:
        AccountRefused: a stack names an account that does not have twelve digits.
    """
    artifacts = list(_stacks(folder))
    home = _choose_home([_environment_of(artifact) for _, artifact in artifacts])
    top = [artifact for place, artifact in artifacts if place == folder]
    stacks = tuple(
        _stack(place, artifact, home) for place, artifact in artifacts if not top or place == folder
    )
    return Assembly(folder=folder, home=home, stacks=stacks, staged=not top)


def refuse_lookups(folder: Path) -> None:
    """Raise `LookupNeeded` if the assembly in a folder lacks a value that must be looked up.

    Such a value is in an account, which the embedded AWS knows nothing about.
    """
    if not (folder / "manifest.json").is_file():
        return
    for missing in _manifest(folder).get("missing", ()):
        environment = missing["props"].get("account"), missing["props"].get("region")
        stacks = [
            _id(artifact) for _, artifact in _stacks(folder) if _environment_of(artifact) == environment
        ]
        raise LookupNeeded(stacks, missing["key"])


def _manifest(folder: Path) -> dict[str, Any]:
    manifest: dict[str, Any] = json.loads((folder / "manifest.json").read_text("utf-8"))
    return manifest


def _stacks(folder: Path) -> Iterator[tuple[Path, Mapping[str, Any]]]:
    """Yield each stack's artifact with the folder of its assembly, also for stacks in stages.

    A stage of the application has an assembly of its own.
    """
    for id_, artifact in _manifest(folder).get("artifacts", {}).items():
        if artifact["type"] == "aws:cloudformation:stack":
            yield folder, {"displayName": id_, **artifact, "id": id_}
        if artifact["type"] == "cdk:cloud-assembly":
            yield from _stacks(folder / artifact["properties"]["directoryName"])


def _id(artifact: Mapping[str, Any]) -> str:
    """Return the id of a stack: its `displayName` without the name in parentheses, if there is one."""
    return str(artifact["displayName"]).partition(" (")[0]


def _environment_of(artifact: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the account and the region that a stack names; `UNKNOWN` where it names none."""
    matched = _ENVIRONMENT.fullmatch(artifact["environment"])
    return matched.groups() if matched else UNKNOWN


def _choose_home(environments: list[tuple[str, ...]]) -> Environment:
    """Return the one account and region that stacks name; with none or several, the embedded AWS's."""
    accounts, regions = (
        {environment[position] for environment in environments} - {UNKNOWN[position]} for position in (0, 1)
    )
    return Environment(
        accounts.pop() if len(accounts) == 1 else HERE.account,
        regions.pop() if len(regions) == 1 else HERE.region,
    )


def _stack(folder: Path, artifact: Mapping[str, Any], home: Environment) -> Stack:
    """Make a `Stack` from an artifact; an account or region that it does not name is the home's.

    Raises:
        AccountRefused: the account does not have twelve digits.
    """
    account, region = (
        own if name == unknown else name
        for name, unknown, own in zip(
            _environment_of(artifact), UNKNOWN, (home.account, home.region), strict=True
        )
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
    """Yield the bucket of each file asset of a stack, with account and region filled into its name."""
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
