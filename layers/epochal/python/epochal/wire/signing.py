"""AWS's signatures, version 4, of requests that `POST` to `/`, as services of AWS's JSON and Query protocols take them.

<https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html>. Tests hold them to
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
"""What a header carries as it is: nobody can end a header in one of these and begin another."""


class Credentials(Protocol):
    """What each request asks anew for its keys, as botocore's credentials: those that expire are renewed."""

    def get_frozen_credentials(self) -> Any:
        """Keys with an `access_key`, a `secret_key` and a `token` or None."""


@dataclass(frozen=True, slots=True)
class FixedKeys:
    """Credentials that stay as they are."""

    access_key: str
    secret_key: str
    token: str | None = None

    def get_frozen_credentials(self) -> FixedKeys:
        """Themselves."""
        return self


@dataclass(slots=True)
class Signer:
    """Writes the headers of requests to one service. Safe to share between threads.

    Attributes:
        host: with its port, if that is not its scheme's own.
        now: seconds since 1970, by a clock that is right within minutes.
    """

    host: str
    region: str
    service: str
    now: Callable[[], float] = time.time
    _kept: tuple[tuple[str, str, str, str | None], bytes] | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        if not (_PLAIN.fullmatch(self.host) and re.fullmatch("[A-Za-z0-9-]+", self.region)):
            raise Misconfigured("the address or the region cannot be in a header", "mend them")

    def headers(self, keys: Any, target: str, media: str, body: bytes) -> dict[str, str]:
        """The headers of a request, but for its length.

        Args:
            keys: as `Credentials` give them.
            target, media: what is asked for, unless the body says so, and the type of the body.

        Raises:
            Misconfigured: the keys have what a header cannot carry.
        """
        at = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(self.now()))
        names, found = "content-type;host;x-amz-date", {}
        canonical = f"POST\n/\n\ncontent-type:{media}\nhost:{self.host}\nx-amz-date:{at}\n"
        if token := keys.token:
            names += ";x-amz-security-token"
            canonical += f"x-amz-security-token:{token}\n"
            found["X-Amz-Security-Token"] = token
        if target:
            names += ";x-amz-target"
            canonical += f"x-amz-target:{target}\n"
            found["X-Amz-Target"] = target
        canonical += f"\n{names}\n{sha256(body).hexdigest()}"
        scope = f"{at[:8]}/{self.region}/{self.service}/aws4_request"
        key = self._key((at[:8], keys.access_key, keys.secret_key, token))
        text = f"AWS4-HMAC-SHA256\n{at}\n{scope}\n{sha256(canonical.encode()).hexdigest()}"
        signature = digest(key, text.encode(), "sha256").hex()
        found |= {
            "Host": self.host,
            "Content-Type": media,
            "X-Amz-Date": at,
            "Authorization": f"AWS4-HMAC-SHA256 Credential={keys.access_key}/{scope}, SignedHeaders={names}, "
            f"Signature={signature}",
            "User-Agent": "epochal",
            "Accept-Encoding": "identity",
        }
        return found

    def _key(self, by: tuple[str, str, str, str | None]) -> bytes:
        """Threads may derive it side by side: it is the same, and what is kept is replaced as a whole."""
        kept = self._kept
        if kept is None or kept[0] != by:
            day, access, secret, token = by
            if not (_PLAIN.fullmatch(access) and (not token or _PLAIN.fullmatch(token))):
                raise Misconfigured("the credentials have what a header cannot carry", "mend them")
            key = f"AWS4{secret}".encode()
            for each in (day, self.region, self.service, "aws4_request"):
                key = digest(key, each.encode(), "sha256")
            kept = self._kept = by, key
        return kept[1]
