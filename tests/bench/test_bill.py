"""The bill of a million appends: what it is at most, and by how much less than it once was."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bench.bill import (
    DEPLOYED,
    GIGABYTES,
    LEAST,
    LINES_ONCE,
    MILLISECONDS,
    ONCE,
    OWN_LINES,
    PRICES,
    REACTING_SELDOM,
    STEADY,
    TRICKLE,
    Pace,
    Server,
    Setup,
    bill,
)
from bench.functions import Use


@pytest.mark.parametrize("pace", [STEADY, TRICKLE], ids=lambda pace: pace.name)
def test_logs_and_metrics_are_next_to_nothing_of_the_bill(pace: Pace) -> None:
    found = bill(DEPLOYED, pace)
    assert found["logs and metrics"] <= 0.015
    assert found["feed: logs and metrics"] <= 0.015


def test_an_append_over_http_is_one_write_unit() -> None:
    assert bill(DEPLOYED, STEADY)["DynamoDB: writes"] <= 0.625 * 1.01


def test_lines_for_each_invocation_cost_as_much_as_half_of_the_writes() -> None:
    before = bill(ONCE, STEADY)
    assert before["logs and metrics"] == pytest.approx((LINES_ONCE["append"] + OWN_LINES) * 0.0005)
    assert before["logs and metrics"] > before["DynamoDB: writes"] / 2


@pytest.mark.parametrize("pace", [STEADY, TRICKLE], ids=lambda pace: pace.name)
def test_the_least_bill_is_less_than_half_of_what_it_once_was(pace: Pace) -> None:
    assert sum(bill(LEAST, pace).values()) <= sum(bill(ONCE, pace).values()) / 2


def test_what_is_deployed_costs_no_more_than_promised() -> None:
    assert sum(bill(DEPLOYED, STEADY).values()) <= 2.06
    faster = (MILLISECONDS["append"] - 5) / 1000 * GIGABYTES * PRICES["gigabyte-second"][0] * 1_000_000
    assert sum(bill(DEPLOYED, STEADY).values()) - faster <= 2.0
    assert sum(bill(LEAST, STEADY).values()) <= 1.02
    assert sum(bill(LEAST, TRICKLE).values()) <= 1.42


def test_behind_the_gateway_half_takes_two_events_in_a_request() -> None:
    behind = Setup(name="behind the gateway", access_log=False, window=10)
    once = sum(bill(ONCE, STEADY).values())

    assert once / 2 < sum(bill(behind, STEADY).values()) <= 2.02
    assert sum(bill(replace(DEPLOYED, together=2), STEADY).values()) <= once / 2


def test_a_key_costs_nothing_or_a_write_unit_and_a_reaction_of_a_trickle_as_much_as_the_rest_of_the_feed() -> (
    None
):
    plain = {pace: bill(DEPLOYED, pace) for pace in (STEADY, TRICKLE)}
    keyed, recorded = (bill(replace(DEPLOYED, use=use), STEADY) for use in (Use(timed=True), Use(keyed=True)))
    assert sum(keyed.values()) == pytest.approx(sum(plain[STEADY].values()), rel=0.005)
    assert recorded["DynamoDB: writes"] - plain[STEADY]["DynamoDB: writes"] == pytest.approx(0.625, rel=0.01)
    for pace, most in ((STEADY, 0.08), (TRICKLE, 3.12)):
        reacting = bill(replace(DEPLOYED, use=Use(reactions=1)), pace)
        assert sum(reacting.values()) - sum(plain[pace].values()) <= most


def test_a_trickle_with_a_reaction_that_may_wait_costs_three_dollars_at_most() -> None:
    """At once it cannot: append, its invocation and the gateway are 2.13 already, an entry of its own 1.10."""
    assert (
        sum(bill(REACTING_SELDOM, TRICKLE).values())
        <= 3.0
        < sum(bill(replace(REACTING_SELDOM, window=1), TRICKLE).values())
    )


def test_a_reader_over_http_that_asks_now_and_then_costs_a_twentieth_of_one_that_waits() -> None:
    """The page has both, a month of each."""
    price = {name: each for name, (each, _) in PRICES.items()}
    month = 30 * 24 * 3_600
    line = price["logged"] * 200 + price["sent"] * 240
    request = price["gateway"] + price["invocation"] + line + price["read unit"]
    waiting = month * price["gigabyte-second"] * GIGABYTES + month / 5 * request
    asking = month / 2 * (request + MILLISECONDS["replay"] / 1000 * price["gigabyte-second"] * GIGABYTES)
    assert (round(waiting), round(asking)) == (35, 2)


def test_four_partitions_cost_a_reaction_little_more_than_one() -> None:
    """Which is why `prod` has four: it could not have more later without a rebuild."""
    one, four = (bill(replace(DEPLOYED, use=Use(partitions=n, reactions=1)), STEADY) for n in (1, 4))
    assert sum(four.values()) - sum(one.values()) <= 0.12


def test_a_server_is_cheaper_from_where_appends_cost_what_it_does() -> None:
    server = Server(name="any", month=100, a_second=1)
    assert server.cheaper_above(2.0) == 50
    assert server.used(100) == pytest.approx(1 / 2.592)
