"""A connection that is cut at any byte of an append or of its answer never leads to two appends."""

from __future__ import annotations

import random
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from tests.clients.cutting import CuttingProxy, Side
from tests.clients.local_api import local_api
from tests.clients.typescript import Played, make_calls
from tests.support.api import Api

SAMPLES: Final = 40
"""Bytes of each side at which connections are cut, beside the first and the last."""


def append_to(number: int) -> dict[str, Any]:
    """An append that expects nothing: a second one would succeed, too."""
    return {"append": {"stream": f"Cut-{number:06}", "events": [{"type": "Placed", "data": {"total": 12}}]}}


def places_of(size: int, luck: random.Random) -> list[int]:
    """Sampled bytes of a side with so many."""
    return sorted({0, 1, size - 1, size, *luck.sample(range(2, size - 1), SAMPLES)})


def test_connections_that_are_cut_never_lead_to_two_appends(client: Path) -> None:
    api, luck = Api(), random.Random(1)
    with local_api(api) as url, ExitStack() as proxies:
        target = (str(urlsplit(url).hostname), int(urlsplit(url).port or 0))
        with CuttingProxy(target) as whole:
            make_calls(client, [Played(url=whole.url, options={}, calls=(append_to(0),))])
        sides: tuple[Side, Side] = ("request", "answer")
        cuts = [(side, place) for side in sides for place in places_of(whole.passed[side], luck)]
        started = [proxies.enter_context(CuttingProxy(target, side, place)) for side, place in cuts]
        entries = [
            Played(url=proxy.url, options={}, calls=(append_to(number),))
            for number, proxy in enumerate(started, 1)
        ]
        outcomes = make_calls(client, entries)

    for number, (cut, outcome) in enumerate(zip(cuts, outcomes, strict=True), 1):
        events = api.call("GET", f"/streams/Cut-{number:06}/events").json["events"]
        assert [event["type"] for event in events] == ["Placed"], cut
        assert outcome["value"]["version"] == 1, cut
    assert sum(proxy.cut for proxy in started) >= 2 * SAMPLES
    assert sum(outcome["value"]["replayed"] for outcome in outcomes) >= SAMPLES // 2
