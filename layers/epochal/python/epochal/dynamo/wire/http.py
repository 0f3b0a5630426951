"""HTTP/1.1 to one address over kept-alive connections: a message is sent once, and its answer read whole.

Connections are safe to share between threads; a fork leaves them to the parent. A connection is reused only after an
answer that ended where it said, and not if the server has closed it since or it has been idle for a minute: gateways
forget those. Nothing is sent twice here: a caller that knows the effect of a request may send it again.

An answer with one `Content-Length` is parsed here, as all of DynamoDB's are. `http.client` parses any other: in chunks,
without a length, or preceded by others.
"""

from __future__ import annotations

import io
import os
import re
import select
import socket
import ssl
import time
from collections.abc import Callable, Mapping
from functools import cached_property
from importlib.util import find_spec
from typing import Any, Final

from epochal.lazy_dataclasses import dataclass, field

CONNECT_SECONDS: Final = 2
READ_SECONDS: Final = 6
"""DynamoDB answers in milliseconds; a request that takes seconds is better tried again elsewhere."""

KEPT: Final = 32
"""Connections that wait for a request. There may be more at a time."""

IDLE_SECONDS: Final = 60

_ADDRESS: Final = re.compile(r"(https?)://([A-Za-z0-9.\-_]+|\[[0-9A-Fa-f:.]+\])(?::([0-9]{1,5}))?/?")
_STATUS: Final = re.compile(r"HTTP/1\.1 ([2-5][0-9][0-9])(?: .*)?")
_LENGTH: Final = re.compile(r"[0-9]{1,12}")
_HEAD: Final = 65_536
_PART: Final = 262_144
"""Bytes that are sent or read within the time-out, which is thus one of a stalled connection, not of a slow one."""

_SERVERS: Final = 500
_THROTTLED: Final = 429
_BUSY: Final = re.compile(
    "(Request)?(Thrott|Timeout|LimitExceeded)|KMSThrottling|TooManyRequests|SlowDown|BandwidthLimitExceeded"
    "|PriorRequest|DependencyTimeout|InternalServiceError"
)
"""How codes begin, of any service, of what passes by itself."""

_PORTS: Final = {"http": 80, "https": 443}
_BODILESS: Final = ("204", "304")

HttpAnswer = tuple[int, Mapping[str, str], bytes]
"""Status, headers by lower-case name, and body."""


class Unsent(Exception):
    """No connection could be opened, so nothing was sent.

    Attributes:
        address: URL that was tried.
        nowhere: nothing accepted the connection, so the address may be wrong.
    """

    def __init__(self, cause: str, *, address: str, nowhere: bool = False) -> None:
        super().__init__(cause)
        self.address = address
        self.nowhere = nowhere


class NoAnswer(Exception):
    """The request may have been received, but no complete answer arrived."""


def is_busy(status: int, code: str) -> bool:
    """Return whether an error answer is temporary, by its status and code; a status of 0 is unknown."""
    return status == _THROTTLED or status >= _SERVERS or _BUSY.match(code) is not None


def host_of(url: str) -> str:
    """Return the `Host` header for a URL; raise ValueError if it has more than scheme, host and port."""
    scheme, host, port = _split_address(url)
    return host if port == _PORTS[scheme] else f"{host}:{port}"


def _split_address(url: str) -> tuple[str, str, int]:
    """Split a URL into scheme, host and port; raise ValueError if it has more parts."""
    match = _ADDRESS.fullmatch(url)
    if match is None:
        raise ValueError("an address is a scheme, a host and a port")
    scheme, host, port = match.groups()
    return scheme, host.lower(), int(port or _PORTS[scheme])


@dataclass(slots=True)
class _Link:
    """A connection, and the process that opened it."""

    to: socket.socket
    process: int
    used: float = 0.0

    def is_usable(self) -> bool:
        """Return whether the connection can be reused: it is young, of this process, and still open.

        A server sends nothing on an idle connection, unless it closes it.
        """
        if self.process != os.getpid() or time.monotonic() - self.used > IDLE_SECONDS:
            return False
        if hasattr(select, "poll"):
            poll = select.poll()
            poll.register(self.to, select.POLLIN)
            return not poll.poll(0)
        return not select.select([self.to], [], [], 0)[0]  # Windows: any number of file


@dataclass
class Connections:
    """A pool of HTTP connections to one address."""

    url: str
    tls: Callable[[], ssl.SSLContext] = field(default_factory=lambda: roots)
    seconds: tuple[float, float] = (CONNECT_SECONDS, READ_SECONDS)
    _waiting: list[_Link] = field(default_factory=list, init=False, repr=False)

    def __post_init__(self) -> None:
        self._scheme, self._host, self._port = _split_address(self.url)

    def send(self, headers: Mapping[str, str], body: bytes) -> HttpAnswer:
        """Send a body by POST to `/` and return the whole answer; raise `Unsent` or `NoAnswer` without one.

        No header may contain the end of a line.

        Raises:
            Unsent: no connection was made.
            NoAnswer: there is no whole answer.
        """
        head = "".join([f"{name}: {value}\r\n" for name, value in headers.items()])
        message = f"POST / HTTP/1.1\r\n{head}Content-Length: {len(body)}\r\n\r\n".encode("ascii") + body
        link = self._link()
        try:
            if len(message) <= _PART:
                link.to.sendall(message)
            else:
                for start in range(0, len(message), _PART):
                    link.to.sendall(message[start : start + _PART])
            answer, reusable = _read_answer(link.to)
        except BaseException as error:
            link.to.close()
            if isinstance(error, OSError | ValueError):
                raise NoAnswer(f"{_describe_failure(error)} at {self.url}") from error
            raise
        if reusable and len(self._waiting) < KEPT:
            link.used = time.monotonic()
            self._waiting.append(link)
        else:
            link.to.close()
        return answer

    def close(self) -> None:
        """Close the idle connections."""
        while self._waiting:
            self._waiting.pop().to.close()

    def __del__(self) -> None:
        self.close()

    @cached_property
    def _context(self) -> ssl.SSLContext:
        return self.tls()

    def _link(self) -> _Link:
        """Return an idle connection that is still usable, or open a new one."""
        while True:
            try:
                link = self._waiting.pop()
            except IndexError:
                return self._connect()
            if link.is_usable():
                return link
            link.to.close()  # of another process it is this process's copy

    def _connect(self) -> _Link:
        """Open a connection, with TLS for https; raise `Unsent` if that fails."""
        connect, read = self.seconds
        nowhere = True
        connection = None
        try:
            connection = socket.create_connection((self._host.strip("[]"), self._port), connect)
            nowhere = False
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if self._scheme == "https":
                connection = self._context.wrap_socket(connection, server_hostname=self._host.strip("[]"))
            connection.settimeout(read)
        except (OSError, UnicodeError) as error:
            if connection is not None:
                connection.close()
            nowhere = nowhere and not isinstance(error, TimeoutError)
            raise Unsent(
                f"{_describe_failure(error)} at {self.url}", address=self.url, nowhere=nowhere
            ) from error
        return _Link(connection, os.getpid())


def _describe_failure(error: BaseException) -> str:
    """Describe an error in a few words, none of them the server's."""
    reason = error.verify_message if isinstance(error, ssl.SSLCertVerificationError) else ""
    return f"{type(error).__name__}: {reason}" if reason else type(error).__name__


class _Cut(ValueError):
    """The connection ended within an answer."""


class _NoHttp(ValueError):
    """The answer is not HTTP/1.1."""


def _read_answer(link: socket.socket) -> tuple[HttpAnswer, bool]:
    """Read an HTTP answer from a socket; return it, and whether the connection can be reused."""
    buffer = b""
    while (end := buffer.find(b"\r\n\r\n")) < 0:
        if len(buffer) > _HEAD:
            raise _NoHttp
        buffer += _receive(link, _HEAD)
    first, *lines = buffer[:end].decode("latin-1").split("\r\n")
    headers: dict[str, str] = {}
    for line in lines:
        name, colon, value = line.partition(":")
        name = name.lower()
        if not colon or name.strip() != name or (name == "content-length" and name in headers):
            raise _NoHttp
        headers[name] = value.strip()
    length = headers.get("content-length")
    status = _STATUS.fullmatch(first)
    if status is None or length is None or "transfer-encoding" in headers or status[1] in _BODILESS:
        return _read_with_http_client(link, buffer), False
    if not _LENGTH.fullmatch(length):
        raise _NoHttp
    missing = end + 4 + int(length) - len(buffer)
    if missing < 0:  # what follows is no answer to anything
        return (int(status[1]), headers, buffer[end + 4 : missing]), False
    parts = [buffer[end + 4 :]]
    while missing:
        parts.append(_receive(link, min(missing, _PART)))
        missing -= len(parts[-1])
    closes = "close" in headers.get("connection", "").lower()
    return (int(status[1]), headers, b"".join(parts)), not closes


def _receive(link: socket.socket, most: int) -> bytes:
    """Receive at most so many bytes; raise if the connection has ended."""
    data = link.recv(most)
    if not data:
        raise _Cut
    return data


def _read_with_http_client(link: socket.socket, buffer: bytes) -> HttpAnswer:
    """Parse an unusual answer with `http.client`: in chunks, without a length, or after others.

    It raises ValueErrors and OSErrors.
    """
    from http.client import HTTPException, HTTPResponse  # noqa: PLC0415  DynamoDB's answers do without

    response: Any = HTTPResponse(_File(link, buffer))  # type: ignore[arg-type]  # it makes a file of it, no more
    try:
        response.begin()
        body = response.read()
    except HTTPException as error:
        raise _NoHttp from error
    finally:
        response.close()
    return response.status, {name.lower(): value for name, value in response.getheaders()}, body


class _File(io.RawIOBase):
    """A file that returns bytes which are already read, and then those of the socket."""

    def __init__(self, link: socket.socket, got: bytes) -> None:
        self._link = link
        self._got = got

    def makefile(self, *_: object) -> io.BufferedReader:
        return io.BufferedReader(self)

    def readable(self) -> bool:
        return True

    def readinto(self, into: Any) -> int:
        part, self._got = self._got[: len(into)], self._got[len(into) :]
        part = part or self._link.recv(len(into))
        into[: len(part)] = part
        return len(part)


def roots() -> ssl.SSLContext:
    """Create a TLS context with the machine's root certificates, or botocore's if it has none."""
    context = ssl.create_default_context()
    directory = ssl.get_default_verify_paths().capath
    if not context.cert_store_stats()["x509_ca"] and not (directory and os.listdir(directory)):  # noqa: PTH208
        botocore = find_spec("botocore")
        if botocore is not None and botocore.origin:
            context.load_verify_locations(os.path.join(os.path.dirname(botocore.origin), "cacert.pem"))  # noqa: PTH118, PTH120
    return context
