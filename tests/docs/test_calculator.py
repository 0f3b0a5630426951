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


def test_its_prices_are_those_of_the_bill() -> None:
    ours = {
        "gateway": "gateway",
        "invocation": "invocation",
        "gigabyteSecond": "gigabyte-second",
        "writeUnit": "write unit",
        "readUnit": "read unit",
        "publish": "publish",
        "message": "message",
        "logged": "logged",
        "sent": "sent",
    }
    told = calculated("it.PRICES")
    assert {name: told[name] for name in ours} == {
        name: pytest.approx(PRICES[its][0]) for name, its in ours.items()
    }
    assert told.keys() - ours.keys() == {"stored"}


@pytest.mark.parametrize("pace", [STEADY, TRICKLE], ids=["steady", "trickle"])
def test_keys_and_reactions_cost_what_the_bill_says(pace: Pace) -> None:
    month = pace.a_second * 30 * 24 * 3_600
    plain, keyed, reacting = (
        calculated(f"it.total(it.bill({json.dumps({'events': month, 'bytes': 300, **more})}))")
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
    running = sum(found.values()) - found["a month of storage"]
    assert running * MILLION / month == pytest.approx(sum(bill(setup, pace).values()), rel=0.06)


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
