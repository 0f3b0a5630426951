"""What waits in the table of timers, on the command line."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from click.testing import CliRunner

from epochal.cli.main import epochal
from epochal.cli.target import OpenedStore
from epochal.codec import json
from epochal.contrib.timers.engine import engine_of
from epochal.contrib.timers.stores import timers_of
from epochal.contrib.transfer.copying.sources import StreamSource
from epochal.contrib.transfer.copying.stream_copy import StreamCopier
from epochal.deployment import Deployment
from epochal.errors import InvalidInput
from epochal.model.events import Event
from epochal.plan.ops import Delete
from epochal.scheduling import after, cancel, later
from epochal.settings import Settings
from epochal.testing.stores import MemoryBucket, memory_settings
from tests.contrib.timers.world import BEGIN, World

DAY = 86_400


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    world = World()
    monkeypatch.setattr(
        "epochal.contrib.timers.commands.engine_of", partial(engine_of, now=lambda: world.time)
    )
    return world


def run(world: World, *arguments: str, table: str = "timers", clients: Any = None) -> Any:
    deployment = Deployment(
        settings=memory_settings(**({"timers_table": table} if table else {})),
        driver=world.engine.driver,
        bucket=MemoryBucket(),
    )
    store = OpenedStore.of(deployment, list, lambda _: clients)
    return CliRunner().invoke(epochal, ("timers", *arguments), obj=lambda: store)


def test_what_is_due_is_listed_in_the_order_of_its_time_with_how_late_it_is(world: World) -> None:
    for stream, seconds in (("Loan-1", 60), ("Loan-2", 30), ("Loan-3", DAY)):
        world.set(stream, "reminder", seconds)
    world.arm()
    world.time = BEGIN + 90 * 10**9
    assert run(world, "due").stdout.splitlines() == [
        "2026-09-21T14:13:50.0000000+00:00  Loan-2@0  60 s late",
        "2026-09-21T14:14:20.0000000+00:00  Loan-1@0  30 s late",
    ]
    (first,) = map(json.loads, run(world, "due", "--json", "--limit", "1").stdout.splitlines())
    assert first == {
        "due": "2026-09-21T14:13:50.0000000+00:00",
        "late": 60,
        "layout": "pages",
        "stream": "Loan-2",
        "index": 0,
    }


def test_what_is_due_soon_is_listed_where_it_is_asked_for(world: World) -> None:
    world.set("Loan-1", "reminder", 60)
    world.tagged.append(
        [later("release", [Event(type="Came")], at=after(seconds=90), tags=("seat:1", "flight:2"))]
    )
    world.arm()
    assert run(world, "due").stdout == ""
    listed = run(world, "due", "--within", "100").stdout.splitlines()
    assert [line.rpartition("  ")[2] for line in listed] == ["in 60 s", "in 90 s"]
    assert "seat:1" in listed[1]
    assert "flight:2" in listed[1]
    assert run(world, "due", "--within", "80").stdout.count("\n") == 1


def test_each_shard_is_read_no_further_than_its_timers_are_listed(world: World) -> None:
    for number in range(40):
        world.set(f"Loan-{number}", "reminder", 1)
    world.arm()
    world.time += 10 * 10**9
    world.asked.clear()
    assert run(world, "due", "--limit", "3").stdout.count("\n") == 3
    assert len(world.asked) == 16
    assert {type(each).__name__ for each in world.asked} == {"Query"}


def test_a_store_without_timers_has_no_such_table(world: World) -> None:
    refused = run(world, "due", table="")
    assert isinstance(refused.exception, InvalidInput)
    assert "--timers-table" in str(refused.exception)


def test_timers_are_armed_anew_by_what_their_streams_say_and_woken_as_the_deployed_reaction_has_it(
    world: World,
) -> None:
    for number, seconds in enumerate((60, 120, 20 * DAY, 20 * DAY)):
        world.set(f"Loan-{number}", "reminder", seconds)
    world.streams.append("Loan-1", [cancel("reminder")])
    world.arm()
    for item in list(world.tables.items("timers")):
        world.tables.execute(Delete(table="timers", key={name: item[name] for name in ("p", "s")}))
    sent = Clients()
    done = run(world, "rebuild", "--json", clients=sent)
    assert json.loads(done.stdout) == {"settings": 4, "armed": 3, "troubles": []}
    assert {each.stream for each in world.items()} == {"Loan-0", "Loan-2", "Loan-3"}
    assert sent.asked == ["timers-reaction-timers"]
    assert sent.delays == [60]
    assert {(group, target) for _, group, target in sent.schedules} == {("group", "queue-arn")}
    again = run(world, "rebuild", "--function", "armed", clients=sent)
    assert sent.asked[1:] == ["armed"]
    assert again.stdout == "3 of 4 timers that were set are pending and armed\n"


def test_timers_of_copies_are_taken_over(world: World) -> None:
    world.set("Loan-1", "reminder", DAY, layout="tips")
    StreamCopier(source=StreamSource(world.stores["tips"]), target=world.streams).copy("Loan-1")
    world.feed.index()
    assert run(world, "take-over").stdout == "1 of 1 timers of copies were pending, and are set again\n"
    assert json.loads(run(world, "take-over", "--json").stdout) == {"settings": 1, "taken": 0, "troubles": []}
    (timer,) = timers_of(world.streams).pending("Loan-1")
    assert (timer.setting, timer.copied) == (1, False)


def test_a_rebuild_without_a_table_says_so_before_it_asks_aws(world: World) -> None:
    sent = Clients()
    refused = run(world, "rebuild", table="", clients=sent)
    assert (refused.exit_code != 0, sent.asked) == (True, [])
    assert "--timers-table" in str(refused.exception)


class Clients:
    """Of the services that a rebuild asks."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.delays: list[int] = []
        self.schedules: list[tuple[str, str, str]] = []

    def get_function_configuration(self, *, FunctionName: str) -> dict[str, Any]:  # noqa: N803
        self.asked.append(FunctionName)
        told = Settings.of(timers_queue="url", timers_schedules=("group", "queue-arn", "role-arn"))
        return {"Environment": {"Variables": told.environment("arming")}}

    def send_message_batch(self, *, QueueUrl: str, Entries: list[dict[str, Any]]) -> dict[str, Any]:  # noqa: N803
        assert QueueUrl == "url"
        self.delays += [each["DelaySeconds"] for each in Entries]
        return {}

    def create_schedule(self, **request: Any) -> None:
        assert request["Target"]["RoleArn"] == "role-arn"
        self.schedules.append((request["Name"], request["GroupName"], request["Target"]["Arn"]))
