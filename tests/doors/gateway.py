"""The HTTP API as a WSGI application: what stands between a client and the functions, as API Gateway does it.

- The path is percent-decoded once, all but `%25`; what is no UTF-8 then arrives as replacement characters.
- Headers of one name are joined by a comma, names in lower case.
- A method that no route has reaches a function here, so that the functions' own answer is tested too; the real gateway
  answers 404 by itself.

Who is calling is not looked at: that is the deployed gateway's business (`test_callers`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from tests.support.api import Api, gateway_event

StartResponse = Callable[[str, list[tuple[str, str]]], object]


@dataclass(frozen=True, slots=True)
class Gateway:
    """The API over tables in memory, as an application to be called in process."""

    api: Api

    def __call__(self, environ: dict[str, Any], start_response: StartResponse) -> Iterable[bytes]:
        method = environ["REQUEST_METHOD"]
        answer = self.api.invoke(_event(environ))
        start_response(f"{answer.status} -", list(answer.headers.items()))
        return [] if method == "HEAD" else [answer.text.encode()]


def _event(environ: dict[str, Any]) -> dict[str, Any]:
    path = environ["REQUEST_URI"].partition("?")[0]
    length = int(environ.get("CONTENT_LENGTH") or 0)
    headers = {
        name.removeprefix("HTTP_").replace("_", "-"): value
        for name, value in environ.items()
        if name.startswith("HTTP_") or (name == "CONTENT_TYPE" and value)
    }
    return gateway_event(
        environ["REQUEST_METHOD"],
        unquote(path.replace("%25", "%2525")),
        environ["wsgi.input"].read(length),
        query=environ.get("QUERY_STRING", ""),
        headers=headers,
    )
