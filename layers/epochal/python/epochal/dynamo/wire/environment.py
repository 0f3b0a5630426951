"""Finds an AWS service and its credentials by environment variables alone, and signs requests.

In functions the variables are enough, and there botocore is not even imported. Anything else, such as a profile, a
machine's role, FIPS or another partition, is left to botocore (`dynamo.clients`), and so is a variable that is not
known here.
"""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Callable, Mapping
from hashlib import sha256
from hmac import digest
from pathlib import Path
from types import FunctionType
from typing import Any, Final, Protocol

from epochal.dynamo.wire.http import host_of
from epochal.errors import Misconfigured
from epochal.lazy_dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """How to reach an AWS service.

    Attributes:
        url: a scheme, a host, and perhaps a port.
        region: region for which requests are signed.
        credentials: source of keys. Each request asks it again, so that expiring keys are renewed.
        bundle: path of a file of trusted root certificates; those of the machine if it is empty.
    """

    url: str
    region: str
    credentials: Credentials
    bundle: str = ""


_READ: Final = frozenset(
    {
        "AWS_ACCESS_KEY_ID",
        "AWS_SECRET_ACCESS_KEY",
        "AWS_SESSION_TOKEN",
        "AWS_SECURITY_TOKEN",
        "AWS_ACCOUNT_ID",
        "AWS_CA_BUNDLE",
        "AWS_DEFAULT_REGION",
        "AWS_ENDPOINT_URL",
    }
)
_OF_OTHERS: Final = re.compile(
    r"AWS_(REGION|EXECUTION_ENV|ACCESS_KEY|SECRET_KEY|LAMBDA_\w+|XRAY_\w+|CONTAINER_\w+|S3_\w+|ENDPOINT_URL_\w+"
    r"|EC2_METADATA_DISABLED|DISABLE_HOST_PREFIX_INJECTION)"
)
"""What Lambda tells, and what other services and providers of credentials are told."""

_MORE: Final = frozenset({"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"})
_BOTO: Final = "BOTO"
"""How names of botocore's own variables begin."""

_FILES: Final = ("config", "credentials")

_ELSEWHERE: Final = ("darwin", "win32")
"""Systems that have proxies in their settings."""

_ACCOUNT: Final = re.compile("[0-9]{12}")

_REGION: Final = re.compile(r"(us|eu|ap|sa|ca|me|af|il|mx)-[a-z]+-[0-9]+")
"""Regions of the partition whose addresses end with amazonaws.com."""


def service_from_environment(
    environment: Mapping[str, str],
    home: Path,
    *,
    service: str = "dynamodb",
    endpoint: str | None = None,
    region: str | None = None,
) -> Service | None:
    """Return a service's address and credentials if environment variables give all of it, else None.

    Args:
        home: home directory, in which files of profiles would be.
        service: name of the service in addresses.
        endpoint, region: values that override those of the environment.
    """
    region = region or environment.get("AWS_DEFAULT_REGION", "")
    service_endpoint = environment.get(f"AWS_ENDPOINT_URL_{service.upper()}")
    address = endpoint or service_endpoint or environment.get("AWS_ENDPOINT_URL") or ""
    if not _REGION.fullmatch(region) or _has_other_configuration(environment, home):
        return None
    keys = _static_keys(environment)
    if keys is None:
        return None
    # Of DynamoDB, credentials that tell their account are answered at an address of the account's own.
    account = environment.get("AWS_ACCOUNT_ID")
    if account and not _ACCOUNT.fullmatch(account):
        return None
    host = f"{account}.ddb" if account and service == "dynamodb" else service
    url = address or f"https://{host}.{region}.amazonaws.com"
    try:
        host_of(url)
    except ValueError:
        return None
    bundle = environment.get("AWS_CA_BUNDLE") or environment.get("REQUESTS_CA_BUNDLE") or ""
    return Service(url=url, region=region, credentials=keys, bundle=bundle)


def _static_keys(environment: Mapping[str, str]) -> FixedKeys | None:
    """Return the keys in the environment; None if there are none or they expire."""
    access, secret = (environment.get(f"AWS_{name}") for name in ("ACCESS_KEY_ID", "SECRET_ACCESS_KEY"))
    if not access or not secret or "AWS_CREDENTIAL_EXPIRATION" in environment:
        return None
    token = environment.get("AWS_SESSION_TOKEN") or environment.get("AWS_SECURITY_TOKEN")
    return FixedKeys(access, secret, token)


def _has_other_configuration(environment: Mapping[str, str], home: Path) -> bool:
    """Return whether there is AWS configuration that only botocore understands."""
    # Of a home that cannot be read pathlib raises; what botocore cannot read is not there for it either.
    return (
        sys.platform in _ELSEWHERE
        or not all(map(_is_known, environment))
        or any(os.path.exists(home / ".aws" / name) for name in _FILES)  # noqa: PTH110
    )


def _is_known(name: str) -> bool:
    """Return whether an environment variable is one that this module understands or may ignore."""
    if name.startswith("AWS_"):
        return name in _READ or _OF_OTHERS.fullmatch(name) is not None
    return not name.startswith(_BOTO) and name.upper() not in _MORE


def find_client_patch() -> str:
    """Return what has patched boto3's clients, such as moto or a tracer; empty if nothing has.

    A patch would not see requests that are sent without a client. A test that mocks AWS must never reach it, and
    tracers of AWS wrap methods of botocore's clients.
    """
    if "moto" in sys.modules:
        return "moto is imported"
    client = sys.modules.get("botocore.client")
    if client is None:
        return ""
    methods = [vars(client.BaseClient).get(name) for name in ("__init__", "_make_api_call")]
    # Of a wrapper `isinstance` says what it says of what is wrapped.
    unpatched = all(
        type(method) is FunctionType and method.__globals__["__name__"].startswith("botocore.")
        for method in methods
    )
    return "" if unpatched else "something has wrapped botocore's clients"


# Signatures of version 4, of requests that `POST` to `/`, as services of AWS's JSON and Query protocols take them.
#
# <https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html>. Tests hold them to
# botocore's, byte by byte. The key that signs is the same all day: it is kept.

_PLAIN: Final = re.compile(r"[!-~]+")
"""What a header carries as it is: nobody can end a header in one of these and begin another."""


class Credentials(Protocol):
    """Source of keys for requests, as botocore's credentials are: those that expire are renewed."""

    def get_frozen_credentials(self) -> Any:
        """Return keys with an `access_key`, a `secret_key`, and a `token` or None."""


@dataclass(frozen=True, slots=True)
class FixedKeys:
    """Credentials that never change."""

    access_key: str
    secret_key: str
    token: str | None = None

    def get_frozen_credentials(self) -> FixedKeys:
        """Return themselves."""
        return self


@dataclass(slots=True)
class Signer:
    """Creates the signed headers of requests to one service. Safe to share between threads.

    Attributes:
        host: value of the Host header, with the port unless it is the scheme's default.
        region: region for which requests are signed.
        service: name of the service in signatures.
        now: returns seconds since 1970, right within minutes.
    """

    host: str
    region: str
    service: str
    now: Callable[[], float] = time.time
    _kept: tuple[tuple[str, str, str, str | None], bytes] | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        if not (_PLAIN.fullmatch(self.host) and re.fullmatch("[A-Za-z0-9-]+", self.region)):
            raise Misconfigured(
                "the address or the region has characters that no header can carry", "correct them"
            )

    def headers(self, keys: Any, target: str, media: str, body: bytes) -> dict[str, str]:
        """Return the signed headers (AWS Signature Version 4) of a POST request, except its length.

        Args:
            keys: keys as `Credentials` return them.
            target: value of the X-Amz-Target header; empty if the body names the action.
            media: content type of the body.

        Raises:
            Misconfigured: the keys have what a header cannot carry.
        """
        timestamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(self.now()))
        names, headers = "content-type;host;x-amz-date", {}
        canonical = f"POST\n/\n\ncontent-type:{media}\nhost:{self.host}\nx-amz-date:{timestamp}\n"
        if token := keys.token:
            names += ";x-amz-security-token"
            canonical += f"x-amz-security-token:{token}\n"
            headers["X-Amz-Security-Token"] = token
        if target:
            names += ";x-amz-target"
            canonical += f"x-amz-target:{target}\n"
            headers["X-Amz-Target"] = target
        canonical += f"\n{names}\n{sha256(body).hexdigest()}"
        scope = f"{timestamp[:8]}/{self.region}/{self.service}/aws4_request"
        key = self._key((timestamp[:8], keys.access_key, keys.secret_key, token))
        text = f"AWS4-HMAC-SHA256\n{timestamp}\n{scope}\n{sha256(canonical.encode()).hexdigest()}"
        signature = digest(key, text.encode(), "sha256").hex()
        headers |= {
            "Host": self.host,
            "Content-Type": media,
            "X-Amz-Date": timestamp,
            "Authorization": f"AWS4-HMAC-SHA256 Credential={keys.access_key}/{scope}, SignedHeaders={names}, "
            f"Signature={signature}",
            "User-Agent": "epochal",
            "Accept-Encoding": "identity",
        }
        return headers

    def _key(self, identity: tuple[str, str, str, str | None]) -> bytes:
        """Return the signing key of a day, region and service, derived once and cached.

        Threads may derive it at the same time: the result is the same, and the cache is replaced as a whole.
        """
        cached = self._kept
        if cached is None or cached[0] != identity:
            day, access, secret, token = identity
            if not (_PLAIN.fullmatch(access) and (not token or _PLAIN.fullmatch(token))):
                raise Misconfigured(
                    "the credentials have characters that no header can carry", "correct them"
                )
            key = f"AWS4{secret}".encode()
            for part in (day, self.region, self.service, "aws4_request"):
                key = digest(key, part.encode(), "sha256")
            cached = self._kept = identity, key
        return cached[1]
