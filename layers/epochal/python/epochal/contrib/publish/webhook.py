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
"""For an answer."""

AUTHORIZATION: Final = "Authorization"
BATCH_TYPE: Final = "application/cloudevents-batch+json"

_REFUSED: Final = (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN)


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """What proves who sends.

    Attributes:
        sign_with: has the key of signatures.
        authorization: is the value of `header`.
    """

    sign_with: Secret | None = None
    authorization: Secret | None = None
    header: str = AUTHORIZATION
    clock: Callable[[], float] = time.time

    def headers(self, events: Sequence[Message], content: bytes) -> dict[str, str]:
        """Of a request with these events; raises `InvalidInput` where a secret is none that can be used."""
        found = {}
        if self.sign_with is not None:
            found = signed(request_id(events), int(self.clock()), content, _keys(self.sign_with.values()))
        if self.authorization is not None:
            found[self.header] = header_value(self.authorization.values()[0])
        return found

    def forget(self) -> None:
        """Read the secrets again: what they were has been refused."""
        for each in (self.sign_with, self.authorization):
            if each is not None:
                each.forget()


def _keys(secrets: Sequence[str]) -> list[bytes]:
    """The first has to be one; what it took the place of may never have been."""
    keys = [signing_key(secrets[0])]
    for each in secrets[1:]:
        with suppress(InvalidInput):
            keys.append(signing_key(each))
    return keys


class _NoRedirects(HTTPRedirectHandler):
    """A redirected POST becomes a GET, which an address answers with success and without the events; and its headers
    would go to whoever is named.
    """

    def redirect_request(self, *_: Any, **__: Any) -> None: ...


_OPENER: Final = build_opener(_NoRedirects)


def to_webhook(address: str, proof: Proof) -> Callable[[Sequence[Message]], None]:
    """What sends a batch to an address, or raises; raises `InvalidInput` at once where it is none."""
    if not address.startswith(("https://", "http://")):
        raise InvalidInput("to", "must be an address of the web")

    def send(events: Sequence[Message]) -> None:
        content = f"[{','.join(each.text for each in events)}]".encode()
        headers = {"Content-Type": BATCH_TYPE, **proof.headers(events, content)}
        request = Request(address, content, headers, method="POST")  # noqa: S310  # checked
        try:
            with _OPENER.open(request, timeout=SECONDS):
                pass
        # Whatever the address answers but success, and whatever keeps it from answering.
        except (OSError, HTTPException) as error:
            if isinstance(error, HTTPError) and error.code in _REFUSED:
                proof.forget()
            raise Unavailable(f"{address} did not take {len(events)} events: {error}") from error

    return send
