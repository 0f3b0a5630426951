"""The HTTP API as clients depend on it: paths, parameters, schemas and statuses of the OpenAPI document, without words.

Resources of layouts of other libraries are apart, so that it shows when those alone move or change.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from epochal.http.openapi import document

OTHERS: Final = ("/tips/", "/aggregates/", "/dcb/", "/projections/")
"""Where the paths of resources of other libraries' layouts begin."""

_WORDS: Final = {"description", "summary", "examples", "title"}

Json = Mapping[str, Any]


def native() -> list[str]:
    """Epochal's own resources."""
    return _lines({path: each for path, each in document()["paths"].items() if not path.startswith(OTHERS)})


def others() -> list[str]:
    """Those of layouts of other libraries, with the schemas that no other resource has."""
    known = set(native())
    found = _lines({path: each for path, each in document()["paths"].items() if path.startswith(OTHERS)})
    return [line for line in found if line not in known or not line.startswith("\nschema")]


def _lines(paths: Json) -> list[str]:
    components = document()["components"]
    operations = [line for path, methods in paths.items() for line in _operations(path, methods)]
    return [
        *operations,
        *(_schema(name, components["schemas"][name]) for name in _reached(paths, components)),
    ]


def _operations(path: str, methods: Json) -> Iterator[str]:
    for method, operation in methods.items():
        scopes = [*({name: scopes} for each in operation["security"] for name, scopes in each.items())]
        yield f"\n{method.upper()} {path} {operation['operationId']} {_plain(scopes)}"
        for each in operation.get("parameters", ()):
            yield f"  {each['in']} {each['name']}{_needed(each['required'])} {_plain(each['schema'])}"
        if body := operation.get("requestBody"):
            yield f"  body{_needed(body['required'])} {_plain(body['content'])}"
        for status, answer in operation["responses"].items():
            yield f"  {status} {_plain(answer)}"


def _schema(name: str, schema: Json) -> str:
    """A schema with a line for each of its fields: one text, since it is the same wherever it is referred to."""
    fields = schema.get("properties", {})
    rest = {key: value for key, value in schema.items() if key not in ("properties", "required")}
    required = set(schema.get("required", ()))
    lines = [f"  {field}{_needed(field in required)} {_plain(each)}" for field, each in fields.items()]
    return "\n".join([f"\nschema {name} {_plain(rest)}", *lines])


def _needed(required: bool) -> str:
    return "!" if required else ""


def _plain(value: Any) -> str:
    text = json.dumps(_bare(value), sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return re.sub(r'\{"\$ref":"#/components/\w+/([^"]+)"\}', r"→\1", text)


def _bare(value: Any) -> Any:
    """A part of the document without its words."""
    if isinstance(value, Mapping):
        fields = {name: _bare(each) for name, each in value.get("properties", {}).items()}
        rest = {name: _bare(each) for name, each in value.items() if name not in {*_WORDS, "properties"}}
        return {**rest, **({"properties": fields} if fields else {})}
    return [_bare(each) for each in value] if isinstance(value, list) else value


def _reached(paths: Json, components: Json) -> list[str]:
    """Schemas that these paths refer to, and those that they refer to in turn."""
    reached: dict[tuple[str, str], None] = {}
    waiting = [json.dumps(paths)]
    while waiting:
        for kind, name in re.findall(r"#/components/(\w+)/([^\"]+)", waiting.pop()):
            if (kind, name) not in reached:
                reached[kind, name] = None
                waiting.append(json.dumps(components[kind][name]))
    return sorted(name for kind, name in reached if kind == "schemas")
