"""Synthesis needs no account: no credentials, no network, no container."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from epochal.cdk.sources import Sources
from tests.surfaces.stacks.templates import ROOT, context_of_repository

NODE_GUARD = """
const refuse = what => () => { process.stderr.write(`guard: ${what}\\n`); process.exit(97); };
require("net").Socket.prototype.connect = refuse("connect");
require("dns").lookup = refuse("lookup");
"""

PYTHON_GUARD = """
import json, os, socket, sys
def refuse(*_arguments, **_named):
    os.write(2, b"guard: python\\n")
    os._exit(97)
socket.socket.connect = socket.socket.connect_ex = socket.getaddrinfo = refuse
"""

SYNTHESIS = (
    PYTHON_GUARD
    + """
from pathlib import Path
from aws_cdk import App
from epochal.cdk.sources import Sources
from stacks.deployment import deployment
from epochal.cdk.parts.bytecode import prepared
library, cache, lambdas, vendor, *asked = sys.argv[1:]
for outdir, context in zip(asked[::2], asked[1::2], strict=True):
    app = App(outdir=outdir, context=json.loads(context))
    deployment(app, Sources(
        library=lambda python: prepared(Path(library), python, Path(cache)),
        vendor=lambda platform: Path(vendor),
        sdk=lambda platform: Path(vendor),
        packages=lambda requirements, platform: Path(vendor),
        layouts=lambda names, platform: Path(vendor),
        schemas=lambda document, platform: Path(vendor),
        lambdas=Path(lambdas),
        root=Path.cwd(),
    ))
    app.synth()
"""
)


@pytest.fixture(scope="module")
def isolated(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """An environment without AWS, container tools on the path, or a network for Node."""
    place = tmp_path_factory.mktemp("isolated")
    guard = place / "guard.cjs"
    guard.write_text(NODE_GUARD)
    tools = place / "bin"
    tools.mkdir()
    for name in ("docker", "podman", "finch"):
        (tools / name).write_text("#!/bin/sh\necho guard: container >&2\nexit 97\n")
        (tools / name).chmod(0o755)
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("AWS_", "CDK_"))}
    return {
        **kept,
        "PATH": f"{tools}:{os.environ['PATH']}",
        "PYTHONPATH": f"{ROOT}:{ROOT / 'layers/epochal/python'}",
        "NODE_OPTIONS": f"--require {guard}",
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
    }


def run(*arguments: str, env: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*arguments], env=env, cwd=ROOT, capture_output=True, text=True, check=False)


TARGETS = ("aws", "embedded")


@pytest.fixture(scope="module")
def synthesised(
    isolated: dict[str, str], sources: Sources, tmp_path_factory: pytest.TempPathFactory
) -> tuple[subprocess.CompletedProcess[str], Path]:
    """Production for both targets, each in a folder of its name, by one process."""
    place = tmp_path_factory.mktemp("synthesised")
    vendor = place / "vendor"
    (vendor / "python").mkdir(parents=True)
    (vendor / "python" / "wheels.py").write_text("")
    library, cache = sources.root / "epochal", sources.root / "layers"
    asked = [
        each
        for target in TARGETS
        for each in (
            str(place / target),
            json.dumps({**context_of_repository(), "stage": "prod", "target": target}),
        )
    ]
    paths = map(str, (library, cache, sources.lambdas, vendor))
    return run(sys.executable, "-c", SYNTHESIS, *paths, *asked, env=isolated), place


@pytest.mark.parametrize("target", TARGETS)
def test_synthesis_reaches_for_no_network_and_no_credentials(
    synthesised: tuple[subprocess.CompletedProcess[str], Path], target: str
) -> None:
    ran, place = synthesised
    assert (ran.returncode, ran.stderr.count("guard")) == (0, 0), ran.stderr
    manifest = json.loads((place / target / "manifest.json").read_text())
    assert "missing" not in manifest
    environments = {each["environment"] for each in manifest["artifacts"].values() if "environment" in each}
    assert environments == {"aws://unknown-account/unknown-region"}


@pytest.mark.parametrize(
    "program",
    [
        ("node", "-e", "fetch('http://127.0.0.1:8999/')"),
        (
            sys.executable,
            "-c",
            PYTHON_GUARD + "import urllib.request as r; r.urlopen('http://127.0.0.1:8999/')",
        ),
        ("docker", "version"),
    ],
    ids=["node", "python", "docker"],
)
def test_the_guard_would_have_noticed(isolated: dict[str, str], program: tuple[str, ...]) -> None:
    assert run(*program, env=isolated).returncode == 97


def test_the_app_says_in_one_line_what_is_wrong_with_a_setting(isolated: dict[str, str]) -> None:
    context = json.dumps({**context_of_repository(), "stages": {"prod": {"tips_partitions": 0}}})
    ran = run(sys.executable, "app.py", env={**isolated, "CDK_CONTEXT_JSON": context})
    assert ran.returncode == 1
    assert ran.stderr.strip().splitlines() == [
        "epochal: stages.prod.tips_partitions must be a whole number from 1 to 10,000, not 0"
    ]


@pytest.mark.proof
def test_the_app_refuses_a_misspelt_context_value_instead_of_deploying_another_stage(
    isolated: dict[str, str],
) -> None:
    context = json.dumps({**context_of_repository(), "stag": "prod"})
    ran = run(sys.executable, "app.py", env={**isolated, "CDK_CONTEXT_JSON": context})
    assert ran.returncode == 1
    assert ran.stderr.startswith("epochal: stag is not a context value; did you mean stage?")


def test_an_interrupted_app_leaves_no_trace(isolated: dict[str, str], tmp_path: Path) -> None:
    # In place of CDK, whose import takes seconds: a Ctrl-C just then.
    (tmp_path / "aws_cdk.py").write_text("import os, signal\nos.kill(os.getpid(), signal.SIGINT)\n")
    env = {**isolated, "PYTHONPATH": f"{tmp_path}:{isolated['PYTHONPATH']}"}
    interrupted = run(sys.executable, "app.py", env=env)
    assert (interrupted.returncode, interrupted.stderr) == (-signal.SIGINT, "")
