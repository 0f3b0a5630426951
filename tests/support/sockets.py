"""Unit tests open no sockets: one that does is slow, depends on its machine, or tests the wrong thing."""

from __future__ import annotations

import socket
from typing import NoReturn

import pytest


class SocketOpened(AssertionError):
    """A unit test tried to reach out; it belongs beside the tests that start servers."""


def no_sockets(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make every way out fail until `monkeypatch` is undone."""
    for way_out in ("bind", "connect", "connect_ex", "sendto"):
        monkeypatch.setattr(socket.socket, way_out, _refuse)
    monkeypatch.setattr(socket, "getaddrinfo", _refuse)


def _refuse(*_: object, **__: object) -> NoReturn:
    raise SocketOpened("unit tests open no sockets")
