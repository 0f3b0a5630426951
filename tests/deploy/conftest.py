"""A stage with whatever needs no deployment of its own: each takes twenty seconds."""

from __future__ import annotations

import json
from typing import Any

import pytest

from epochal.contrib.local import deploy
from epochal.contrib.local.deploy import LocalDeployment
from epochal.contrib.local.processes import Server
from epochal.contrib.local.programs import Places
from tests.deploy.test_http_api import Caller

UNPAID = "unpaid"
"""An order of the checkout that nobody pays; `tests/deploy/test_process` finds what a minute has made of it."""


def stages_of(places: Places) -> dict[str, Any]:
    """Those of the checkout."""
    found: dict[str, Any] = json.loads((places.root / "cdk.json").read_text())["context"]["stages"]
    return found


def stages_with(places: Places, **settings: Any) -> dict[str, str]:
    """The context with these settings of `dev` besides."""
    stages = stages_of(places)
    return {"stages": json.dumps({**stages, "dev": {**stages["dev"], **settings}})}


@pytest.fixture(scope="session")
def furnished(places: Places, ministack_server: Server, deployment: LocalDeployment) -> LocalDeployment:
    """With timers, the checkout of the examples, and what `epochal prove` wants: the reaction that a catch-up is proven
    with, a process, and the type of aggregates. An order is placed at once.
    """
    types = [*stages_of(places)["dev"]["aggregate_types"], "EpochalProof"]
    checkout = {
        "entry": "examples/checkout",
        "handler": "checkout:Checkout",
        "process": True,
        "environment": {"CHECKOUT_MINUTES": "1"},
    }
    reactions = {
        "checkout": checkout,
        "proof": {"entry": "examples/proof", "timeout_seconds": 10},
        "EpochalProcess": {"entry": "examples/proof", "handler": "process:Proving", "process": True},
    }
    context = stages_with(places, aggregate_types=types, reactions=reactions, timers=True)
    found = deploy.deploy(places, ministack_server, context=context)
    order = {"type": "Placed", "data": {"order": UNPAID, "sku": "vase", "price": 10}}
    answer = Caller(found)("POST", f"/streams/Order-{UNPAID}/events", {"events": [order]})
    assert answer.status == 201, answer.content
    return found
