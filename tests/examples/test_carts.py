"""The web service over a store: two hundred requests at a time, each event once, and no cart overwritten unseen."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import httpx
import pytest

from epochal.aio.bridge import wait
from epochal.aio.stores import AsyncStreams
from epochal.plan.ops import Op, Reply
from epochal.testing.stores import memory_streams
from examples.web.carts import app


@pytest.fixture
def client() -> httpx.AsyncClient:
    """A client of the service, on a store whose every request lets other tasks go first."""
    store = memory_streams()

    def perform(op: Op) -> Reply:
        wait(asyncio.sleep(0.001))
        return store.driver.execute(op)

    app.state.streams = AsyncStreams(replace(store, driver=replace(store.driver, execute=perform)))
    return httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url="http://carts")


@pytest.mark.slow
def test_two_hundred_requests_at_a_time_are_two_hundred_events(client: httpx.AsyncClient) -> None:
    async def shop() -> None:
        answers = await asyncio.gather(
            *(
                client.post(
                    f"/carts/{number % 40}/items", json={"sku": f"s{number}"}, headers={"X-User": "ada"}
                )
                for number in range(200)
            )
        )
        assert {each.status_code for each in answers} == {201}
        carts = await asyncio.gather(*(client.get(f"/carts/{number}") for number in range(40)))
        bought = [sku for cart in carts for sku in cart.json()]
        assert sorted(bought) == sorted(f"s{number}" for number in range(200))
        store: AsyncStreams = app.state.streams
        assert [event.meta async for event in store.read("Cart-1")] == [b'{"user":"ada"}'] * 5

    asyncio.run(shop())


def test_who_has_not_seen_the_latest_cart_is_told_and_adds_nothing(client: httpx.AsyncClient) -> None:
    async def shop() -> None:
        first = await client.post("/carts/1/items", json={"sku": "a"})
        seen = first.headers["ETag"]
        assert (await client.get("/carts/1")).headers["ETag"] == seen
        second = await client.post("/carts/1/items", json={"sku": "b"}, headers={"If-Match": seen})
        assert (second.status_code, second.json()) == (201, {"version": 2})
        late = await client.post("/carts/1/items", json={"sku": "c"}, headers={"If-Match": seen})
        assert late.status_code == 412
        assert (await client.get("/carts/1")).json() == {"a": 1, "b": 1}
        assert (await client.get("/carts/2")).status_code == 404
        assert (await client.post("/carts/1/items", json={"sku": 5})).status_code == 422

    asyncio.run(shop())
