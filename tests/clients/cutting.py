"""A proxy that cuts its first connection at a byte of the request or of the answer, and hands on all others."""

from __future__ import annotations

import contextlib
import select
import socket
import struct
import threading
from collections.abc import Mapping
from types import TracebackType
from typing import Final, Literal, Self

RESET: Final = struct.pack("ii", 1, 0)
"""`SO_LINGER` of 0 seconds: the connection is reset when it is closed."""

PART: Final = 65536
"""Bytes that are handed on at a time."""

Side = Literal["request", "answer"]


class CuttingProxy:
    """Hands on connections to a server of this machine.

    Attributes:
        url: address of the proxy.
        cut: whether a connection has been cut.
        passed: bytes of the first connection that were handed on, by side.
    """

    def __init__(self, target: tuple[str, int], side: Side | None = None, place: int = 0) -> None:
        """Listen on a port.

        Args:
            target: host and port of the server.
            side: side of the first connection that is cut; None for none.
            place: bytes of it that are handed on before.
        """
        self._target = target
        self._side = side
        self._place = place
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=16)
        self._connections: list[threading.Thread] = []
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self.cut = False
        self.passed = {"request": 0, "answer": 0}

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        for thread in self._connections:
            thread.join()

    def _accept(self) -> None:
        """Hand on connections until the proxy ends."""
        with self._listener:
            while True:
                try:
                    client, _ = self._listener.accept()
                except OSError:
                    return
                cuts = self._side if not self._connections else None
                words = (client, cuts, not self._connections)
                self._connections.append(threading.Thread(target=self._hand_on, args=words, daemon=True))
                self._connections[-1].start()

    def _hand_on(self, client: socket.socket, cuts: Side | None, first: bool) -> None:
        """Hand on one connection, until an end closes it or it is cut."""
        with client, socket.create_connection(self._target) as server:
            sides: dict[socket.socket, tuple[Side, socket.socket]] = {
                client: ("request", server),
                server: ("answer", client),
            }
            passed = {"request": 0, "answer": 0}
            while sides and not self._is_over(cuts, passed):
                for source in select.select([*sides], [], [])[0]:
                    side, sink = sides[source]
                    room = self._place - passed[side] if side == cuts else PART
                    try:
                        data = source.recv(min(room, PART))
                        sink.sendall(data)
                    except OSError:
                        return
                    passed[side] += len(data)
                    if not data:
                        del sides[source]
                        with contextlib.suppress(OSError):
                            sink.shutdown(socket.SHUT_WR)
                    if self._is_over(cuts, passed):
                        break
            if first:
                self.passed = passed
            if self._is_over(cuts, passed):
                self.cut = True
                for end in (client, server):
                    end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)

    def _is_over(self, cuts: Side | None, passed: Mapping[str, int]) -> bool:
        """Return whether a connection has come to the place where it is cut."""
        return cuts is not None and passed[cuts] >= self._place
