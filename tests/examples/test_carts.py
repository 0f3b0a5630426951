"""The web service of `epochal new --kind web` takes two hundred requests at a time, and stores each event once."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import httpx
import pytest

from epochal import metadata
from epochal.aio.bridge import wait
from epochal.aio.stores import AsyncDeciders, AsyncStreams
from epochal.plan.ops import Op, Reply
from epochal.testing.stores import memory_streams
from tests.support.terminal import Terminal

MODULES = ("carts", "open_carts", "preconditions", "status", "web")


@pytest.fixture
def web(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The module of the service, imported from a new project."""
    monkeypatch.chdir(tmp_path)
    Terminal().documents("new", "shop", "--kind", "web")
    monkeypatch.syspath_prepend(str(tmp_path / "shop"))
    yield import_module("web")
    for name in MODULES:
        sys.modules.pop(name, None)


@pytest.mark.slow
def test_two_hundred_requests_at_a_time_are_two_hundred_events(web: Any) -> None:
    """Every request of the store lets other tasks go first."""
    store = memory_streams()

    def perform(op: Op) -> Reply:
        wait(asyncio.sleep(0.001))
        return store.driver.execute(op)

    streams = AsyncStreams(replace(store, driver=replace(store.driver, execute=perform)))
    carts = AsyncDeciders(streams=streams, decider=web.decider, codec=web.codec)
    app = web.service(web.on_dynamodb)
    app.dependency_overrides[web.shop_of] = lambda: web.Shop(carts=carts, open_carts=None)

    async def shop() -> None:
        transport = httpx.ASGITransport(app=app)
        async with httpx.AsyncClient(transport=transport, base_url="http://carts") as client:
            with metadata(user="ada"):
                answers = await asyncio.gather(
                    *(
                        client.post(f"/carts/{number % 40}/items", json={"sku": f"s{number}", "pieces": 1})
                        for number in range(200)
                    )
                )
            assert {answer.status_code for answer in answers} == {200}
            pages = await asyncio.gather(*(client.get(f"/carts/{number}") for number in range(40)))
        bought = [sku for page in pages for sku in page.json()["items"]]
        assert sorted(bought) == sorted(f"s{number}" for number in range(200))
        assert [event.meta async for event in streams.read("Cart-1")] == [b'{"user":"ada"}'] * 5

    asyncio.run(shop())
