"""A wrong address is told, and soon: at a real port where nobody listens."""

from __future__ import annotations

import socket
import time

import pytest

from epochal.contrib.equinox import open_tips
from epochal.dynamo.stores import Place
from epochal.errors import Unavailable


def test_an_address_where_nobody_listens_is_named_and_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "made")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "up")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{taken.getsockname()[1]}"
        streams = open_tips("tips", place=Place(endpoint=address, region="eu-central-1"))
        began = time.monotonic()
        with pytest.raises(
            Unavailable,
            match=f"nothing has ever answered at {address}: check the address and its region",
        ):
            streams.load("A-1")
    assert time.monotonic() - began < 20
