"""What an application was synthesised to: its stacks, the account and region of each, and what they look for there.

A stack that names none goes where whoever deploys is at home: the one account and the one region that others name, or
those of the embedded AWS.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from epochal.local.endpoint import ACCOUNT, REGION
from epochal.local.errors import AccountRefused, LookupNeeded

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
