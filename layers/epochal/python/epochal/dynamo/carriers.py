"""Carriers send requests to DynamoDB and return the answers; the light carrier does so without botocore.

What a carrier raises:

    Unsent          no connection was made, so the request was not applied
    NoAnswer        it may have been applied
    DynamoFault     what it means (`dynamo.protocol.faults`)
"""

from __future__ import annotations

import ssl
from collections.abc import Callable
from functools import partial
from typing import Any

from epochal.dynamo.protocol.messages import MEDIA, body_of, read_answer, target_of
from epochal.dynamo.protocol.requests import DynamoRequest
from epochal.dynamo.wire.environment import Service
from epochal.dynamo.wire.http import Connections, host_of, roots
from epochal.dynamo.wire.signatures import Signer

Carrier = Callable[[DynamoRequest], dict[str, Any]]
"""Sends a request and returns its answer."""


class LightCarrier:
    """Signs and sends DynamoDB requests to one address without botocore.

    Safe to share between threads; a fork may go on using it.
    """

    def __init__(self, service: Service) -> None:
        bundle = service.bundle
        self._connections = Connections(
            service.url, tls=partial(ssl.create_default_context, cafile=bundle) if bundle else roots
        )
        self._signer = Signer(host_of(service.url), service.region, "dynamodb")
        self._credentials = service.credentials

    def __call__(self, request: DynamoRequest) -> dict[str, Any]:
        """Send a request and return its answer."""
        body = body_of(request)
        keys = self._credentials.get_frozen_credentials()
        headers = self._signer.headers(keys, target_of(request), MEDIA, body)
        return read_answer(request, *self._connections.send(headers, body))

    def close(self) -> None:
        """Close the connections."""
        self._connections.close()
