"""Holding requests and answers to the OpenAPI document."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from functools import cache
from typing import Any

from jsonschema import Draft202012Validator, ValidationError

from epochal.http.openapi import document
from epochal.http.routes import operations


def hold(event: Mapping[str, Any], status: int, headers: Mapping[str, str], body: str) -> None:
    """Fail if a response, or an accepted request, does not match the API's document."""
    method, path = event["requestContext"]["http"]["method"], event["rawPath"]
    templates = [
        each.path for each in operations() if each.method == method and each.parameters(path) is not None
    ]
    if not templates:
        assert status in (404, 405), f"{method} {path} is not documented, yet it was answered with {status}"
        return
    operation = _document()["paths"][templates[0]][method.lower()]
    told = operation["responses"].get(str(status))
    assert told is not None, f"{method} {path} was answered with {status}, which is not documented: {body}"
    try:
        _hold_answer(_resolved(told), headers, body)
    except ValidationError as error:
        raise AssertionError(f"{method} {path}, answered with {status}: {error.message}: {body}") from error
    if status < 300 and "requestBody" in operation:
        sent = event.get("body", "")
        content = base64.b64decode(sent) if event["isBase64Encoded"] else sent
        _validator(_schema(operation["requestBody"])).validate(json.loads(content))


def _hold_answer(documented: Mapping[str, Any], headers: Mapping[str, str], body: str) -> None:
    assert set(headers) - {"Content-Type"} <= set(documented["headers"]), f"undocumented header in {headers}"
    if "content" not in documented:
        assert not body
        return
    assert headers["Content-Type"] in documented["content"]
    _validator(_schema(documented)).validate(json.loads(body))


def _schema(documented: Mapping[str, Any]) -> str:
    (content,) = documented["content"].values()
    return json.dumps(content["schema"], sort_keys=True)


@cache
def _validator(schema: str) -> Draft202012Validator:
    return Draft202012Validator({**json.loads(schema), "components": _document()["components"]})


@cache
def _document() -> dict[str, Any]:
    return document()


def _resolved(documented: dict[str, Any]) -> dict[str, Any]:
    if "$ref" not in documented:
        return documented
    found: dict[str, Any] = _document()["components"]["responses"][documented["$ref"].rpartition("/")[2]]
    return found
