"""Declarations of parameters: in paths, query strings and headers."""

from __future__ import annotations

from typing import Any, Final

from epochal.http.schemas import Schema, text
from epochal.settings import KEY_WINDOW_SECONDS

Parameter = dict[str, Any]

_ETAG: Final = r'(W/)?"[!#-~]*"'


def parameter(where: str, name: str, schema: Schema, *, required: bool = False) -> Parameter:
    """Return the OpenAPI object that declares a parameter of a path, query string or header.

    Args:
        where: `path`, `query` or `header`.
        schema: schema of the value; its description becomes the parameter's.
    """
    description = schema["description"]
    inner = {key: value for key, value in schema.items() if key != "description"}
    return {"name": name, "in": where, "required": required, "description": description, "schema": inner}


def path(name: str, schema: Schema) -> Parameter:
    """Declare a required parameter of a path."""
    return parameter("path", name, schema, required=True)


def query(name: str, schema: Schema) -> Parameter:
    """Declare a parameter of a query string; one with an array schema may be repeated."""
    return parameter("query", name, schema)


def header(name: str, description: str, **more: Any) -> Parameter:
    """Declare a header of a request, whose value is text."""
    return parameter("header", name, text(description, **more))


KNOWN_STATES: Final = header(
    "If-None-Match",
    "ETags of states that the caller already has, or `*`.",
    pattern=rf"(\*|{_ETAG}( *, *{_ETAG})*)",
)
IDEMPOTENCY_KEY: Final = header(
    "Idempotency-Key",
    "Repeats of the request with the same key and content are answered like the first for "
    f"{KEY_WINDOW_SECONDS // 3600} hours, whatever they expect.",
    most=255,
    pattern=r"[\x21-\x7e]{1,255}",
)
NO_CACHE: Final = {
    "Cache-Control": text("`no-cache`: caches may store the answer but must revalidate it each time.")
}
