"""The client in TypeScript passes the cases, on a scripted server and on the API over tables in memory."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from tests.clients.cases import Case, Matcher, read_cases
from tests.clients.local_api import local_api
from tests.clients.scripted import Script, ScriptedServer
from tests.clients.typescript import Played, make_calls
from tests.support.api import Api

CASES: Final = read_cases()
LIVE: Final = [case for case in CASES if case.live is not None]

Outcomes = dict[str, tuple[Mapping[str, Any], Script]]


@pytest.fixture(scope="module")
def scripted(client: Path) -> Outcomes:
    """What came of all cases on the scripted server, and how the server has played each."""
    with ScriptedServer() as server:
        scripts = [server.play(case.of_run("1")) for case in CASES]
        entries = [
            Played(url=script.url, options=case.options, calls=(case.of_run("1").call,))
            for case, script in zip(CASES, scripts, strict=True)
        ]
        outcomes = make_calls(client, entries)
    return {
        case.name: (outcome, script) for case, outcome, script in zip(CASES, outcomes, scripts, strict=True)
    }


@pytest.fixture(scope="module")
def live(client: Path) -> dict[str, Mapping[str, Any]]:
    """What came of the cases that need no scripted server, on an API of their own."""
    with local_api(Api()) as url:
        entries = [played_live(case, number, url, {}) for number, case in enumerate(LIVE)]
        outcomes = make_calls(client, entries)
    return {case.name: outcome for case, outcome in zip(LIVE, outcomes, strict=True)}


def played_live(case: Case, number: int, url: str, options: Mapping[str, Any]) -> Played:
    """The calls of a case on a real API, under names of their own."""
    run = case.of_run(str(number))
    before = (run.live or {}).get("before", ())
    return Played(url=url, options={**case.options, **options}, calls=(*before, run.call))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_client_passes_a_case(case: Case, scripted: Outcomes) -> None:
    outcome, script = scripted[case.name]
    script.finish()
    assert Matcher().difference(case.of_run("1").sees, outcome, exact=False) is None


@pytest.mark.parametrize("case", LIVE, ids=lambda case: case.name)
def test_the_api_does_what_a_case_says(case: Case, live: Mapping[str, Mapping[str, Any]]) -> None:
    run = case.of_run(str(LIVE.index(case)))
    sees = (run.live or {}).get("sees", run.sees)
    assert Matcher().difference(sees, live[case.name], exact=False) is None
