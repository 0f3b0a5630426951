"""How the API knows the caller: signatures of AWS (`sigv4`) or tokens of an issuer (`bearer`)."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final
from urllib.parse import urlsplit

from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.session import Session

from epochal.contrib.http_client.exchange import Auth, HttpRequest
from epochal.dynamo.clients import Renewed, credentials
from epochal.errors import InvalidInput, Misconfigured
from epochal.lazy_dataclasses import dataclass, field
from epochal.model.kinds import must_be

_GATEWAY: Final = re.compile(r"[a-z0-9]+\.execute-api\.([a-z0-9-]+)\.amazonaws\.com(?:\.cn)?")
_FUNCTION: Final = re.compile(r"[a-z0-9]+\.lambda-url\.([a-z0-9-]+)\.on\.aws")
_VISIBLE: Final = re.compile(r"[\x21-\x7e]+")


def sigv4(*, region: str | None = None, service: str | None = None) -> Auth:
    """Return a function that makes a request's signature headers with the credentials of the AWS chain.

    The signatures are of Signature Version 4.

    Args:
        region: region of the API. None takes it from an address of AWS, else from the chain.
        service: `execute-api`, or `lambda` where functions have addresses of their own. None goes by the address.

    Raises:
        Misconfigured: from each call, where the chain has no credentials or no region.
    """
    return _Signatures(region=region, service=service)


def bearer(token: str | Callable[[], str]) -> Auth:
    """Return a function that makes the header with a bearer token, for an API that has a token issuer.

    Args:
        token: the token, or a function that returns a valid one. It is called for each request, so it should keep the
            token until shortly before that expires.

    Raises:
        InvalidInput: from each call, where the token is not visible ASCII.
    """

    def headers(_: HttpRequest) -> Mapping[str, str]:
        """Return the header that carries the token."""
        value = token() if callable(token) else token
        must_be(str, value, "token", "text")
        if not _VISIBLE.fullmatch(value):
            raise InvalidInput("token", "must be text of visible ASCII characters, without spaces")
        return {"Authorization": f"Bearer {value}"}

    return headers


@dataclass(slots=True, kw_only=True)
class _Signatures:
    """Signs requests; keeps the credentials, which renew themselves."""

    region: str | None
    service: str | None
    _keys: Renewed | None = field(default=None, init=False, repr=False)

    def __call__(self, request: HttpRequest) -> Mapping[str, str]:
        """Return the headers that sign a request; raise `Misconfigured` if no region or credentials are known."""
        if self._keys is None:
            self._keys = Renewed(credentials())
        url = urlsplit(request.url)
        host = url.hostname or ""
        gateway, function = _GATEWAY.fullmatch(host), _FUNCTION.fullmatch(host)
        of_aws = gateway or function
        region = self.region or (of_aws[1] if of_aws else Session().get_config_variable("region"))
        if not region:
            raise Misconfigured(
                f"no region is known for signing requests to {host}",
                "pass sigv4(region=…), or set AWS_REGION",
            )
        signed = AWSRequest(request.method, request.url, dict(request.headers), request.body)
        service = self.service or ("lambda" if function else "execute-api")
        SigV4Auth(self._keys.get_frozen_credentials(), service, region).add_auth(signed)
        return {name: value for name, value in signed.headers.items() if name not in request.headers}
