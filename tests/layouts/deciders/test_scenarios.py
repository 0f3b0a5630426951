"""given / when / then: holds a decider to examples, and fails where the decider does not hold."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

import pytest

from epochal import Event, after, projection
from epochal.deciders.on_streams import Deciders
from epochal.errors import InvalidInput
from epochal.model.bodies import Claim
from epochal.model.timers import Later
from epochal.testing.scenarios import given, given_tagged
from epochal.testing.stores import memory_streams
from tests.layouts.deciders.tally import CODEC, DECIDER, Added, Cleared, Refused, Tally, add, clear


def test_events_given_make_the_state_that_is_decided_on() -> None:
    given(DECIDER, Added(2, 2), Added(3, 5)).when(add(1)).then(Added(1, 6))
    given(DECIDER, Added(2, 2), Cleared()).when(add(1)).then(Added(1, 1))
    given(DECIDER).when(clear).then()
    given(DECIDER, Added(2, 2)).and_then(Added(1, 3)).then_state(Tally(3))


def test_other_events_than_claimed_fail_and_show_both() -> None:
    with pytest.raises(
        AssertionError, match=r"Added\(by=1, total=2\)[^$]*but found[^$]*Added\(by=1, total=1\)"
    ):
        given(DECIDER).when(add(1)).then(Added(1, 2))
    with pytest.raises(AssertionError):
        given(DECIDER).when(add(1)).then()
    with pytest.raises(AssertionError):
        given(DECIDER).when(clear).then(Cleared())


def test_the_state_after_a_decision_can_be_claimed() -> None:
    given(DECIDER, Added(2, 2)).when(add(1)).then_state(Tally(3))
    with pytest.raises(AssertionError, match="expected state"):
        given(DECIDER, Added(2, 2)).when(add(1)).then_state(Tally(4))


def test_an_error_claimed_is_returned() -> None:
    error = given(DECIDER).when(add(-1)).then_raises(Refused)
    assert error.args == (-1, 0)


def test_an_error_that_is_not_raised_fails() -> None:
    with pytest.raises(AssertionError, match="did not raise Refused but led to"):
        given(DECIDER).when(add(1)).then_raises(Refused)


def test_an_error_not_claimed_passes_through() -> None:
    with pytest.raises(Refused):
        given(DECIDER).when(add(-1)).then()
    with pytest.raises(Refused):
        given(DECIDER).when(add(-1)).then_raises(KeyError)


def test_with_a_codec_events_must_survive_it() -> None:
    given(DECIDER, Added(2, 2), codec=CODEC).when(add(1)).then(Added(1, 3))
    forgetful = replace(CODEC, decode=lambda _: None)
    with pytest.raises(AssertionError, match="which the codec does not know"):
        given(DECIDER, Added(2, 2), codec=forgetful)
    lossy = replace(CODEC, decode=lambda _: Added(0, 0))
    with pytest.raises(AssertionError):
        given(DECIDER, codec=lossy).when(add(1)).then(Added(1, 1))


def test_a_codec_that_stores_claims_cannot_be_shown_here() -> None:
    claiming = replace(
        CODEC, encode=lambda _: Event(type="Added", data=Claim(key="k", sha256="0" * 64, size=1))
    )
    with pytest.raises(AssertionError, match="claim"):
        given(DECIDER, Added(2, 2), codec=claiming)


TAKEN = projection(tags=["flight:UA1545"], initial=0, on={"Taken": lambda taken, _: taken + 1})
SEAT = Event(type="Taken", data=b"{}", tags=["flight:UA1545"])


class Occupied(Exception):
    """The flight's only seat is taken."""


def reserve(states: Mapping[str, Any]) -> Sequence[Event]:
    if states["taken"]:
        raise Occupied
    return [SEAT]


def test_decisions_on_tagged_events_have_examples_too() -> None:
    given_tagged({"taken": TAKEN}).when(reserve).then(SEAT)
    given_tagged({"taken": TAKEN}, SEAT).then_states(taken=1)
    given_tagged({"taken": TAKEN}, SEAT).when(reserve).then_raises(Occupied)
    given_tagged({"taken": TAKEN}, replace(SEAT, tags=("flight:LH1",))).when(lambda _: []).then()


@pytest.mark.parametrize("decide", [lambda _: [], lambda _: [SEAT, SEAT]])
def test_an_example_that_does_not_hold_says_what_was_decided(decide: Callable[..., Any]) -> None:
    with pytest.raises(AssertionError, match="expected events"):
        given_tagged({"taken": TAKEN}).when(decide).then(SEAT)
    with pytest.raises(AssertionError, match="did not raise Occupied"):
        given_tagged({"taken": TAKEN}).when(decide).then_raises(Occupied)


def test_an_example_of_a_coroutine_or_of_one_event_is_refused() -> None:
    async def waits(_: Any) -> Any:
        return []

    for wrong in (waits, lambda _: SEAT):
        with pytest.raises(InvalidInput, match="decide"):
            given_tagged({"taken": TAKEN}).when(cast("Any", wrong)).then()


@pytest.mark.parametrize(
    "timer",
    [
        Later("due x", [Added(1, 1)], at=after(days=1)),
        Later("", [Added(1, 1)], at=after(days=1)),
        Later("due", [], at=after(days=1)),
        Later("due", [Added(1, 1)] * 101, at=after(days=1)),
        Later("due", [Added(1, 1)], at="2026-06-01T09:00"),
        Later("due", [Added(1, 1)], at=after(days=-1)),
        Later("due", [Later("next one", [Added(1, 1)], at=after(days=1))], at=after(days=1)),
        Later("due", [Added(1, 1)], at=after(days=1), tags=cast("Any", "tag")),
    ],
    ids=range(8),
)
@pytest.mark.parametrize("codec", [CODEC, None])
def test_a_timer_that_a_store_refuses_is_refused_in_an_example_in_the_same_words(
    timer: Later, codec: Any
) -> None:
    rules = replace(DECIDER, decide=lambda _, __: [timer])
    with pytest.raises(InvalidInput) as refused:
        Deciders(streams=memory_streams(), decider=rules, codec=CODEC).handle("Tally-1", add(1))
    for example in (
        lambda: given(rules, codec=codec).when(add(1)).then(timer),
        lambda: given(rules, codec=codec).when(add(1)).after(days=1),
        lambda: given(rules, timer, codec=codec),
    ):
        with pytest.raises(InvalidInput) as here:
            example()
        assert str(here.value) == str(refused.value)


def test_an_event_that_a_store_refuses_is_refused_in_an_example_with_a_codec() -> None:
    long = replace(CODEC, encode=lambda _: Event.json("E" * 2_000, {}), decode=lambda _: Added(1, 1))
    with pytest.raises(InvalidInput, match=r"events\.type: must be 1 to"):
        given(DECIDER, codec=long).when(add(1)).then(Added(1, 1))


def test_a_timer_of_tagged_events_is_refused_likewise() -> None:
    counted = projection(tags=["tally:1"], on={"Added": lambda total, _: total + 1}, initial=0)
    timer = Later("due x", [Event(type="Added", tags=("tally:1",))], at=after(days=1), tags=("tally:1",))
    with pytest.raises(InvalidInput, match="name: must be 1 to 128 ASCII letters"):
        given_tagged({"counted": counted}).when(lambda _: [timer]).then(timer)
