"""The client in TypeScript on what is deployed: the cases, its README and its page as written, and large bodies."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Final

import pytest

from epochal.contrib.local.deploy import LocalDeployment
from tests.clients.cases import Case, Matcher, read_cases
from tests.clients.packing import pack
from tests.clients.typescript import PACKAGE, ROOT, TOOLS, Played, build, make_calls, run

LIVE: Final = [case for case in read_cases() if case.live is not None]

BODIES: Final = """
import { randomBytes } from "node:crypto";
import { connect, environmentCredentials, sigv4 } from "@epochal/client";

const { EPOCHAL_API_URL: url, AWS_DEFAULT_REGION: region } = process.env;
const store = connect({ url, auth: sigv4({ region, credentials: environmentCredentials }) });
const stream = `Scan-${crypto.randomUUID()}`;
const compressible = { text: "ä".repeat(2_000_000) };
const odd = { text: randomBytes(1_000_000).toString("base64") };
const uploaded = JSON.stringify({ text: randomBytes(5_000_000).toString("base64") });
const bytes = randomBytes(7_000_000);
await store.append(stream, [
  { type: "Compressible", data: compressible },
  { type: "Odd", data: odd },
  { type: "Uploaded", claim: await store.upload(uploaded) },
  { type: "Bytes", claim: await store.upload(bytes) },
]);
const events = [];
for await (const event of store.read(stream)) events.push(event);
console.log(events.map((event) => event.type).join(" "));
console.log(events[0].data.text === compressible.text, events[1].data.text === odd.text);
console.log(events[2].data.text === JSON.parse(uploaded).text, events[3].data64 === bytes.toString("base64"));
const items = [];
for await (const batch of store.feed({ categories: ["Scan"] })) {
  items.push(...batch.items.filter((item) => item.stream === stream));
  if (items.length === 4) break;
}
console.log(items[0].data.text === compressible.text, items[3].data64 === bytes.toString("base64"));
"""

OPTIONS: Final = {
    "target": "es2022",
    "module": "nodenext",
    "lib": ["es2022"],
    "types": ["node"],
    "typeRoots": [str(ROOT / "node_modules" / "@types")],
    "strict": True,
    "exactOptionalPropertyTypes": True,
    "noUncheckedIndexedAccess": True,
    "noPropertyAccessFromIndexSignature": True,
}


def blocks(page: Path, language: str) -> list[str]:
    """The code of a page in a language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", page.read_text("utf-8"), re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty folder in which the packed client is installed."""
    archive = pack(tmp_path_factory.mktemp("packed"))
    place = tmp_path_factory.mktemp("project")
    run("npm", "install", "--offline", "--no-audit", "--no-fund", "--loglevel=error", archive, place=place)
    return place


def test_the_package_has_what_it_needs_and_nothing_else(project: Path) -> None:
    installed = project / "node_modules" / "@epochal" / "client"
    names = {path.name for path in installed.iterdir()}
    assert names == {"LICENSE", "README.md", "dist", "package.json", "src"}
    assert (installed / "dist" / "index.d.ts").exists()
    assert [path.name for path in (project / "node_modules").iterdir() if path.name[0] != "."] == ["@epochal"]


def test_the_readme_works_as_written(project: Path, deployment: LocalDeployment) -> None:
    readme = PACKAGE / "README.md"
    (program,) = blocks(readme, "js")
    (printed,) = blocks(readme, "text")
    (project / "orders.mjs").write_text(program, "utf-8")
    lines = run("node", "orders.mjs", place=project, environment=deployment.variables).splitlines()
    feed = [line for line in lines if line.startswith("feed ")]
    assert [line for line in lines if line not in feed] == printed.splitlines()[:-1]
    assert " ".join(["feed", *(line.removeprefix("feed ") for line in feed)]) == printed.splitlines()[-1]


def test_the_page_compiles_and_works_as_written(project: Path, deployment: LocalDeployment) -> None:
    lines = "\n".join(blocks(ROOT / "docs" / "guide" / "typescript.md", "ts")).splitlines()
    (project / "page.mts").write_text("\n".join(lines), "utf-8")
    (project / "tsconfig.json").write_text(json.dumps({"compilerOptions": OPTIONS, "files": ["page.mts"]}))
    run(TOOLS / "tsc", "--project", project)
    printed = run("node", "page.mjs", place=project, environment=deployment.variables).splitlines()
    assert printed == [
        "conflict at 2",
        "transferred [ 1, 1 ]",
        "each [ 'version-conflict', 2 ]",
        "reserved 90",
        "0 Placed { total: 12 }",
        "1 Paid undefined",
        "last Paid",
        "version 2",
        "tagged 0 1",
        "feed Reserved",
        "feed Reserved",
    ]


def test_large_bodies_come_back_as_they_were(project: Path, deployment: LocalDeployment) -> None:
    (project / "bodies.mjs").write_text(BODIES, "utf-8")
    printed = run("node", "bodies.mjs", place=project, environment=deployment.variables).splitlines()
    assert printed == ["Compressible Odd Uploaded Bytes", "true true", "true true", "true true"]


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory, deployment: LocalDeployment) -> dict[str, object]:
    """What came of the cases that need no scripted server."""
    client = build(tmp_path_factory.mktemp("client"))
    options = {"auth": {"region": deployment.endpoint.region}}
    runs = [case.of_run(f"t{number}") for number, case in enumerate(LIVE)]
    entries = [
        Played(
            url=deployment.api_url,
            options={**run.options, **options},
            calls=(*(run.live or {}).get("before", ()), run.call),
        )
        for run in runs
    ]
    seen = make_calls(client, entries, **deployment.variables)
    return {case.name: outcome for case, outcome in zip(LIVE, seen, strict=True)}


@pytest.mark.parametrize("case", LIVE, ids=lambda case: case.name)
def test_what_is_deployed_does_what_a_case_says(case: Case, outcomes: dict[str, object]) -> None:
    run = case.of_run(f"t{LIVE.index(case)}")
    sees = (run.live or {}).get("sees", run.sees)
    assert Matcher().difference(sees, outcomes[case.name], exact=False) is None
