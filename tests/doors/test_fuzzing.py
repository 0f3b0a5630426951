"""Requests made up from the OpenAPI document, by the thousand: no answer is a failure, each is one that is documented.

Schemathesis takes the document apart and sends what it allows and what it forbids: each boundary once (its phase
`coverage`). The long run has combinations by chance (`fuzzing`) and operations one after the other on what earlier ones
made (`stateful`). Everything is seeded: a failure is the same in every run.

All of its checks are on, but one: who is calling is not the functions' business (`ignored_auth`; see `test_callers`).
What the document cannot say is listed here (`UNSAID`); any other refusal of what it allows is a failure.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from copy import deepcopy
from typing import Any, Final
from urllib.parse import urlsplit

import pytest
from schemathesis import openapi
from schemathesis.config import SchemathesisConfig
from schemathesis.engine import events, from_schema
from schemathesis.engine.recorder import CheckNode, Interaction, ScenarioRecorder
from schemathesis.schemas import BaseSchema

from epochal.http.openapi import document
from epochal.http.routes import operations
from tests.doors.gateway import Gateway
from tests.support.api import Api

REFUSED: Final = [400, 404, 405, 409, 410, 412, 413, 415]
"""Statuses by which an invalid request may be refused: what is checked first decides which it is."""

DEPENDING: Final = ["2xx", "3xx", 404, 409, 410, 412, 413]
"""Statuses of a valid request: 413 too, since the document counts characters, and limits are bytes."""

UNSAID: Final = {
    "may not be given together with": "headers and a body's fields that exclude each other",
    "must not be given together with": "likewise",
    "must not name a stream twice": "appends that exclude each other",
    "must be forward when order is name": "parameters that exclude each other",
    "GET /streams from: must be": "a name, or a place: as another parameter says",
    "must be a whole number": "JSON schemas call 5.0 an integer",
    "must be a version or one of": "likewise",
    "must be an ISO 8601 date and time": "the 31st of a month that has 30 days",
    "must lie in the years": "the year 0",
    "printable text": "which characters are printable is Unicode's to say",
    "must be at most": "limits in bytes, and of two fields together",
    "must not be given: events share pages": "one schema of two stores, in one of which events expire",
    "must not be given: these tables do not use a bucket": "likewise, in the other of which events name uploads",
    "names no object of that size": "depends on what is stored",
    "was already used for an append with other contents": "depends on what is stored",
    "is required with the first event of an aggregate": "depends on what is stored",
    "lies beyond the end of partition": "depends on what is stored",
    "is the position of a read that did not include": "a position belongs to a query",
    "must be `next` of the previous page": "opaque",
    "must be `next` of a page of the same group": "two parameters that have to agree",
    "must be the `next` value of the previous page": "opaque",
    "must be a position that": "opaque",
    "must be a token that": "a version beyond the highest",
    "must be an ETag that": "a version beyond the highest",
    "must have an offset of at most": "a pattern counts digits",
    "must be a checkpoint of at most": "an integer of 63 bits",
    "must be bodies/ followed by sha256": "two fields that have to agree",
    "must be the text of an OrderedCheckpoint": "opaque",
    "must not name a partition twice": "partitions of one position",
    "must be the part of stream names before": "a category with - is of tags, or declared",
    "one object has a name twice": "parameters of one name",
    "must not contain an id twice": "events of one id",
    "must not be given without failIf": "said, but overlooked: `dependentRequired` beside a choice",
    "must be * or": "said, but overlooked: some headers are made up without regard to their pattern",
}
"""What the document leaves to words, by how the refusal begins or goes on; a request and a field may come before."""

SHORT: Final = ("examples", "coverage")


FEW: Final = r"^/(streams/|feed|health)"
"""Paths of which `make test` asks: those of the other stores have the same parsers."""


@pytest.mark.slow
@pytest.mark.parametrize("paths", [FEW, pytest.param("^/", marks=pytest.mark.proof)], ids=["few", "all"])
def test_whatever_is_sent_is_answered_as_documented(paths: str) -> None:
    """Every operation takes part, with requests that are taken and others that are refused."""
    seen: Counter[tuple[str, bool]] = Counter()
    failures = [each for found in run(SHORT, paths, examples=5) for each in judged(found, seen)]
    assert not failures, "\n\n".join(failures[:10])
    wanted = {f"{route.method} {route.path}" for route in operations() if re.match(paths, route.path)}
    assert {label for label, _ in seen} == wanted
    without_input = {"GET /feed", "GET /health"}
    assert {label for label, refused in seen if refused} >= wanted - without_input


@pytest.mark.proof
def test_whatever_is_sent_after_anything_else_is_answered_as_documented() -> None:
    seen: Counter[tuple[str, bool]] = Counter()
    failures = [
        each for found in run(("fuzzing", "stateful"), "^/", examples=60) for each in judged(found, seen)
    ]
    assert not failures, "\n\n".join(failures[:10])
    assert sum(seen.values()) > 1_500


def run(phases: tuple[str, ...], paths: str, *, examples: int) -> Iterator[ScenarioRecorder]:
    """What was sent and found, an operation at a time."""
    for event in from_schema(schema(phases, examples).include(path_regex=paths)).execute():
        assert not isinstance(event, events.FatalError | events.NonFatalError), event
        if isinstance(event, events.ScenarioFinished):
            yield event.recorder


def schema(phases: tuple[str, ...], examples: int) -> BaseSchema:
    settings = {
        "seed": 20130101,
        "workers": 1,
        "continue-on-failure": True,
        "generation": {
            "mode": "all",
            "max-examples": examples,
            "deterministic": True,
            "database": "none",
            "no-shrink": True,
        },
        "checks": {
            "ignored_auth": {"enabled": False},
            "negative_data_rejection": {"expected-statuses": REFUSED},
            "positive_data_acceptance": {"expected-statuses": DEPENDING},
        },
        "phases": {
            name: {"enabled": name in phases} for name in ("examples", "coverage", "fuzzing", "stateful")
        },
    }
    made = openapi.from_dict(deployed(), config=SchemathesisConfig.from_dict(settings))
    made.app = Gateway(Api(type_heads=True))
    made.location = "/openapi.json"
    return made


def deployed() -> dict[str, Any]:
    """The document as a deployment could narrow it: the types of aggregates are known."""
    made = deepcopy(document())
    for path in made["paths"].values():
        for operation in path.values():
            for parameter in operation.get("parameters", ()):
                if (parameter["in"], parameter["name"]) == ("path", "type"):
                    parameter["schema"] = {"enum": list(Api.types)}
    return made


def judged(found: ScenarioRecorder, seen: Counter[tuple[str, bool]]) -> Iterator[str]:
    """What failed, in words; what was sent is counted in `seen` by operation and whether it was refused."""
    for id_, checks in found.checks.items():
        interaction = found.interactions[id_]
        assert interaction.response is not None
        seen[found.label, interaction.response.status_code >= 400] += 1
        for check in checks:
            if check.failure_info is not None and not _unsaid(check, interaction):
                failure, request = check.failure_info.failure, check.failure_info.code_sample
                yield f"{found.label}: {failure.title}\n{failure.message}\n{request[:1_000]}\n{_answer(interaction)}"


def _unsaid(check: CheckNode, interaction: Interaction) -> bool:
    """Whether a valid request was refused for what the document has no means to say."""
    if check.name != "positive_data_acceptance":
        return False
    problem, request = json.loads(_answer(interaction)), interaction.request
    asked = f"{request.method} {urlsplit(request.uri).path} {problem.get('field')}: {problem.get('rule', '')}"
    return any(re.search(rf"\b{re.escape(start)}", asked) for start in UNSAID)


def _answer(interaction: Interaction) -> str:
    assert interaction.response is not None
    return interaction.response.content.decode()
