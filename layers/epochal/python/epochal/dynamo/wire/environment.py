"""Finds an AWS service and its credentials by environment variables alone.

In functions the variables are enough, and there botocore is not even imported. Anything else, such as a profile, a
machine's role, FIPS or another partition, is left to botocore (`dynamo.clients`), and so is a variable that is not
known here.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping
from types import FunctionType
from typing import Final

from epochal.dynamo.wire.http import host_of
from epochal.dynamo.wire.signatures import Credentials, FixedKeys
from epochal.lazy_dataclasses import dataclass


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
"""Variables that Lambda sets, and those of other services and providers of credentials."""

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
    home: str | os.PathLike[str] = "~",
    *,
    service: str = "dynamodb",
    endpoint: str | None = None,
    region: str | None = None,
) -> Service | None:
    """Return a service's address and credentials if environment variables give all of it, else None.

    Args:
        home: home directory, in which files of profiles would be; by default the user's.
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
    # DynamoDB serves credentials that name their account at an address of that account.
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


def _has_other_configuration(environment: Mapping[str, str], home: str | os.PathLike[str]) -> bool:
    """Return whether there is AWS configuration that only botocore understands."""
    # pathlib raises where there is no home, or one that cannot be read; for botocore, nothing is there then.
    folder = os.path.join(os.path.expanduser(home), ".aws")  # noqa: PTH111, PTH118
    return (
        sys.platform in _ELSEWHERE
        or not all(map(_is_known, environment))
        or any(os.path.exists(os.path.join(folder, name)) for name in _FILES)  # noqa: PTH110, PTH118
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
    # `isinstance` of a wrapper answers for the wrapped object.
    unpatched = all(
        type(method) is FunctionType and method.__globals__["__name__"].startswith("botocore.")
        for method in methods
    )
    return "" if unpatched else "something has wrapped botocore's clients"
