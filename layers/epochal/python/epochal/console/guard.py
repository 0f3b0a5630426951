"""Who may call the console: whoever has the address that the command printed.

its name    127.0.0.1 or localhost: another is a page elsewhere that has its name resolved to this machine
the key     in the address at first, and from then on in a cookie of that port: other users of the machine have neither
a write     comes from a page of the console: by its origin, and by a token that only those pages have
"""

from __future__ import annotations

from dataclasses import dataclass, field
from hmac import compare_digest
from secrets import token_urlsafe
from typing import Final

from flask import Response, abort, redirect, request

LOCAL: Final = {"127.0.0.1", "localhost", "[::1]"}
"""Names that a browser may call the console by."""

KEY: Final = "key"
"""What the key is called in an address."""

TOKEN: Final = "token"  # noqa: S105  the name of a field

HEADERS: Final = {
    "Content-Security-Policy": "default-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'",
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    # With no referrer at all a browser would not tell the origin of our own forms either.
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
}
"""Bodies are other people's text: no page runs or loads anything but what comes with the console."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Guard:
    """Lets requests in.

    Attributes:
        key: what a browser must bring; empty lets in whoever can open the port.
        token: in each form that writes.
    """

    key: str = ""
    token: str = field(default_factory=lambda: token_urlsafe(32))

    def admit(self) -> Response | None:
        """An answer for who is not let in yet; raises 403 for who never is."""
        name = request.host if request.host in LOCAL else request.host.rpartition(":")[0]
        if name not in LOCAL:
            abort(403, "The console answers to 127.0.0.1 and localhost alone.")
        if self.key and not _same(request.cookies.get(_cookie(), ""), self.key):
            return self._welcome()
        if request.method not in ("GET", "HEAD"):
            self._check_write()
        return None

    def _welcome(self) -> Response:
        if request.method != "GET" or not _same(request.args.get(KEY, ""), self.key):
            abort(403, "Open the address that the command printed: it ends with a key.")
        answer = redirect(request.path, 303)  # so that the key is in no address that is copied or kept
        answer.set_cookie(_cookie(), self.key, httponly=True, samesite="Lax")
        return Response(answer.get_data(), answer.status_code, answer.headers)

    def _check_write(self) -> None:
        if request.headers.get("Origin") != request.host_url.rstrip("/"):
            abort(403, "A write comes from a page of the console alone.")
        if not _same(request.form.get(TOKEN, ""), self.token):
            abort(403, "The page is of a console that has ended: open it anew.")


def _cookie() -> str:
    """Browsers share cookies among the ports of a machine."""
    return f"epochal-{request.host.rpartition(':')[2]}"


def _same(given: str, wanted: str) -> bool:
    return compare_digest(given.encode(), wanted.encode())
