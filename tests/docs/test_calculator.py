"""The calculator of costs comes to what the bill comes to, which is counted."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from bench.bill import BULK, DEPLOYED, LEAST, MILLION, PRICES, STEADY, TRICKLE, Pace, Setup, bill
from bench.functions import Use
from bench.services import (
    ALARM,
    ALARMS,
    DASHBOARD,
    REACTION_ALARMS,
    RESTORED,
    SELDOM,
    SERVICES,
    STORED,
    Service,
)

CALCULATOR = Path(__file__).resolve().parents[2] / "docs" / "reference" / "calculator.mjs"


def calculated(expression: str) -> Any:
    """What JavaScript makes of an expression over the calculator's names."""
    node = shutil.which("node")
    assert node is not None
    program = (
        f"import * as it from {json.dumps(CALCULATOR.as_uri())}; console.log(JSON.stringify({expression}))"
    )
    command = [node, "--input-type=module", "--eval", program]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


BY_THE_MONTH = ("storage", "recovery to any second", "alarms, dashboard")


def running(found: dict[str, float]) -> float:
    """What a calculated bill has for requests."""
    return sum(dollars for name, dollars in found.items() if name not in BY_THE_MONTH)


def test_its_prices_are_those_of_the_bill() -> None:
    ours = {
        "gateway": "gateway",
        "invocation": "invocation",
        "gigabyteSecond": "gigabyte-second",
        "writeUnit": "write unit",
        "readUnit": "read unit",
        "publish": "publish",
        "message": "message",
        "lease": "lease",
        "logged": "logged",
        "sent": "sent",
    }
    told = calculated("it.PRICES")
    assert {name: told[name] for name in ours} == {
        name: pytest.approx(PRICES[its][0]) for name, its in ours.items()
    }
    assert {name: told[name] for name in told.keys() - ours.keys()} == {
        "stored": STORED,
        "seldom": SELDOM,
        "restored": RESTORED,
    }


@pytest.mark.slow
@pytest.mark.parametrize("pace", [STEADY, TRICKLE], ids=["steady", "trickle"])
def test_keys_and_reactions_cost_what_the_bill_says(pace: Pace) -> None:
    month = pace.a_second * 30 * 24 * 3_600
    plain, keyed, reacting = (
        running(calculated(f"it.bill({json.dumps({'events': month, 'bytes': 300, **more})})"))
        * MILLION
        / month
        for more in ({}, {"keyed": 1}, {"reactions": 1})
    )
    bare = sum(bill(DEPLOYED, pace).values())
    for use, dearer in ((Use(keyed=True), keyed), (Use(streams=MILLION, reactions=1), reacting)):
        counted = sum(bill(Setup(name="used", use=use), pace).values())
        assert dearer - plain == pytest.approx(counted - bare, rel=0.1, abs=0.12)


@pytest.mark.slow
@pytest.mark.parametrize("pace", [STEADY, TRICKLE], ids=["steady", "trickle"])
@pytest.mark.parametrize(
    ("setup", "door"), [(DEPLOYED, "gateway"), (LEAST, "urls")], ids=["deployed", "least"]
)
def test_a_million_appends_cost_what_the_bill_says(pace: Pace, setup: Setup, door: str) -> None:
    month = pace.a_second * 30 * 24 * 3_600
    asked = {"events": month, "bytes": 300, "loads": 0, "door": door, "window": setup.window}
    found = calculated(f"it.bill({json.dumps(asked)})")
    assert running(found) * MILLION / month == pytest.approx(sum(bill(setup, pace).values()), rel=0.06)


@pytest.mark.slow
@pytest.mark.parametrize("pace", [STEADY, TRICKLE], ids=["steady", "trickle"])
def test_appends_in_bulk_cost_what_the_bill_says(pace: Pace) -> None:
    month = pace.a_second * 30 * 24 * 3_600
    plain, bulk = (
        calculated(f"it.total(it.bill({{events: {month}, bytes: 300, bulk: {many}}}))") * MILLION / month
        for many in (1, 10)
    )
    # Bulks are indexed as they come, ten at a time, which the calculator leaves aside.
    saved = {name: bill(DEPLOYED, pace)[name] - each for name, each in bill(BULK, pace).items()}
    ours = sum(each for name, each in saved.items() if not name.startswith("feed"))
    assert plain - bulk == pytest.approx(ours, rel=0.06)


def test_an_event_that_does_not_fit_a_kilobyte_takes_more_units() -> None:
    small, large = (calculated(f"it.bill({{events: 1e6, bytes: {size}}})") for size in (1_000, 4_000))
    assert large["DynamoDB: appends"] == pytest.approx(3 * small["DynamoDB: appends"])


@pytest.mark.slow
@pytest.mark.parametrize("service", SERVICES, ids=lambda service: service.name)
def test_it_has_the_services_of_the_page_at_what_they_cost(service: Service) -> None:
    name = service.name.split()[-1]
    asked = calculated(f"it.SERVICES.{name}")
    assert asked["events"] == service.millions * MILLION
    assert asked["months"] == service.months
    assert (asked.get("kept") == "seldom") is service.seldom
    assert asked.get("together", 1) == service.setup.together
    found, counted = calculated(f"it.bill(it.SERVICES.{name})"), service.month()
    assert found["alarms, dashboard"] == pytest.approx(counted["alarms and dashboard"])
    assert found["storage"] == pytest.approx(counted["storage"], rel=0.25)
    assert sum(found.values()) == pytest.approx(sum(counted.values()), rel=0.2)


def test_a_stage_has_as_many_alarms_as_the_page_says() -> None:
    assert calculated("it.total(it.bill({events: 0.001, bytes: 1}))") == pytest.approx(
        ALARMS * ALARM + DASHBOARD, abs=0.001
    )
    assert pytest.approx(0.9) == REACTION_ALARMS * ALARM
