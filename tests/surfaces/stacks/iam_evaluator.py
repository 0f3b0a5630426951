"""A second evaluator of IAM policies, `@cloud-copilot/iam-simulate` from npm, beside that of the embedded AWS."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

HERE: Final = Path(__file__).resolve().parent / "iam"
ALLOWED: Final = "Allowed"
DENIED: Final = "ImplicitlyDenied"


@dataclass(frozen=True, slots=True, kw_only=True)
class IamRequest:
    """A request that a role makes.

    Attributes:
        role: name of the role.
        action: action with its service, as `dynamodb:GetItem`.
        resource: ARN of what it is made on.
        context: values of condition keys.
    """

    role: str
    action: str
    resource: str
    context: Mapping[str, Any] = field(default_factory=dict)


def decisions(
    policies: Mapping[str, Sequence[Mapping[str, Any]]], requests: Sequence[IamRequest]
) -> list[str]:
    """Return for each request what the evaluator decides: `ALLOWED`, `DENIED`, or an error.

    Args:
        policies: inline policies by role, each with `name` and `policy`, without references.
    """
    asked = [
        {"role": each.role, "action": each.action, "resource": each.resource, "context": dict(each.context)}
        for each in requests
    ]
    node = shutil.which("node")
    assert node is not None, "Node is missing: `make setup` says how to get it"
    done = subprocess.run(
        [node, "evaluator.mjs"],
        cwd=installed(),
        input=json.dumps({"policies": policies, "requests": asked}),
        check=True,
        capture_output=True,
        text=True,
    )
    found: list[str] = json.loads(done.stdout)
    return found


def installed() -> Path:
    """The folder of the evaluator, which is installed once, by the digests of its lock file."""
    if not (HERE / "node_modules" / ".package-lock.json").exists():
        npm = shutil.which("npm")
        assert npm is not None, "npm is missing: `make setup` says how to get it"
        subprocess.run([npm, "ci", "--ignore-scripts"], cwd=HERE, check=True, capture_output=True)
    return HERE
