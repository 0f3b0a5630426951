"""The types of the client in TypeScript are those of the document and refuse typos; it is small and needs nothing."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path
from typing import Final

import pytest

from tests.clients.schema import SCHEMA, generate
from tests.clients.typescript import PACKAGE, ROOT, TOOLS, run

MOST_BYTES: Final = 15 * 1024
"""Bytes of the client, bundled, minified and compressed with gzip."""

SOURCES: Final = sorted((PACKAGE / "src").glob("*.ts"))

STRICT: Final = {
    "target": "es2022",
    "module": "nodenext",
    "strict": True,
    "exactOptionalPropertyTypes": True,
    "noUncheckedIndexedAccess": True,
    "skipLibCheck": False,
    "noEmit": True,
}

TYPOS: Final = """
import { connect, type Decider, type NewEvent } from "@epochal/client";

const store = connect({ url: "https://example.org" });
const events: NewEvent[] = [{ type: "Placed", data: { total: 12 } }];
// @ts-expect-error
await store.append("Order-1", [{ tipe: "Placed" }]);
// @ts-expect-error
await store.append("Order-1", 5);
// @ts-expect-error
await store.append("Order-1", events, { expcted: 1 });
// @ts-expect-error
await store.append("Order-1", events, { expected: "no_straem" });
// @ts-expect-error
await store.append("Order-1", [{ type: "Placed", tag: ["order:1"] }]);
// @ts-expect-error
await store.appendAll([{ stream: "Order-1", event: events }]);
// @ts-expect-error
await store.appendEach([{ stream: "Order-1", events, idempotencykey: "a" }]);
// @ts-expect-error
await store.appendTagged(events, { failIf: { items: [{ tag: ["order:1"] }] } });
// @ts-expect-error
await store.query({ item: [] });
// @ts-expect-error
store.read("Order-1", { direction: "backwards" });
// @ts-expect-error
store.feed({ category: ["Order"] });
// @ts-expect-error
console.log((await store.append("Order-1", events)).verison);

type Order = { type: "Placed"; data: { total: number } } | { type: "Paid" };
export const orders: Decider<number, string, Order> = {
  initial: 0,
  // @ts-expect-error
  evolve: (total, event) => (event.type === "Placed" ? event.data.totl : total),
  // @ts-expect-error
  decide: () => [{ type: "Payed" }],
};
"""

RIGHT: Final = """
import {
  bearer, connect, ConflictError, environmentCredentials, newKey, pathOf, sigv4,
  type Checkpoint, type Decider, type Token,
} from "@epochal/client";

const auth = sigv4({ region: "eu-west-1", credentials: environmentCredentials });
const store = connect({ url: "https://example.org", auth });
connect({ url: "https://example.org", auth: bearer(() => "token"), attempts: 3 });
const { token, version } = await store.append("Order-1", [{ type: "Placed", data: { total: 12 } }], {
  expected: "no_stream",
  key: newKey(),
});
await store.append("Order-1", [{ type: "Paid" }], { expected: token });
await store.append("Order-1", [{ type: "Paid" }], { expected: version });
await store.append("Order-1", [], { unfolds: [{ type: "Summary", data: 1 }], expected: "1.a" as Token });
for await (const event of store.read("Order-1", { direction: "backward" })) console.log(event.type, event.data);
let checkpoint: Checkpoint | undefined;
for await (const batch of store.feed({ from: checkpoint, categories: ["Order"] })) checkpoint = batch.checkpoint;

type Order = { type: "Placed"; data: { total: number } } | { type: "Paid" };
const orders: Decider<number, "pay", Order> = {
  initial: 0,
  evolve: (total, event) => (event.type === "Placed" ? event.data.total + event.index : total),
  decide: (command, total) => (total > 0 && command === "pay" ? [{ type: "Paid" }] : []),
};
const first = await store.decide("Order-1", orders, "pay");
await store.decide("Order-1", orders, "pay", { known: first });
try {
  await store.request({ method: "DELETE", path: pathOf("streams", "Order-1") });
} catch (error) {
  if (error instanceof ConflictError) console.log(error.version, error.token);
}
for (const result of await store.appendEach([{ stream: "Order-1", events: [{ type: "Paid" }] }])) {
  if (result.error) console.log(result.error.type);
  else console.log(result.version);
}
"""


def test_the_types_are_those_of_the_document(tmp_path: Path) -> None:
    generate(tmp_path / "schema.ts")
    assert (tmp_path / "schema.ts").read_text("utf-8") == SCHEMA.read_text("utf-8"), (
        "the document has changed: run .venv/bin/python -m tests.clients.schema"
    )


@pytest.mark.parametrize("types", [["node"], []], ids=["node", "browser"])
@pytest.mark.parametrize("program", [TYPOS, RIGHT], ids=["typos", "right"])
def test_typos_do_not_compile_and_right_programs_do(
    client: Path, tmp_path: Path, program: str, types: list[str]
) -> None:
    package = tmp_path / "node_modules" / "@epochal" / "client"
    package.mkdir(parents=True)
    (package / "package.json").write_text((PACKAGE / "package.json").read_text("utf-8"))
    (package / "dist").symlink_to(client.parent)
    lib = ["es2022"] if types else ["es2022", "dom", "dom.iterable"]
    options = {**STRICT, "lib": lib, "types": types, "preserveSymlinks": True}
    if types:
        options["typeRoots"] = [str(ROOT / "node_modules" / "@types")]
    (tmp_path / "tsconfig.json").write_text(json.dumps({"compilerOptions": options, "include": ["*.ts"]}))
    (tmp_path / "package.json").write_text('{"type": "module"}')
    (tmp_path / "program.ts").write_text(program, "utf-8")
    run(TOOLS / "tsc", "--project", tmp_path)


def test_the_bundle_is_small(client: Path) -> None:
    for platform in ("browser", "node"):
        bundle = run(
            *(TOOLS / "esbuild", client, "--bundle", "--minify", "--format=esm", f"--platform={platform}")
        )
        assert len(gzip.compress(bundle.encode(), mtime=0)) <= MOST_BYTES


NAMES: Final = """
import * as client from "./bundle.mjs";

for (const [name, Class] of Object.entries(client)) {
  if (!name.endsWith("Error")) continue;
  console.log(name, new Class({ title: "", type: "" }, "", "").name);
}
"""


def test_errors_keep_their_names_in_a_bundle(client: Path, tmp_path: Path) -> None:
    run(TOOLS / "esbuild", client, "--bundle", "--minify", "--format=esm", f"--outfile={tmp_path}/bundle.mjs")
    (tmp_path / "names.mjs").write_text(NAMES, "utf-8")
    lines = run("node", tmp_path / "names.mjs").splitlines()
    assert len(lines) > 10
    assert lines == [f"{line.split()[0]} {line.split()[0]}" for line in lines]


EXPORTED: Final = """
ConditionFailedError ConflictError ConnectionError ContentError EpochalError GatewayError InvalidInputError
NotFoundError ProblemError PrunedError StreamDeletedError TooLargeError UnavailableError UndeterminedError
bearer connect environmentCredentials newKey pathOf sigv4
"""


def test_the_client_exports_what_it_is_known_to(client: Path) -> None:
    program = f"console.log(Object.keys(await import({json.dumps(client.as_uri())})).sort().join(' '))"
    assert run("node", "--input-type=module", text=program).split() == sorted(EXPORTED.split())


def test_the_client_needs_no_other_package_and_nothing_of_node() -> None:
    package = json.loads((PACKAGE / "package.json").read_text("utf-8"))
    assert not {"dependencies", "peerDependencies", "optionalDependencies"} & package.keys()
    texts = [source.read_text("utf-8") for source in SOURCES]
    imported = {
        name
        for text in texts
        for name in re.findall(r'^(?:import|export|\}).* from "([^"]+)";$', text, re.MULTILINE)
    }
    assert not [text for text in texts if re.search(r"\b(import|require)\(", text)]
    assert imported <= {f"./{source.stem}.js" for source in SOURCES}


def test_every_public_name_is_documented() -> None:
    for source in SOURCES:
        if source.stem in ("index", "schema"):
            continue
        lines = source.read_text("utf-8").splitlines()
        for number, line in enumerate(lines):
            if re.match(r"export (async )?(function\*?|class|interface|type|const) ", line):
                assert lines[number - 1].endswith("*/"), f"{source.name}:{number + 1} has no description"
