"""botocore's signer and HTTP session as a carrier, without the machinery of its clients.

Beside boto3 and its client it is imported in half the time, and a request takes half of the CPU.
"""

from __future__ import annotations

import socket
from dataclasses import dataclass, field
from typing import Any, Final

from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from botocore.httpsession import URLLib3Session

from epochal.dynamo.protocol.messages import answer_of, body_of, headers_of
from epochal.dynamo.protocol.requests import DynamoRequest

CONNECT_SECONDS: Final = 2
READ_SECONDS: Final = 6
"""DynamoDB answers in milliseconds; a request that takes seconds is better tried again elsewhere."""

CONNECTIONS: Final = 32

_AT_ONCE: Final[Any] = [(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)]
"""Headers and body are sent one after the other: the body would wait for 40 ms until the headers are acknowledged."""


def _session() -> URLLib3Session:
    seconds: Any = (CONNECT_SECONDS, READ_SECONDS)
    return URLLib3Session(timeout=seconds, max_pool_connections=CONNECTIONS, socket_options=_AT_ONCE)


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionCarrier:
    """Sends requests to one address. Safe to share between threads.

    Attributes:
        url: of the service.
        region: that requests are signed for.
        credentials: that each request asks for anew, so that those that expire are renewed.
    """

    url: str
    region: str
    credentials: Credentials
    session: URLLib3Session = field(default_factory=_session)

    def __call__(self, request: DynamoRequest) -> dict[str, Any]:
        """Send a request and return its answer."""
        headers = headers_of(request) | {"User-Agent": "epochal"}
        unsigned = AWSRequest("POST", self.url, headers=headers, data=body_of(request))
        signer = SigV4Auth(self.credentials.get_frozen_credentials(), "dynamodb", self.region)
        signer.add_auth(unsigned)
        answer = self.session.send(unsigned.prepare())
        return answer_of(request, answer.status_code, answer.headers, answer.content)

    def close(self) -> None:
        """Close the connections."""
        self.session.close()
