"""The bill of a million appends: what it is at most, and by how much less than it once was."""

from __future__ import annotations

import pytest

from bench.bill import (
    DEPLOYED,
    LEAST,
    LINES_ONCE,
    NO_GATEWAY,
    ONCE,
    OWN_LINES,
    STEADY,
    TRICKLE,
    Pace,
    Server,
    Setup,
    bill,
)


@pytest.mark.parametrize("pace", [STEADY, TRICKLE], ids=lambda pace: pace.name)
def test_logs_and_metrics_are_next_to_nothing_of_the_bill(pace: Pace) -> None:
    found = bill(DEPLOYED, pace)
    assert found["logs and metrics"] <= 0.015
    assert found["feed: logs and metrics"] <= 0.015


def test_lines_for_each_invocation_cost_as_much_as_half_of_the_writes() -> None:
    before = bill(ONCE, STEADY)
    assert before["logs and metrics"] == pytest.approx((LINES_ONCE["append"] + OWN_LINES) * 0.0005)
    assert before["logs and metrics"] > before["DynamoDB: writes"] / 2


@pytest.mark.parametrize(
    ("setup", "pace"), [(NO_GATEWAY, STEADY), (LEAST, TRICKLE)], ids=["steady", "trickle"]
)
def test_the_least_bill_is_half_of_what_it_once_was(setup: Setup, pace: Pace) -> None:
    assert sum(bill(setup, pace).values()) <= sum(bill(ONCE, pace).values()) / 2


def test_what_is_deployed_costs_no_more_than_promised() -> None:
    assert sum(bill(DEPLOYED, STEADY).values()) <= 2.40
    assert sum(bill(NO_GATEWAY, STEADY).values()) <= 1.25
    assert sum(bill(LEAST, TRICKLE).values()) <= 1.75


def test_a_server_is_cheaper_from_where_appends_cost_what_it_does() -> None:
    server = Server(name="any", month=100, a_second=1)
    assert server.cheaper_above(2.0) == 50
    assert server.used(100) == pytest.approx(1 / 2.592)
