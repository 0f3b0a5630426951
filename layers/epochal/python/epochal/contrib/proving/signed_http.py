"""Requests to a deployed HTTP API, signed with the caller's credentials or bearing a token of theirs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from botocore.exceptions import BotoCoreError
from botocore.httpsession import URLLib3Session

from epochal.codec import json
from epochal.errors import Unavailable
from epochal.lazy_dataclasses import dataclass, field

ANSWER_SECONDS: Final = 35
"""Seconds to wait for a response: the API answers within 29, a long poll included."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A response over HTTP; names of headers are in lower case."""

    status: int
    headers: Mapping[str, str]
    content: bytes

    @property
    def json(self) -> Any:
        """The body, parsed as JSON."""
        return json.loads(self.content)

    def __str__(self) -> str:
        return f"{self.status} {self.content[:200].decode(errors='replace')}"


@dataclass(frozen=True, slots=True, kw_only=True)
class SignedHttp:
    """A client of an HTTP API behind a gateway, or behind URLs of the functions.

    A request goes to a path of the API, signed, or to a URL as it is. A body that is not bytes is sent as JSON. Safe
    under threads.

    Attributes:
        base: function from a method and a path to the base URL, which has no slash at its end.
        service: name of the service in signatures, `execute-api` or `lambda`.
        region: region in signatures.
        credentials: function that returns the caller's credentials.
        token: bearer token that is sent in place of a signature, where the API wants tokens.
    """

    base: Callable[[str, str], str]
    service: str
    region: str
    credentials: Callable[[], Credentials]
    token: str = ""
    session: URLLib3Session = field(default_factory=lambda: URLLib3Session(timeout=ANSWER_SECONDS))

    def __call__(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        headers: Mapping[str, str] | None = None,
        signed: bool = True,
    ) -> Answer:
        """Send a request to a path of the API or to a URL, and return the response of whatever status.

        Raises:
            Unavailable: there is no response.
        """
        elsewhere = "://" in path
        content = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body)
        own_headers = {"Content-Type": "application/json"} if content and not elsewhere else {}
        request = AWSRequest(
            method,
            path if elsewhere else self.base(method, path) + path,
            {**own_headers, **(headers or {})},
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
        """Add the bearer token to a request, or else an AWS signature."""
        if self.token:
            request.headers["Authorization"] = f"Bearer {self.token}"
        else:
            frozen: Any = self.credentials().get_frozen_credentials()
            SigV4Auth(frozen, self.service, self.region).add_auth(request)
