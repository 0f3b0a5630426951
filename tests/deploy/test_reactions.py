"""From an HTTP append to a reaction, as deployed: stream, indexer, topic, queue, function, each with
no more permissions than it is given.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import count
from statistics import median, quantiles
from typing import Any

import pytest

from epochal.contrib.console.page import Services
from epochal.contrib.console.server import Guard, application
from epochal.contrib.local import deploy
from epochal.contrib.local.deploy import LocalDeployment
from epochal.contrib.local.function_logs import logs_of
from epochal.contrib.local.processes import Server
from epochal.contrib.local.programs import Places
from epochal.dynamo.interpreter import interpreter, open_deployment
from epochal.dynamo.stores import Place, open_read_models
from epochal.hosting.services import invoker
from epochal.layout.registry import base_of, partition_of
from epochal.layout.tables import READ_MODELS
from tests.deploy.conftest import stages_with
from tests.deploy.test_http_api import Caller
from tests.deploy.test_permissions import PREFIX, allowed_on_tables, expected_on_tables, role_of

TABLE = "board"
SECONDS = 120.0
OLD = "Board-old"
LOCAL = "http://127.0.0.1:7000"
_numbers = count()


@dataclass(frozen=True, slots=True)
class Board:
    """The reaction `tests/deploy/reactions/board`, and the table that it writes to."""

    deployment: LocalDeployment
    call: Caller

    def append(self, stream: str, *types: str) -> None:
        answer = self.call(
            "POST", f"/streams/{stream}/events", {"events": [{"type": each} for each in types]}
        )
        assert answer.status == 201, answer.content

    def seen(self, stream: str, events: int) -> list[tuple[int, str, float]]:
        """Index, type and time of the stream's events that the handler was given, waited for."""
        dynamodb = self.deployment.endpoint.client("dynamodb")
        ends = time.monotonic() + SECONDS
        while True:
            item = dynamodb.get_item(TableName=TABLE, Key={"stream": {"S": stream}}).get("Item", {})
            lines = [line["S"].split(" ") for line in item.get("seen", {"L": []})["L"]]
            if len(lines) >= events or time.monotonic() > ends:
                return [(int(index), kind, float(at)) for index, kind, at in lines]
            time.sleep(0.05)

    def told(self, stream: str, *, to_break: bool) -> None:
        dynamodb = self.deployment.endpoint.client("dynamodb")
        key = {"stream": {"S": f"break {stream}"}}
        if to_break:
            dynamodb.put_item(TableName=TABLE, Item=key)
        else:
            dynamodb.delete_item(TableName=TABLE, Key=key)

    def ask(self, **payload: object) -> Any:
        """Invoke the function as an operator does."""
        answer = self.deployment.endpoint.client("lambda").invoke(
            FunctionName="epochal-dev-reaction-board", Payload=json.dumps(payload)
        )
        assert "FunctionError" not in answer
        return json.loads(answer["Payload"].read())

    def logged(self, stream: str, attempt: int) -> dict[str, Any]:
        """What the function has logged of a call that failed, waited for: late lines come with a later invocation's."""
        logs = logs_of([self.deployment.endpoint], "reaction-board")
        ends = time.monotonic() + SECONDS
        while time.monotonic() < ends:
            for each in logs.more():
                if "a handler failed" in each.text:
                    line: dict[str, Any] = json.loads(each.text)
                    if (line["stream"], line["attempt"]) == (stream, attempt):
                        return line
            self.ask(command="parked", partition=0)
        pytest.fail("no such line is in the log")

    def parked(self, stream: str) -> dict[str, Any] | None:
        """The stream among those that are parked, waited for."""
        ends = time.monotonic() + SECONDS
        while time.monotonic() < ends:
            answer = self.ask(command="parked", partition=partition_of(stream, 1, base_of("pages")))
            for each in answer["parked"]:
                if each["stream"] == stream:
                    found: dict[str, Any] = each
                    return found
            time.sleep(0.2)
        return None


@pytest.fixture(scope="module")
def board(places: Places, ministack_server: Server, furnished: LocalDeployment) -> Board:
    """The reaction, deployed in the place of others, after events that are older than it."""
    furnished.endpoint.client("dynamodb").create_table(
        TableName=TABLE,
        KeySchema=[{"AttributeName": "stream", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "stream", "AttributeType": "S"}],
        BillingMode="PAY_PER_REQUEST",
    )
    board = Board(furnished, Caller(furnished))
    board.append(OLD, "First", "Second")
    board.append(OLD, "Third")
    context = stages_with(places, reactions=_reactions(), read_models=True)
    return replace(board, deployment=deploy.deploy(places, ministack_server, context=context))


def _reactions() -> dict[str, Any]:
    """One is allowed two things on a table of its own, one makes a read model, one cannot be imported."""
    own = f"arn:${{AWS::Partition}}:dynamodb:${{AWS::Region}}:${{AWS::AccountId}}:table/{TABLE}"
    reaction = {
        "entry": "tests/deploy/reactions/board",
        "environment": {"BOARD_TABLE": TABLE},
        "permissions": [{"actions": ["dynamodb:GetItem", "dynamodb:UpdateItem"], "resources": [own]}],
    }
    counts = {"entry": "tests/deploy/reactions/counts", "read_models": ["counts"]}
    return {"board": reaction, "broken": {"entry": "tests/deploy/reactions/broken"}, "counts": counts}


@pytest.fixture
def stream() -> Iterator[str]:
    """A name that no other test uses."""
    return f"Board-{next(_numbers)}"


def test_a_new_reaction_begins_with_events_that_are_older_than_it(board: Board) -> None:
    """The deployment woke it: nothing was appended since, and its schedule is a quarter of an hour away."""
    assert [(index, kind) for index, kind, _ in board.seen(OLD, 3)] == [
        (0, "First"),
        (1, "Second"),
        (2, "Third"),
    ]


def test_a_stage_that_has_timers_no_more_has_no_schedules(board: Board) -> None:
    groups = board.deployment.endpoint.client("scheduler").list_schedule_groups()["ScheduleGroups"]
    assert "epochal-dev-timers" not in {each["Name"] for each in groups}


def test_a_reaction_that_cannot_be_imported_is_deployed_and_fails_by_itself(board: Board) -> None:
    """It answers nobody; had CloudFormation asked it, the deployment would hang, and its rollback too."""
    answer = board.deployment.endpoint.client("lambda").invoke(
        FunctionName="epochal-dev-reaction-broken", Payload=b"{}"
    )
    assert "FunctionError" in answer
    assert "forgotten.json" in answer["Payload"].read().decode()


def test_events_reach_it_in_order_and_those_of_other_categories_do_not(board: Board, stream: str) -> None:
    board.append(f"Other{stream}", "Unwanted")  # of the same partition, so it comes before what is waited for
    for number in range(10):
        board.append(stream, f"{number}a", f"{number}b")
    expected = [(2 * number + each, f"{number}{'ab'[each]}") for number in range(10) for each in (0, 1)]
    assert [(index, kind) for index, kind, _ in board.seen(stream, 20)] == expected
    assert board.seen(f"Other{stream}", 0) == []


def test_a_failing_stream_is_parked_and_replayed_and_others_go_on(board: Board, stream: str) -> None:
    neighbour = f"{stream}-neighbour"
    board.told(stream, to_break=True)
    board.append(stream, "Fails")
    parked = board.parked(stream)
    assert parked is not None
    assert (parked["index"], parked["attempts"]) == (0, 2)
    assert "told to break" in parked["cause"]
    assert parked["trace"].endswith('raise RuntimeError("told to break")\nRuntimeError')
    logged = board.logged(stream, 2)
    assert logged["place"].startswith("handler.py:")
    assert logged["trace"] == parked["trace"]
    board.append(stream, "Waits")
    board.append(neighbour, "Passes")
    assert [kind for _, kind, _ in board.seen(neighbour, 1)] == ["Passes"]
    assert board.seen(stream, 0) == []
    board.told(stream, to_break=False)
    replayed = board.ask(command="replay", partition=partition_of(stream, 1, base_of("pages")), stream=stream)
    assert (replayed["unparked"], replayed["next"], replayed["failure"]) == (True, 2, None)
    board.append(stream, "GoesOn")
    assert [kind for _, kind, _ in board.seen(stream, 3)] == ["Fails", "Waits", "GoesOn"]


def test_a_discarded_event_is_given_up_and_its_stream_goes_on(board: Board, stream: str) -> None:
    board.told(stream, to_break=True)
    board.append(stream, "Fails")
    assert board.parked(stream) is not None
    board.told(stream, to_break=False)
    partition = partition_of(stream, 1, base_of("pages"))
    assert board.ask(command="discard", partition=partition, stream=stream)["unparked"] is True
    board.append(stream, "GoesOn")
    assert [(index, kind) for index, kind, _ in board.seen(stream, 1)] == [(1, "GoesOn")]


def test_the_console_has_it_replay_what_it_has_parked_by_the_name_of_its_function(
    board: Board, stream: str
) -> None:
    board.told(stream, to_break=True)
    board.append(stream, "First", "Second")
    assert board.parked(stream)
    board.told(stream, to_break=False)
    endpoint, settings = board.deployment.endpoint, board.deployment.settings
    name = settings.index_table.removesuffix("-index")
    services = Services(prefix=name, invoke=invoker(endpoint.client("lambda")))
    guard = Guard()
    opened = open_deployment(settings, execute=interpreter(endpoint.client("dynamodb")))
    asked = {"act": "replay", "group": "board", "stream": stream, "index": 0, "token": guard.token}
    place = {"partition": partition_of(stream, 1, base_of("pages"))}
    answer = (
        application(opened, name, services, guard)
        .test_client()
        .post("/parked", data=asked | place, base_url=LOCAL, headers={"Origin": LOCAL})
    )
    assert answer.status_code == 200, answer.text
    assert f"{stream} continues" in answer.text
    assert [kind for _, kind, _ in board.seen(stream, 2)] == ["First", "Second"]


def test_what_wakes_it_by_schedule_wakes_every_partition(board: Board) -> None:
    """The event of a rule, as EventBridge has it."""
    event = {"source": "aws.events", "detail-type": "Scheduled Event", "detail": {}, "resources": []}
    assert board.ask(**event)["woken"] >= 1


def test_a_deployed_reaction_makes_a_read_model_and_who_has_appended_can_wait_for_it(
    board: Board, stream: str
) -> None:
    endpoint, table = board.deployment.endpoint, board.deployment.settings.read_models_table
    place = Place(endpoint=endpoint.url, region=endpoint.region)
    counts = open_read_models(table, place=place).live("counts")
    counted = f"Count-{stream}"
    for number in range(1, 4):
        board.append(counted, f"Seen-{stream}", "Seen")
        assert counts.wait_for(counted, 2 * number, seconds=SECONDS)
        assert counts.get(f"Seen-{stream}") == number


@pytest.mark.parametrize(("name", "models"), [("counts", True), ("board", False)])
def test_the_role_of_a_reaction_allows_what_the_matrix_says_and_read_models_where_it_makes_some(
    board: Board, name: str, models: bool
) -> None:
    expected = {
        (action, on) for action, on in expected_on_tables("reaction") if models or on != READ_MODELS.kind
    }
    assert allowed_on_tables(role_of(board.deployment, f"reaction-{name}")) == expected


def test_the_role_of_what_wakes_reactions_allows_what_the_matrix_says(board: Board) -> None:
    listed = board.deployment.endpoint.client("lambda").list_functions()["Functions"]
    names = [each["FunctionName"] for each in listed if "EpochalWaker" in each["FunctionName"]]
    assert names
    for name in names:
        assert allowed_on_tables(role_of(board.deployment, name.removeprefix(PREFIX))) == expected_on_tables(
            "waker"
        )


@pytest.mark.proof
def test_from_append_to_reaction_it_takes_less_than_a_second(
    board: Board, stream: str, record_testsuite_property: Callable[[str, object], None]
) -> None:
    """The median: a machine that does other things besides is late now and then."""
    taken = []
    for number in range(25):
        name = f"{stream}-{number}"
        began = time.time()
        board.append(name, "Timed")
        ((_, _, at),) = board.seen(name, 1)
        taken.append(at - began)
    p90 = quantiles(taken, n=10)[-1]
    told = f"append to reaction: median {median(taken):.3f} s, p90 {p90:.3f} s, of {len(taken)}"
    record_testsuite_property("reaction-latency", told)
    sys.stdout.write(f"\n{told}\n")
    assert median(taken) < 1


def test_no_run_is_refused_the_lease_on_its_wake_ups(board: Board, stream: str) -> None:
    """A refused lease is logged; without leases, a run that fails comes again after a minute in place of seconds."""
    board.append(stream, "Leased")
    assert board.seen(stream, 1)
    board.ask(command="parked", partition=0)  # the log shows late lines with a later invocation's
    lines = [line.text for line in logs_of([board.deployment.endpoint], "reaction-board").more()]
    assert lines
    assert [line for line in lines if "lease on wake-ups" in line] == []
