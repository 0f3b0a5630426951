"""A server that breaks every rule: an answer is whole or none, never another's, and a thread, a fork or a stranger's
certificate never mixes two.
"""

from __future__ import annotations

import os
import socket
import ssl
import subprocess
import threading
import zlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest

from epochal.dynamo.wire.http import Connections, NoAnswer, Unsent, roots

Behave = Callable[[socket.socket], None]
HEADERS = {"Host": "here"}


class Server:
    """Behaves on each connection as it is told, by turns; the last way goes on."""

    def __init__(self, *ways: Behave) -> None:
        self.ways = list(ways)
        self.connections = 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self.listener.accept()
                way = self.ways[min(self.connections, len(self.ways) - 1)]
                self.connections += 1
                threading.Thread(target=self._run, args=(way, client), daemon=True).start()

    @staticmethod
    def _run(way: Behave, client: socket.socket) -> None:
        with suppress(OSError), client:
            way(client)

    def close(self) -> None:
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()


@pytest.fixture
def serving() -> Iterator[Callable[..., Server]]:
    made: list[Server] = []

    def serve(*ways: Behave) -> Server:
        made.append(Server(*ways))
        return made[-1]

    yield serve
    for each in made:
        each.close()


def read(client: socket.socket) -> bytes:
    """A request's body; nothing where there is none."""
    with client.makefile("rb") as asked:
        length = 0
        while (line := asked.readline()) not in (b"\r\n", b""):
            name, _, value = line.partition(b":")
            length = int(value) if name.lower() == b"content-length" else length
        return asked.read(length)


def said(body: bytes, *more: bytes) -> bytes:
    return b"\r\n".join((b"HTTP/1.1 200 OK", b"Content-Length: %d" % len(body), *more, b"", body))


def answering(*answers: bytes) -> Behave:
    """One answer to each request, and then the end."""

    def behave(client: socket.socket) -> None:
        for each in answers:
            read(client)
            client.sendall(each)

    return behave


def echoing(client: socket.socket) -> None:
    while body := read(client):
        client.sendall(said(body))


def at(server: Server, **how: object) -> Connections:
    return Connections(server.url, **how)  # type: ignore[arg-type]


ODD = {
    "after others": b"HTTP/1.1 100 Continue\r\n\r\n" * 3 + said(b"{}"),
    "in chunks": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n{\r\n1;x=y\r\n}\r\n0\r\nT: t\r\n\r\n",
    "without a length": b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n{}",
    "of HTTP/1.0": b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\n{}",
    "with both": b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
    "without a reason": b"HTTP/1.1 200\r\ncOnTeNt-LeNgTh:2\r\n\r\n{}",
    "with more behind": said(b"{}") + b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil",
    "that closes": said(b"{}", b"Connection: Close"),
}


@pytest.mark.parametrize("answer", ODD.values(), ids=ODD)
def test_an_uncommon_answer_is_read_and_its_connection_not_used_again(
    serving: Callable[..., Server], answer: bytes
) -> None:
    server = serving(answering(answer), echoing)
    connections = at(server)
    status, _, body = connections.send(HEADERS, b"first")
    assert (status, body) == (200, b"{}")
    if b"200\r\n" in answer:
        return  # nothing odd: the connection is kept, though this server closes it, at once or a little later
    assert connections.send(HEADERS, b"second")[2] == b"second"
    assert server.connections == 2


BAD = {
    "nothing": b"",
    "no HTTP": b"nonsense\r\n\r\n",
    "half a status": b"HTTP/1.1 2",
    "half a head": b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n",
    "half a body": b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n{}",
    "another version": b"HTTP/2 200\r\nContent-Length: 2\r\n\r\n{}",
    "no status": b"HTTP/1.1 OK\r\nContent-Length: 2\r\n\r\n{}",
    "two lengths": b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 4\r\n\r\n{}{}",
    "a list of lengths": b"HTTP/1.1 200 OK\r\nContent-Length: 2, 2\r\n\r\n{}",
    "a negative length": b"HTTP/1.1 200 OK\r\nContent-Length: -2\r\n\r\n{}",
    "a length with a sign": b"HTTP/1.1 200 OK\r\nContent-Length: +2\r\n\r\n{}",
    "a length of other digits": "HTTP/1.1 200 OK\r\nContent-Length: \xb2\r\n\r\n{}".encode("latin-1"),
    "a length without end": b"HTTP/1.1 200 OK\r\nContent-Length: " + b"9" * 30 + b"\r\n\r\n{}",
    "a header without a name": b"HTTP/1.1 200 OK\r\nnonsense\r\nContent-Length: 2\r\n\r\n{}",
    "a folded header": b"HTTP/1.1 200 OK\r\nA: b\r\n c: d\r\nContent-Length: 2\r\n\r\n{}",
    "a space before a colon": b"HTTP/1.1 200 OK\r\nContent-Length : 2\r\n\r\n{}",
    "half a chunk": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\n{}",
    "a chunk of no size": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n{}\r\n",
    "a huge head": b"HTTP/1.1 200 OK\r\n" + b"A: b\r\n" * 30_000 + b"Content-Length: 2\r\n\r\n{}",
    "a huge header": b"HTTP/1.1 200 OK\r\nA: " + b"b" * 200_000 + b"\r\nContent-Length: 2\r\n\r\n{}",
    "others without end": b"HTTP/1.1 100 Continue\r\n\r\n" * 9_000,
}


@pytest.mark.parametrize("answer", BAD.values(), ids=BAD)
def test_what_is_no_whole_answer_is_broken_and_its_connection_gone(
    serving: Callable[..., Server], answer: bytes
) -> None:
    server = serving(answering(answer), echoing)
    connections = at(server)
    with pytest.raises(NoAnswer) as raised:
        connections.send(HEADERS, b"first")
    assert str(raised.value).endswith(f" at {server.url}")
    assert connections.send(HEADERS, b"second")[2] == b"second"


def test_an_answer_in_single_bytes_is_the_same(serving: Callable[..., Server]) -> None:
    def drip(client: socket.socket) -> None:
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        read(client)
        for each in said(b"0123456789", b"A: b"):
            client.sendall(bytes((each,)))

    status, headers, body = at(serving(drip)).send(HEADERS, b"x")
    assert (status, headers["a"], body) == (200, "b", b"0123456789")


def test_a_server_that_says_nothing_is_given_up(serving: Callable[..., Server]) -> None:
    asked, over = threading.Event(), threading.Event()

    def wait(client: socket.socket) -> None:
        read(client)
        asked.set()
        over.wait()

    with pytest.raises(NoAnswer, match="TimeoutError"):
        at(serving(wait), seconds=(5, 0.05)).send(HEADERS, b"x")
    over.set()
    assert asked.is_set()


def test_a_connection_that_the_server_closes_between_requests_is_not_sent_on(
    serving: Callable[..., Server],
) -> None:
    closed = threading.Event()

    def once(client: socket.socket) -> None:
        answering(said(b"{}"))(client)
        client.close()
        closed.set()

    server = serving(once)
    connections = at(server)
    for number in range(20):
        closed.clear()
        assert connections.send(HEADERS, b"x")[2] == b"{}", number
        closed.wait()


def test_what_a_server_says_unasked_is_no_answer(serving: Callable[..., Server]) -> None:
    sent = threading.Event()

    def unasked(client: socket.socket) -> None:
        answering(said(b"{}"))(client)
        client.sendall(said(b"evil"))
        sent.set()
        read(client)

    connections = at(serving(unasked, echoing))
    assert connections.send(HEADERS, b"x")[2] == b"{}"
    sent.wait()
    assert connections.send(HEADERS, b"mine")[2] == b"mine"


def test_a_connection_that_was_idle_for_long_is_left(
    serving: Callable[..., Server], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [0.0]
    monkeypatch.setattr("epochal.dynamo.wire.http.time.monotonic", lambda: now[0])
    server = serving(echoing)
    connections = at(server)
    for now[0], made in ((0.0, 1), (59.0, 1), (118.0, 1), (179.0, 2)):
        connections.send(HEADERS, b"x")
        assert server.connections == made


def test_threads_get_the_answers_to_their_own_requests(serving: Callable[..., Server]) -> None:
    connections = at(serving(echoing))

    def ask(number: int) -> None:
        for each in range(40):
            body = b"%d-%d." % (number, each) * (1 + number * each)
            assert connections.send(HEADERS, body)[2] == body

    with ThreadPoolExecutor(40) as pool:
        list(pool.map(ask, range(40)))


def test_a_body_that_fills_every_buffer_is_sent_and_read_whole(serving: Callable[..., Server]) -> None:
    body = os.urandom(6_000_000)
    status, _, found = at(serving(echoing)).send(HEADERS, body)
    assert (status, zlib.crc32(found)) == (200, zlib.crc32(body))


def test_a_server_that_answers_before_it_has_read_all_is_broken_or_answered(
    serving: Callable[..., Server],
) -> None:
    def early(client: socket.socket) -> None:
        client.recv(100)
        client.sendall(b"HTTP/1.1 413 No\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")

    server = serving(early, echoing)
    connections = at(server)
    with suppress(NoAnswer):
        assert connections.send(HEADERS, bytes(9_000_000))[0] == 413
    assert connections.send(HEADERS, b"x")[2] == b"x"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="a system without forks")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_fork_leaves_its_parents_connections_alone(serving: Callable[..., Server]) -> None:
    server = serving(echoing)
    connections = at(server)
    connections.send(HEADERS, b"before")
    child = os.fork()
    if not child:
        right = all(
            connections.send(HEADERS, b"child%d" % each)[2] == b"child%d" % each for each in range(50)
        )
        os._exit(0 if right else 1)
    for each in range(50):
        assert connections.send(HEADERS, b"parent%d" % each)[2] == b"parent%d" % each
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert server.connections == 2


def test_an_interrupted_request_leaves_nothing_to_the_next(
    serving: Callable[..., Server], monkeypatch: pytest.MonkeyPatch
) -> None:
    connections = at(serving(echoing))
    connections.send(HEADERS, b"before")

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("epochal.dynamo.wire.http._read_answer", interrupted)
        with pytest.raises(KeyboardInterrupt):
            connections.send(HEADERS, b"lost")
    assert connections.send(HEADERS, b"after")[2] == b"after"


def test_where_nobody_listens_nothing_was_sent() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    for address, nowhere in (
        (url, True),
        ("http://not-a-host.invalid", True),
        (f"http://{'a' * 70}.x", True),
    ):
        with pytest.raises(Unsent) as raised:
            Connections(address).send(HEADERS, b"")
        assert (raised.value.nowhere, raised.value.address) == (nowhere, address)


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of `localhost`, signed by nobody."""
    made = tmp_path_factory.mktemp("tls") / "both.pem"
    how = "req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -addext subjectAltName=DNS:localhost"
    subprocess.run(
        ["openssl", *how.split(), "-keyout", made.with_suffix(".key"), "-out", made],
        check=True,
        capture_output=True,
    )
    return made


@pytest.fixture
def secure(certificate: Path, serving: Callable[..., Server]) -> Server:
    """Echoes over TLS."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, certificate.with_suffix(".key"))

    def behave(client: socket.socket) -> None:
        with context.wrap_socket(client, server_side=True) as secured:
            echoing(secured)

    server = serving(behave)
    server.url = server.url.replace("http://127.0.0.1", "https://localhost")
    return server


def trusting(certificate: Path) -> Callable[[], ssl.SSLContext]:
    return partial(ssl.create_default_context, cafile=str(certificate))


def test_a_bundle_is_trusted_and_its_connection_kept(certificate: Path, secure: Server) -> None:
    connections = at(secure, tls=trusting(certificate))
    for body in (b"x", os.urandom(3_000_000), b"y"):
        assert connections.send(HEADERS, body)[2] == body
    assert secure.connections == 1


@pytest.mark.parametrize("stranger", ["its certificate", "its name", "no TLS"])
def test_a_stranger_is_sent_nothing(
    stranger: str, certificate: Path, secure: Server, serving: Callable[..., Server]
) -> None:
    heard: list[bytes] = []
    if stranger == "its certificate":
        connections = at(secure, tls=roots)
    elif stranger == "its name":
        secure.url = secure.url.replace("localhost", "127.0.0.1")
        connections = at(secure, tls=trusting(certificate))
    else:
        plain = serving(
            lambda client: heard.append(client.recv(9)) or client.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
        )
        connections = Connections(plain.url.replace("http:", "https:"), tls=roots)
    with pytest.raises(Unsent) as raised:
        connections.send(HEADERS, b"secret")
    assert not raised.value.nowhere
    assert "SSL" in str(raised.value)


def test_a_machine_without_roots_trusts_those_that_botocore_brings(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "none.pem"))
    monkeypatch.setenv("SSL_CERT_DIR", str(tmp_path))
    found = roots()
    assert found.cert_store_stats()["x509_ca"] > 50
    assert (found.verify_mode, found.check_hostname) == (ssl.CERT_REQUIRED, True)
