"""The reference page: its examples are replayed in their order, and its tables are the code's.

In a request `…` stands for what an answer above it said: the latest ETag, or the position of the latest query.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from epochal.http.routes import operations
from tests.support.api import Api

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "http.md"
ANY = "…"


def blocks() -> Iterator[tuple[str, str]]:
    """Requests with their answers."""
    text = PAGE.read_text()
    requests = re.findall(r"```http request\n(.*?)```", text, re.DOTALL)
    answers = re.findall(r"```http answer\n(.*?)```", text, re.DOTALL)
    return zip(requests, answers, strict=True)


def parts(block: str) -> tuple[str, dict[str, str], str]:
    """First line, headers, body."""
    head, _, body = block.partition("\n\n")
    first, *lines = head.strip().splitlines()
    return first, dict(line.split(": ", 1) for line in lines), body.strip()


def matches(written: Any, found: Any) -> bool:
    """Equal, where `…` stands for anything."""
    if written == ANY:
        return True
    if isinstance(written, dict) and isinstance(found, dict):
        return written.keys() == found.keys() and all(matches(written[name], found[name]) for name in written)
    if isinstance(written, list) and isinstance(found, list):
        return len(written) == len(found) and all(map(matches, written, found))
    return bool(written == found)


def test_the_examples_are_what_the_api_answers() -> None:
    api, etag, position, replayed = Api(), "", "", 0
    for request, answer in blocks():
        first, headers, body = parts(request)
        method, _, target = first.partition(" ")
        path, _, query = target.partition("?")
        sent = {name: value.replace(f'"{ANY}"', etag) for name, value in headers.items()}
        api.index()
        content = body.replace(f'"{ANY}"', f'"{position}"').encode()
        found = api.call(method, path, content or None, query=query, headers=sent)
        status, named, written = parts(answer)
        assert found.status == int(status), found.text
        assert named.keys() <= found.headers.keys()
        if written:
            assert matches(json.loads(written), json.loads(found.text)), found.text
        etag = found.headers.get("ETag", etag)
        position = found.json.get("position", position) if first == "POST /events/query" else position
        replayed += 1
    assert replayed >= 6


def first_of(path: str) -> str:
    """The path of the same operation on the layout that the table is of."""
    for twin, first in (
        ("/tips/", "/streams/"),
        ("/dcb/query", "/events/query"),
        ("/dcb/count", "/events/count"),
    ):
        path = path.replace(twin, first)
    return path.removeprefix("/dcb")


def test_the_list_of_routes_is_the_codes_and_other_layouts_have_the_same_below_another_path() -> None:
    listed = re.findall(r"^- `(\w+ /\S*)` \((\w+)(?:, (\w+))?\): ", PAGE.read_text(), re.MULTILINE)
    usual = {"append": "append", "replay": "read", "feed": "feed"}
    rows = [(key, function, scope or usual[function]) for key, function, scope in listed]
    routes = {route.key: (route.function, route.scope) for route in operations()}
    twins = {
        key: first_of(key.split()[1]) for key in routes if key.split()[1].startswith(("/tips/", "/dcb/"))
    }
    assert rows == [(key, *served) for key, served in routes.items() if key not in twins]
    assert len(twins) == 15
    for key, path in twins.items():
        assert routes[key] == routes[f"{key.split()[0]} {path}"]
