"""The promises of a run, of parking and of wake-ups, kept where the handler is awaited: the tests of a plain one."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from epochal.reactions.definition import Delivery, Reaction
from tests.core.reactions import world
from tests.core.reactions.test_parking import *  # noqa: F403  each of its tests is collected here, too
from tests.layouts.reactions.test_partition_run import *  # noqa: F403  likewise
from tests.surfaces.hosting.test_wakeups import *  # noqa: F403  likewise


@pytest.fixture(autouse=True)
def _awaited(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make each handler of a world one that is awaited."""

    def awaited(*, handler: Any, **fields: Any) -> Reaction:
        async def handle(delivery: Delivery) -> None:
            await asyncio.sleep(0)
            handler(delivery)

        return Reaction(handler=handle, **fields)

    monkeypatch.setattr(world, "Reaction", awaited)
