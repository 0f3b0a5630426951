"""Requests to a deployed HTTP API, signed with the caller's credentials or bearing a token of theirs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from botocore.exceptions import BotoCoreError
from botocore.httpsession import URLLib3Session

from epochal.codec import json
from epochal.errors import Unavailable

SECONDS: Final = 35
"""The API answers within 29, a long poll included."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What came back; names of headers are in lower case."""

    status: int
    headers: Mapping[str, str]
    content: bytes

    @property
    def json(self) -> Any:
        """The document."""
        return json.loads(self.content)

    def __str__(self) -> str:
        return f"{self.status} {self.content[:200].decode(errors='replace')}"


@dataclass(frozen=True, slots=True, kw_only=True)
class SignedHttp:
    """An API behind a gateway, or behind addresses of the functions' own. Safe under threads.

    A request goes to a path of the API, signed, or to a URL as it is. A body that is not bytes is sent as JSON.

    Attributes:
        base: of a method and a path: where that is served, without a slash at its end.
        service: that requests are signed for, `execute-api` or `lambda`.
        token: is sent in place of a signature, where the API wants tokens.
    """

    base: Callable[[str, str], str]
    service: str
    region: str
    credentials: Callable[[], Credentials]
    token: str = ""
    session: URLLib3Session = field(default_factory=lambda: URLLib3Session(timeout=SECONDS))

    def __call__(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        headers: Mapping[str, str] | None = None,
        signed: bool = True,
    ) -> Answer:
        """The answer, whatever its status; raises `Unavailable` where there is none."""
        elsewhere = "://" in path
        content = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body)
        named = {"Content-Type": "application/json"} if content and not elsewhere else {}
        request = AWSRequest(
            method,
            path if elsewhere else self.base(method, path) + path,
            {**named, **(headers or {})},
            content,
        )
        if signed and not elsewhere:
            self._sign(request)
        try:
            answer = self.session.send(request.prepare())
        except BotoCoreError as error:
            raise Unavailable(str(error)) from error
        return Answer(
            status=answer.status_code,
            headers={name.lower(): value for name, value in answer.headers.items()},
            content=answer.content,
        )

    def _sign(self, request: AWSRequest) -> None:
        if self.token:
            request.headers["Authorization"] = f"Bearer {self.token}"
        else:
            frozen: Any = self.credentials().get_frozen_credentials()
            SigV4Auth(frozen, self.service, self.region).add_auth(request)
