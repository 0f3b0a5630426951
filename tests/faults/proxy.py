"""A network that misbehaves, between clients and a DynamoDB: it knows where a request ends, and where an answer does.

lost        the connection is cut before the request is delivered
cut         the request is delivered, the connection is cut before its answer, or in the middle of it
late        the connection is cut at once, the request is delivered long after
delayed     the answer comes, later
doubled     the answer comes twice
"""

from __future__ import annotations

import random
import socket
import threading
import time
from collections import Counter
from contextlib import suppress
from typing import BinaryIO

FATES = ("lost", "cut", "late", "delayed", "doubled")


class Proxy:
    """Listens at `url` and passes requests on to a server of this machine.

    Attributes:
        rate: how likely a request is to meet one of the fates.
        met: how many requests met which.
    """

    def __init__(self, port: int, *, rate: float, seed: int) -> None:
        self.rate = rate
        self.met: Counter[str] = Counter()
        self._luck = random.Random(seed)
        self._server = ("127.0.0.1", port)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def requests(self) -> int:
        """How many there have been."""
        return sum(self.met.values())

    def close(self) -> None:
        self._listener.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        """One connection, to its end."""
        with suppress(OSError), client, socket.create_connection(self._server) as server:
            asked, answered = client.makefile("rb"), server.makefile("rb")
            with asked, answered:
                while (request := message(asked)) and self._pass_on(request, client, server, answered):
                    pass

    def _pass_on(
        self, request: bytes, client: socket.socket, server: socket.socket, answered: BinaryIO
    ) -> bool:
        """Deliver a request and its answer, or what its fate makes of them; False where the connection is cut."""
        fate = self._fate()
        if fate == "late":
            threading.Thread(target=self._deliver_late, args=(request,), daemon=True).start()
        if fate in ("lost", "late"):
            return False
        server.sendall(request)
        answer = message(answered)
        if fate == "cut":
            client.sendall(answer[: self._luck.choice((0, len(answer) // 2))])
            return False
        if fate == "delayed":
            time.sleep(self._luck.uniform(0.02, 0.3))
        if fate == "doubled":
            server.sendall(request)
            message(answered)
        client.sendall(answer)
        return True

    def _fate(self) -> str:
        fate = self._luck.choice(FATES) if self._luck.random() < self.rate else "well"
        self.met[fate] += 1
        return fate

    def _deliver_late(self, request: bytes) -> None:
        time.sleep(self._luck.uniform(0.01, 1.0))
        with suppress(OSError), socket.create_connection(self._server) as server:
            server.sendall(request)
            with server.makefile("rb") as answered:
                message(answered)


def message(stream: BinaryIO) -> bytes:
    """One request or answer of HTTP/1.1, whole; empty where the connection has ended."""
    head, length, chunked = b"", 0, False
    while (line := stream.readline()) not in (b"\r\n", b""):
        head += line
        name, _, value = line.lower().partition(b":")
        length = int(value) if name == b"content-length" else length
        chunked = chunked or (name == b"transfer-encoding" and b"chunked" in value)
    body = _chunks(stream) if chunked else stream.read(length)
    return head + line + body if line and len(body) >= length else b""


def _chunks(stream: BinaryIO) -> bytes:
    """A body in chunks, as it is sent; large answers come so. The last chunk is empty."""
    body = b""
    while True:
        size = stream.readline()
        count = int(size, 16)
        body += size + stream.read(count + len(b"\r\n"))
        if count == 0:
            return body
