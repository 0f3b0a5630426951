"""docs/guide/generated-clients.md: its clients are generated, compile strictly, and work on what is deployed.

Each typo is marked as an error that is expected, so that one which compiles fails the test.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from epochal.contrib.local.deploy import LocalDeployment
from epochal.contrib.local.programs import Places
from epochal.http.openapi import documents

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "guide" / "generated-clients.md"

TYPESCRIPT_TYPOS = """
import { api } from "./client.js";
import type { components } from "./epochal.js";

type Schemas = components["schemas"];
const params = { path: { stream: "Order-1" } };
const append = "/streams/{stream}/events";
// @ts-expect-error
await api.POST(append, { params, body: { events: [{ tipe: "Placed" }] } });
// @ts-expect-error
await api.POST(append, { params, body: { events: 5 } });
// @ts-expect-error
export const unknown: Schemas["Append"] = { evnts: [{ type: "Placed" }] };
// @ts-expect-error
export const misspelt: Schemas["Append"] = { events: [{ type: "Placed" }], expcted: 1 };
// @ts-expect-error
export const one: Schemas["StreamAppend"] = { stream: "Order-1", event: [{ type: "Placed" }] };
// @ts-expect-error
await api.POST("/appends", { body: { appends: [{ stream: "Order-1", events: [{ tipe: "Placed" }] }] } });
// @ts-expect-error
export const tagged: Schemas["AppendTagged"] = { events: [{ type: "Placed", tag: ["order:1"] }] };
// @ts-expect-error
await api.POST("/events/query", { body: { query: { items: [{ tag: ["order:1"] }] } } });
const answer = await api.POST(append, { params, body: { events: [{ type: "Placed" }] } });
// @ts-expect-error
console.log(answer.data.version);
"""

PYTHON_TYPOS = """
from store_client.models import Append, AppendTagged, EventQueryItem, NewEvent, StreamAppend

NewEvent(tipe="Placed")  # type: ignore[call-arg]
Append(events=5)  # type: ignore[arg-type]
Append(events=[NewEvent("Placed")], expcted=1)  # type: ignore[call-arg]
Append(events=[{"tipe": "Placed"}])  # type: ignore[list-item]
StreamAppend(stream="Order-1", event=[NewEvent("Placed")])  # type: ignore[call-arg]
AppendTagged(events=[NewEvent("Placed", tag=["order:1"])])  # type: ignore[call-arg]
EventQueryItem(tag=["order:1"])  # type: ignore[call-arg]
"""

LENIENT = "[mypy]\n[mypy-store_client.client]\nignore_errors = true\n"
"""The generator's own module around httpx is the same for every document, and not strict."""

OPTIONS = {
    "target": "es2022",
    "module": "nodenext",
    "strict": True,
    "exactOptionalPropertyTypes": True,
    "noUncheckedIndexedAccess": True,
    "noPropertyAccessFromIndexSignature": True,
    "types": ["node"],
    "skipLibCheck": False,
}

PRINTED = [
    "version 1 replayed true",
    "version 2 conflict urn:epochal:problem:version-conflict at 2",
    "event Placed",
    "event Paid",
    "feed true true",
    "tagged 201 1",
]


def program(language: str) -> str:
    """The program of the page in a language, on streams of a category that no reaction of other tests reads."""
    (found,) = re.findall(rf"^```{language}\n(.*?)^```$", GUIDE.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    return str(found).replace("Order-", "Client-")


def run(place: Path, *words: str | Path, **environment: str) -> str:
    """What a program prints that succeeds."""
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
    done = subprocess.run(
        [str(each) for each in words],
        cwd=place,
        check=False,
        env={**os.environ, "PATH": path, **environment},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.mark.parametrize("document", ["openapi.json", "openapi-3.0.json"])
def test_the_typescript_client_refuses_typos_and_works(
    places: Places, deployment: LocalDeployment, tmp_path: Path, document: str
) -> None:
    modules = places.root / "node_modules"
    (tmp_path / "node_modules").symlink_to(modules)
    (tmp_path / "package.json").write_text('{"type": "module"}')
    (tmp_path / "tsconfig.json").write_text(json.dumps({"compilerOptions": OPTIONS}))
    (tmp_path / document).write_text(documents()[document], "utf-8")
    (tmp_path / "client.ts").write_text(program("ts"), "utf-8")
    (tmp_path / "typos.ts").write_text(TYPESCRIPT_TYPOS, "utf-8")
    node = modules / ".bin"
    run(tmp_path, node / "openapi-typescript", document, "--output", "epochal.ts")
    run(tmp_path, node / "tsc")
    printed = run(tmp_path, "node", "client.js", **deployment.store().variables)
    assert printed.splitlines() == PRINTED


@pytest.mark.parametrize("document", ["openapi.json", "openapi-3.0.json"])
def test_the_python_client_refuses_typos_and_works(
    deployment: LocalDeployment, tmp_path: Path, document: str
) -> None:
    (tmp_path / document).write_text(documents()[document], "utf-8")
    (tmp_path / "client.py").write_text(program("python"), "utf-8")
    (tmp_path / "typos.py").write_text(PYTHON_TYPOS, "utf-8")
    (tmp_path / "mypy.ini").write_text(LENIENT, "utf-8")
    generated = run(
        tmp_path,
        *("openapi-python-client", "generate", "--path", document),
        *("--meta", "none", "--output-path", "store_client"),
    )
    assert "Warning" not in generated
    run(
        tmp_path,
        "mypy",
        "--strict",
        "--config-file",
        "mypy.ini",
        "--cache-dir",
        "cache",
        "client.py",
        "typos.py",
    )
    printed = run(tmp_path, sys.executable, "client.py", **deployment.store().variables)
    assert [line.lower() for line in printed.splitlines()] == [line.lower() for line in PRINTED]
