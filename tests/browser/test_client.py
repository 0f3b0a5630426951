"""The client in TypeScript in a real browser: what it signs, appends, reads and follows there."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from tests.browser.conftest import Look
from tests.clients.local_api import local_api
from tests.clients.typescript import TOOLS, build, run
from tests.doors.gateway import StartResponse
from tests.support.api import Api

PAGE: Final = """<!doctype html>
<html lang="en">
<title>Orders</title>
<link rel="icon" href="data:,">
<main></main>
<script type="module">
import { connect, ConflictError, sigv4 } from "/client.js";

const lines = [];
try {
  const credentials = { accessKeyId: "test", secretAccessKey: "test" };
  const store = connect({ url: location.origin, auth: sigv4({ region: "eu-west-1", credentials }) });
  const placed = await store.append("Order-1", [{ type: "Placed", data: { total: 12 } }], { expected: "no_stream" });
  await store.append("Order-1", [{ type: "Paid" }], { expected: placed.token });
  await store.append("Order-1", [{ type: "Paid" }], { expected: placed.token }).catch((error) => {
    lines.push(`${error.name} ${error instanceof ConflictError} at ${error.version}`);
  });
  for await (const event of store.read("Order-1")) lines.push(`${event.index} ${event.type}`);
  const decide = (name, count) => [{ type: name, data: { count } }];
  const shipping = { initial: 0, evolve: (count) => count + 1, decide };
  lines.push(`decided ${(await store.decide("Order-1", shipping, "Shipped")).version}`);
  for await (const { items, checkpoint } of store.feed({ categories: ["Order"], follow: false })) {
    if (items.length > 0) lines.push(`feed ${items.map(({ type }) => type).join(" ")} ${checkpoint[30000]}`);
  }
} catch (error) {
  lines.push(String(error.stack));
}
const shown = document.createElement("p");
shown.id = "done";
shown.textContent = lines.join("; ");
document.querySelector("main").append(shown);
</script>
</html>
"""


EMPTY: Final = '<!doctype html><link rel="icon" href="data:,"><main></main>'


def test_the_client_works_in_a_browser(look: Look, tmp_path: Path) -> None:
    bundle = run(TOOLS / "esbuild", build(tmp_path), "--bundle", "--minify", "--format=esm")
    files = {
        "/": ("text/html", PAGE),
        "/empty": ("text/html", EMPTY),
        "/client.js": ("text/javascript", bundle),
    }

    def serve_file(environ: dict[str, Any], start_response: StartResponse) -> Iterable[bytes] | None:
        """The page and the client; None for what the API answers."""
        if environ["PATH_INFO"] not in files:
            return None
        media, text = files[environ["PATH_INFO"]]
        start_response("200 OK", [("Content-Type", media)])
        return [text.encode()]

    with local_api(Api(), serve_file) as url:
        flow = {"path": "/", "script": True, "steps": [{"wait": "#done"}]}
        request = {"base": url, "enter": "/empty", "pages": {}, "flows": {"orders": flow}, "pictures": None}
        seen = look(request)["flows"]["orders"]
    assert seen["text"] == (
        "ConflictError true at 2; 0 Placed; 1 Paid; decided 3; feed Placed Paid Shipped 0@1"
    )
    assert [complaint for complaint in seen["complaints"] if "409 (" not in complaint] == []
