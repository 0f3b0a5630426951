"""Signatures of version 4, of requests that `POST` to `/`, as services of AWS's JSON and Query protocols take them.

<https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html>. Tests compare them with
botocore's, byte by byte. The key that signs is the same all day: it is kept.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from hashlib import sha256
from hmac import digest
from typing import Any, Final, Protocol

from epochal.errors import Misconfigured
from epochal.lazy_dataclasses import dataclass, field

_PLAIN: Final = re.compile(r"[!-~]+")
"""Values that a header may have: printable, so that no value ends its header and begins another one."""


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
