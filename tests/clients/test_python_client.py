"""The client in Python passes the cases that every client passes, ordinary and awaited; cuts append nothing twice."""

from __future__ import annotations

import contextlib
import io
import random
import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import pytest

from tests.clients.cases import Case, Matcher, read_cases
from tests.clients.cutting import CuttingProxy, Side
from tests.clients.local_api import local_api
from tests.clients.python_client import Play, carried, play_awaited, play_ordinary, what_is_seen
from tests.clients.scripted import ScriptedServer
from tests.clients.test_cut_appends import SAMPLES, append_to, places_of
from tests.support.api import Api

CASES: Final = read_cases()
LIVE: Final = [case for case in CASES if case.live is not None]

OF_PYTHON: Final[dict[str, Any]] = {
    "a stream that is not there is an error": {"value": {"events": []}},
}
"""What the caller sees in Python instead: a read of a stream that is not there is empty, as `Streams.read` is."""

FORMS: Final = pytest.mark.parametrize("play", [play_ordinary, play_awaited])


@pytest.fixture(scope="module")
def server() -> Iterator[ScriptedServer]:
    with ScriptedServer() as playing:
        yield playing


@pytest.fixture(scope="module")
def live() -> Iterator[str]:
    """The API over tables in memory, in which each case of each form has names of its own."""
    with local_api(Api()) as url:
        yield url


def seen(case: Case, sees: Any, outcome: dict[str, Any]) -> str | None:
    """Return where what was seen differs from what a case says, as far as Python's errors carry it."""
    expected = OF_PYTHON.get(case.name) or carried(sees, outcome)
    return Matcher().difference(expected, outcome, exact=False)


@FORMS
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_client_passes_a_case(server: ScriptedServer, case: Case, play: Play) -> None:
    run = case.of_run("1")
    script = server.play(run)
    outcome = play(script.url, run.options, lambda streams: what_is_seen(streams, run.call))
    script.finish()
    assert seen(run, run.sees, outcome) is None, outcome


@FORMS
@pytest.mark.parametrize("number", range(len(LIVE)), ids=[case.name for case in LIVE])
def test_the_api_does_what_a_case_says(live: str, number: int, play: Play) -> None:
    run = LIVE[number].of_run(str(2 * number + (play is play_awaited)))
    told = run.live or {}

    def calls(streams: Any) -> dict[str, Any]:
        for call in told.get("before", ()):
            what_is_seen(streams, call)
        return what_is_seen(streams, run.call)

    outcome = play(live, run.options, calls)
    assert seen(run, told.get("sees", run.sees), outcome) is None, outcome


@FORMS
@pytest.mark.slow
def test_connections_that_are_cut_never_lead_to_two_appends(play: Play) -> None:
    api, luck, cuts = Api(), random.Random(1), 0
    with local_api(api) as url:
        target = (str(urlsplit(url).hostname), int(urlsplit(url).port or 0))
        with CuttingProxy(target) as whole:
            play(whole.url, {}, lambda streams: what_is_seen(streams, append_to(0)))
        number, replayed = 0, 0
        sides: tuple[Side, Side] = ("request", "answer")
        for side in sides:
            for place in places_of(whole.passed[side], luck):
                number += 1
                call = append_to(number)
                with CuttingProxy(target, side, place) as proxy:
                    outcome = play(proxy.url, {}, partial(what_is_seen, call=call))
                events = api.call("GET", f"/streams/Cut-{number:06}/events").json["events"]
                assert [event["type"] for event in events] == ["Placed"], (side, place)
                assert outcome["value"]["version"] == 1, (side, place)
                cuts += proxy.cut
                replayed += outcome["value"]["replayed"]
    assert cuts >= 2 * SAMPLES
    assert replayed >= SAMPLES // 2


README: Final = (
    Path(__file__).resolve().parents[2] / "layers/epochal/python/epochal/contrib/http_client/README.md"
)


def test_the_example_of_the_package_prints_what_it_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-central-1")
    ((code, printed),) = re.findall(
        r"```python\n(.*?)```\n```text\n(.*?)```", README.read_text("utf-8"), re.DOTALL
    )
    shown = io.StringIO()
    with local_api(Api()) as url, contextlib.redirect_stdout(shown):
        here = re.sub(r"https://[^\"]+", url, code)
        assert here != code
        exec(compile(here, README.name, "exec", dont_inherit=True), {})  # noqa: S102  the page is ours
    assert (
        "".join(line + "\n" for line in shown.getvalue().splitlines() if not line.startswith('{"')) == printed
    )
