"""aiohttp as a carrier of requests to DynamoDB, signed by botocore's signer."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any, Final

from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials, RefreshableCredentials
from botocore.exceptions import (
    ConnectionClosedError,
    ConnectTimeoutError,
    EndpointConnectionError,
    ReadTimeoutError,
)

from epochal.aio.bridge import wait
from epochal.dynamo.carriers.light import CONNECT_SECONDS, READ_SECONDS
from epochal.dynamo.protocol.messages import answer_of, body_of, headers_of
from epochal.dynamo.protocol.requests import DynamoRequest
from epochal.errors import InvalidInput
from epochal.extras import brought_by

with brought_by("async", "asynchronous stores", "aiohttp"):
    import aiohttp

SECONDS: Final = aiohttp.ClientTimeout(sock_connect=CONNECT_SECONDS, sock_read=READ_SECONDS)


@dataclass(frozen=True, slots=True, kw_only=True)
class AsyncCarrier:
    """Sends requests to one address, within what `bridge.run` runs.

    Attributes:
        session: of the event loop that runs it.
        url: of the service.
        region: that requests are signed for.
        credentials: that each request asks for anew; expired ones are renewed in a thread.
    """

    session: aiohttp.ClientSession
    url: str
    region: str
    credentials: Credentials

    def __call__(self, request: DynamoRequest) -> dict[str, Any]:
        """Send a request and return its answer."""
        return wait(self._sent(request))

    async def _sent(self, request: DynamoRequest) -> dict[str, Any]:
        body = body_of(request)
        headers = headers_of(request) | {"User-Agent": "epochal", "Accept-Encoding": "identity"}
        unsigned = AWSRequest("POST", self.url, headers=headers, data=body)
        SigV4Auth(await self._frozen(), "dynamodb", self.region).add_auth(unsigned)
        if self.session.closed:
            raise InvalidInput("place", "was left while its stores were in use")
        try:
            async with self.session.post(
                self.url, data=body, headers=dict(unsigned.headers.items())
            ) as answer:
                return answer_of(request, answer.status, answer.headers, await answer.read())
        except aiohttp.ConnectionTimeoutError as error:
            raise ConnectTimeoutError(endpoint_url=self.url, error=error) from error
        except aiohttp.ClientConnectorError as error:
            raise EndpointConnectionError(endpoint_url=self.url, error=error) from error
        except TimeoutError as error:
            raise ReadTimeoutError(endpoint_url=self.url, error=error) from error
        except aiohttp.ClientError as error:
            raise ConnectionClosedError(endpoint_url=self.url, request=request, error=error) from error

    async def _frozen(self) -> Any:
        credentials = self.credentials
        if isinstance(credentials, RefreshableCredentials) and credentials.refresh_needed():
            return await asyncio.to_thread(credentials.get_frozen_credentials)
        return credentials.get_frozen_credentials()
