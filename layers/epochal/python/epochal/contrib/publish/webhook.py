"""An HTTPS address that published events are sent to, and the proof of who sends them."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from http import HTTPStatus
from http.client import HTTPException
from typing import Any, Final
from urllib.error import HTTPError
from urllib.request import HTTPRedirectHandler, Request, build_opener

from epochal.contrib.publish.cloudevents import Message
from epochal.contrib.publish.secrets import Secret
from epochal.contrib.publish.signatures import header_value, request_id, signed, signing_key
from epochal.errors import InvalidInput, Unavailable
from epochal.lazy_dataclasses import dataclass

SECONDS: Final = 10
"""Timeout of a request, in seconds."""

AUTHORIZATION: Final = "Authorization"
BATCH_TYPE: Final = "application/cloudevents-batch+json"

_REFUSED: Final = (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN)


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """Proof of the sender: a signature, a header with a secret, both, or neither.

    Attributes:
        sign_with: secret that holds the signing key.
        authorization: secret that is the value of `header`.
        header: name of that header.
        clock: returns the time in seconds since 1970.
    """

    sign_with: Secret | None = None
    authorization: Secret | None = None
    header: str = AUTHORIZATION
    clock: Callable[[], float] = time.time

    def headers(self, events: Sequence[Message], content: bytes) -> dict[str, str]:
        """Return the headers that prove the sender of a request with these messages as its content.

        Raises:
            InvalidInput: a secret cannot be used for this.
        """
        headers = {}
        if self.sign_with is not None:
            headers = signed(request_id(events), int(self.clock()), content, _keys(self.sign_with.values()))
        if self.authorization is not None:
            headers[self.header] = header_value(self.authorization.values()[0])
        return headers

    def forget(self) -> None:
        """Discard the cached secrets, so that the next request reads them again: they have been refused."""
        for secret in (self.sign_with, self.authorization):
            if secret is not None:
                secret.forget()


def _keys(secrets: Sequence[str]) -> list[bytes]:
    """Return the signing keys of the current and the previous secret; the previous one may be invalid.

    Raises:
        InvalidInput: the current secret holds no valid key.
    """
    keys = [signing_key(secrets[0])]
    for secret in secrets[1:]:
        with suppress(InvalidInput):
            keys.append(signing_key(secret))
    return keys


class _NoRedirects(HTTPRedirectHandler):
    """Handler that follows no redirects.

    A redirected POST would become a GET, which the address may answer with success although it did not get the events.
    And the headers with their secrets would go to another address.
    """

    def redirect_request(self, *_: Any, **__: Any) -> None: ...


_OPENER: Final = build_opener(_NoRedirects)


def to_webhook(address: str, proof: Proof) -> Callable[[Sequence[Message]], None]:
    """Return a function that sends messages to a web address in one request; raise if it is no address.

    The function raises `Unavailable` unless the address answers with success.

    Raises:
        InvalidInput: the address does not begin with `https://` or `http://`.
    """
    if not address.startswith(("https://", "http://")):
        raise InvalidInput("to", "must be an http:// or https:// address")

    def send(events: Sequence[Message]) -> None:
        """Send messages in one POST request with the proof's headers; raise `Unavailable` unless it succeeds.

        An answer of 401 or 403 discards the cached secrets.
        """
        content = f"[{','.join(event.text for event in events)}]".encode()
        headers = {"Content-Type": BATCH_TYPE, **proof.headers(events, content)}
        request = Request(address, content, headers, method="POST")  # noqa: S310  # checked
        try:
            with _OPENER.open(request, timeout=SECONDS):
                pass
        # Any answer but success, and any error of the connection.
        except (OSError, HTTPException) as error:
            if isinstance(error, HTTPError) and error.code in _REFUSED:
                proof.forget()
            raise Unavailable(f"{address} did not accept {len(events)} events: {error}") from error

    return send
