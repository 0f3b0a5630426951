"""A process as it is deployed, from an HTTP append to what it leads to: the checkout of the examples."""

from __future__ import annotations

import time
from itertools import count
from typing import Any

import pytest

from epochal.contrib.local.deploy import LocalDeployment
from tests.deploy.conftest import UNPAID
from tests.deploy.test_http_api import Caller

SECONDS = 240.0
_numbers = count(1)


class Shop:
    """The store, as those who order and pay use it."""

    def __init__(self, deployment: LocalDeployment) -> None:
        self.call = Caller(deployment)

    def append(self, stream: str, type_: str, data: dict[str, Any]) -> None:
        answer = self.call("POST", f"/streams/{stream}/events", {"events": [{"type": type_, "data": data}]})
        assert answer.status == 201, answer.content

    def placed(self, sku: str) -> str:
        order = f"{next(_numbers)}"
        self.append(f"Order-{order}", "Placed", {"order": order, "sku": sku, "price": 10})
        return order

    def types(self, stream: str, events: int) -> list[str]:
        """The types of a stream's events, waited for."""
        ends = time.monotonic() + SECONDS
        while True:
            answer = self.call("GET", f"/streams/{stream}/events")
            found = [each["type"] for each in answer.json["events"]] if answer.status == 200 else []
            if len(found) >= events or time.monotonic() > ends:
                return found
            time.sleep(0.1)


@pytest.fixture(scope="module")
def shop(furnished: LocalDeployment) -> Shop:
    return Shop(furnished)


def test_an_order_that_is_paid_is_confirmed(shop: Shop) -> None:
    order = shop.placed("lamp")
    assert shop.types(f"Payment-{order}", 1) == ["Requested"]
    shop.append(f"Payment-{order}", "Paid", {})
    assert shop.types(f"Order-{order}", 2) == ["Placed", "Confirmed"]


def test_what_a_decider_refuses_ends_the_order(shop: Shop) -> None:
    for _ in range(3):
        assert shop.types(f"Payment-{shop.placed('rug')}", 1) == ["Requested"]
    assert shop.types(f"Order-{shop.placed('rug')}", 2) == ["Placed", "Abandoned"]


def test_an_order_that_nobody_pays_in_time_gives_back_what_it_held(shop: Shop) -> None:
    assert shop.types(f"Payment-{UNPAID}", 1) == ["Requested"]
    assert shop.types(f"Order-{UNPAID}", 2) == ["Placed", "Abandoned"]
    assert shop.types("Stock-vase", 2) == ["Reserved", "Released"]
    assert "$timer-fired" in shop.types(f"checkout-{UNPAID}", 1)
