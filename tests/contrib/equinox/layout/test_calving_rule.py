"""When a Tip lets go of its events: a pure function of a token, however absurd the token."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from epochal.contrib.equinox.calving import ByCost, Calving, Fixed
from epochal.index.calf_costs import ROOM, Growth
from epochal.model.tokens import Token
from epochal.plan.limits import ITEM_BYTES
from tests.support.steps import steps

ETAG = "0" * 32


def holding(events: int, each: int, *, appends: int | None = None, unfolds: int = 0) -> Token:
    carried = events * each
    return Token(
        version=events,
        etag=ETAG,
        size=120 + carried + unfolds,
        carried=carried,
        unfolds=unfolds,
        events=events,
        appends=events if appends is None else appends,
    )


def append(growth: int, events: int = 1, unfolds: int = 0) -> Growth:
    return Growth(growth=growth, events=events, unfolds=unfolds, name=10)


RULES: list[Calving] = [ByCost(), ByCost(mode="transactional"), Fixed(), Fixed(max_events=1)]


@pytest.mark.parametrize("rule", RULES, ids=str)
def test_a_tip_without_events_has_nothing_to_calve(rule: Calving) -> None:
    assert not rule.calves(holding(0, 0), append(300_000))


@pytest.mark.parametrize("rule", RULES, ids=str)
def test_an_append_that_would_overflow_the_item_calves_whatever_it_costs(rule: Calving) -> None:
    room = ITEM_BYTES - ROOM - 120

    assert rule.calves(holding(1, room - 1000), append(1001))
    assert rule.calves(holding(1, 1000, unfolds=100), append(1000, unfolds=room))


@pytest.mark.parametrize(("carried", "growth", "calves"), [(1, 31, False), (1, 32, True), (31, 1, False)])
def test_a_fixed_rule_calves_beyond_its_bytes(carried: int, growth: int, calves: bool) -> None:
    rule = Fixed(max_bytes=32 * 1024)

    assert rule.calves(holding(1, carried * 1024), append(growth * 1024)) == calves


@pytest.mark.parametrize(("held", "more", "calves"), [(1, 9, False), (10, 1, True), (3, 8, True)])
def test_a_fixed_rule_calves_beyond_its_events(held: int, more: int, calves: bool) -> None:
    assert Fixed(max_events=10).calves(holding(held, 10), append(10 * more, events=more)) == calves


def test_by_cost_a_tip_stays_while_it_fits_one_unit_and_does_not_grow_fat() -> None:
    small = append(100)

    assert not ByCost().calves(holding(1, 100), small)
    assert ByCost().calves(holding(100, 100), small)


FIGURES = st.integers(0, 9_999_999)


TOKENS = st.builds(
    Token,
    version=st.just(1),
    etag=st.just(ETAG),
    size=FIGURES,
    carried=FIGURES,
    unfolds=FIGURES,
    events=FIGURES,
    appends=FIGURES,
)


@given(token=TOKENS, growth=st.integers(1, 400_000), rule=st.sampled_from(RULES))
def test_any_token_that_parses_is_decided_on(token: Token, growth: int, rule: Calving) -> None:
    assert rule.calves(token, append(growth)) in (True, False)


def test_no_forged_token_keeps_the_rule_reckoning() -> None:
    """It comes from outside: the fewer bytes it claims for an append, the longer a cycle there is to reckon with."""
    forged = Token(version=1, etag=ETAG, size=100, carried=0, events=9_999_999, appends=9_999_999)
    assert steps(lambda: ByCost().calves(forged, append(100))) < 10_000
