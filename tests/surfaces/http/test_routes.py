"""The records of operations, which stacks, handlers and documentation share."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import pytest

from epochal.http.routes import operations
from tests.support.api import Api


def test_no_two_routes_are_the_same_operation_or_the_same_path_and_method() -> None:
    assert (
        len({route.key for route in operations()})
        == len({route.name for route in operations()})
        == len(operations())
    )


def test_every_route_is_served_by_the_function_it_names() -> None:
    """An operation that a function lacks would be a 500 on its first call."""
    for route in operations():
        body = {} if route.method in ("POST", "PUT") else None
        path = route.path.replace("{stream}", "Cat-1").replace("{partition}", "0")
        path = path.replace("{type}", "order").replace("{id}", "1")
        assert Api().call(route.method, path, body).status != 500


def test_stores_that_the_same_operations_are_on_are_kept_apart() -> None:
    """Streams as pages and as tips, tagged events here and there: of one deployment, with the same names."""
    api = Api()

    def sent(path: str, kind: str, **tags: list[str]) -> int:
        return api.call("POST", path, {"events": [{"type": kind, "data": 1, **tags}]}).status

    assert sent("/streams/Cart-1/events", "OnPages") == sent("/events", "OnPages", tags=["a:b"]) == 201
    assert api.call("GET", "/tips/Cart-1").problem == "stream-not-found"
    assert api.call("GET", "/dcb/tags/a:b").problem == "tag-not-found"

    assert sent("/tips/Cart-1/events", "OnTips") == sent("/dcb/events", "OnDcb", tags=["a:b"]) == 201
    for path, query, kind in (
        ("/streams/Cart-1/events", "", "OnPages"),
        ("/tips/Cart-1/events", "", "OnTips"),
        ("/events", "tag=a:b", "OnPages"),
        ("/dcb/events", "tag=a:b", "OnDcb"),
    ):
        assert [each["type"] for each in api.call("GET", path, query=query).json["events"]] == [kind]


def test_every_function_has_routes() -> None:
    assert {operation.function for operation in operations()} == {"append", "replay", "feed"}


@pytest.mark.parametrize(
    ("path", "template", "expected"),
    [
        ("/streams/a", "/streams/{stream}", {"stream": "a"}),
        ("/streams/", "/streams/{stream}", {"stream": ""}),
        ("/streams//events", "/streams/{stream}/events", {"stream": ""}),
        ("/streams/a/b", "/streams/{stream}", None),
        ("/streams/a/event", "/streams/{stream}/events", None),
        ("/health", "/health", {}),
    ],
)
def test_a_path_matches_a_template_segment_by_segment(
    path: str, template: str, expected: dict[str, str] | None
) -> None:
    operation = replace(operations()[0], path=template)
    assert operation.parameters(path) == expected


def test_reading_the_records_imports_nothing_heavy() -> None:
    """Stacks import them at synthesis."""
    code = (
        "import sys; before = set(sys.modules); from epochal.http.routes import operations; operations()\n"
        "print(*sorted(name for name in set(sys.modules) - before if name.startswith('epochal')))"
    )
    found = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=_paths()
    )
    modules = ("", ".operation", ".routes")
    http = ("", ".http", ".http.routes", ".plugin")
    own = [f"contrib.{name}{module}" for name in ("event_store_adapter", "sekiban") for module in http]
    own += ["contrib.equinox", "contrib.equinox.plugin", "store", "store.plugin"]
    optional = ("contrib.timers", "contrib.timers.operations")
    plugins = ("contrib", *own, *optional)
    listing = ("extensions", "plugins", "settings", "declaration", "errors", "lazy_dataclasses")
    loading = ("deferred", "named_objects")
    assert {*found.stdout.split()} == {
        "epochal",
        *(f"epochal.{each}" for each in (*plugins, *listing, *loading)),
        *(f"epochal.http{each}" for each in modules),
    }


def _paths() -> dict[str, str]:
    return {"PYTHONPATH": ":".join(path for path in sys.path if path)}
