"""What goes wrong behind the API is answered as a problem that says what to do, and shows nothing of the inside."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from epochal.contrib.equinox.port import TIPS
from epochal.errors import Refused
from epochal.http.problems import KINDS
from epochal.pages.items import STREAMS
from epochal.plan.failures import Lost
from epochal.plan.ops import Execute, Op, Put, Reply, Update
from epochal.plan.values import number, sequence, text
from epochal.testing.memory import Fault, Faults
from tests.support.api import Api

SECRET = "arn:aws:dynamodb:eu-central-1:123456789012:table/secret"


def raising(error: Exception) -> Callable[[Execute], Execute]:
    def execute(_: Op) -> Reply:
        raise error

    return lambda _: execute


class Every(dict[int, Fault]):
    """A schedule in which every request meets the same fault."""

    def __init__(self, fault: Fault) -> None:
        super().__init__()
        self.fault = fault

    def get(self, *_: object) -> Fault:  # type: ignore[override]
        return self.fault


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/streams/Cat-1/events", {"events": [{"type": "A"}]}),
        ("POST", "/streams/Cat-1/prune", {"before": 1}),
        ("DELETE", "/streams/Cat-1", None),
        ("GET", "/streams/Cat-1", None),
        ("GET", "/streams/Cat-1/events", None),
        ("GET", "/health", None),
        ("GET", "/feed", None),
        ("GET", "/feed/0", None),
    ],
)
@pytest.mark.parametrize("fault", [Fault.THROTTLED, Fault.LOST])
def test_an_outage_is_waited_out_and_then_503_with_retry_after(
    fault: Fault, method: str, path: str, body: object
) -> None:
    api = Api(around=lambda execute: Faults(execute, Every(fault)).execute)
    answer = api.call(method, path, body)
    assert (answer.status, answer.problem, answer.headers["Retry-After"]) == (503, "unavailable", "1")
    assert 20 < api.clock.now <= 25
    assert api.stored == []


def test_a_short_outage_is_not_noticed() -> None:
    api = Api(around=lambda execute: Faults(execute, {0: Fault.THROTTLED, 1: Fault.LOST}).execute)
    assert api.append("Cat-1", "A").status == 201


def test_a_function_with_little_time_left_gives_up_before_it_is_stopped() -> None:
    api = Api(around=lambda execute: Faults(execute, Every(Fault.THROTTLED)).execute)
    assert api.call("GET", "/streams/Cat-1", seconds=5.0).status == 503
    assert api.clock.now <= 4.0


def test_an_append_whose_answer_was_lost_can_be_repeated_under_its_key() -> None:
    """The key's record is answered; of the append itself nothing is heard."""
    unheard = dict.fromkeys(range(1, 10_000), Fault.UNANSWERED)
    api = Api(around=lambda execute: Faults(execute, unheard).execute)
    body, key = {"events": [{"type": "A"}], "expected": "no_stream"}, {"Idempotency-Key": "k"}
    answer = api.call("POST", "/streams/Cat-1/events", body, headers=key)
    assert answer.status == 503
    assert "may have been applied" in answer.json["detail"]
    healthy = Api(tables=api.tables)
    again = healthy.call("POST", "/streams/Cat-1/events", body, headers=key)
    assert (again.status, again.json["replayed"], again.json["version"]) == (201, True, 1)


def test_an_append_whose_evidence_was_pruned_is_409() -> None:
    """The answer is lost; before the retry another writer appends and prunes both events."""
    other = Api()
    other.append("Cat-1", "A")

    def around(execute: Execute) -> Execute:
        lost = False

        def perform(op: Op) -> Reply:
            nonlocal lost
            reply = execute(op)
            if isinstance(op, Update) and not lost:
                lost = True
                other.append("Cat-1", "C")
                other.call("POST", "/streams/Cat-1/prune", {"before": 3})
                raise Lost("timed out")
            return reply

        return perform

    answer = Api(tables=other.tables, around=around).append("Cat-1", "B", expected=1)
    assert (answer.status, answer.problem) == (409, "undetermined")
    assert (answer.json["stream"], answer.json["index"]) == ("Cat-1", 1)


def test_an_unforeseen_error_is_a_bare_500_and_a_trace_in_the_logs(
    capsys: pytest.CaptureFixture[str],
) -> None:
    api = Api(around=raising(RuntimeError(SECRET)))
    answer = api.call("GET", "/streams/Cat-1", headers={"X-Correlation-Id": "abc"})
    assert (answer.status, answer.problem) == (500, "internal")
    assert set(answer.json) == {"type", "title", "status", "instance"}
    assert SECRET not in answer.text
    logged = json.loads(capsys.readouterr().out.splitlines()[0])
    assert (logged["level"], logged["correlation_id"]) == ("ERROR", "abc")
    assert (logged["problem"], logged["error"]) == ("internal", "RuntimeError")
    assert "in _perform" in logged["trace"]


def test_a_missing_permission_is_500_and_does_not_show_which(capsys: pytest.CaptureFixture[str]) -> None:
    answer = Api(around=raising(Refused("GetItem", SECRET))).call("GET", "/streams/Cat-1")
    assert (answer.status, answer.problem) == (500, "internal")
    assert SECRET not in answer.text
    assert SECRET in capsys.readouterr().out


def test_a_missing_table_is_503_and_does_not_show_its_name() -> None:
    api = Api()
    del api.tables._tables[STREAMS.kind]  # noqa: SLF001  a deployment that lost a table
    answer = api.append("Cat-1", "A")
    assert (answer.status, answer.problem) == (503, "not-deployed")
    assert STREAMS.kind not in answer.json["detail"]


def test_a_tip_that_contradicts_itself_is_500() -> None:
    api = Api(store="tips")
    item = {
        "p": text("Cat-1"),
        "i": number(2147483647),
        "n": number(7),
        "e": sequence([]),
        "c": sequence([text("A")]),
    }
    api.tables.execute(Put(table=TIPS.kind, item=item))
    answer = api.call("GET", "/streams/Cat-1")
    assert (answer.status, answer.problem) == (500, "corrupt-data")


def test_every_kind_of_problem_has_a_name_of_its_own() -> None:
    assert len({kind.type for kind in KINDS}) == len(KINDS)
    assert all(400 <= kind.status < 600 for kind in KINDS)
