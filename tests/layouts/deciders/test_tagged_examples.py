"""Examples compare events with tags by what they are: the tags count only where an example names them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pytest

from epochal import Decider, Event, after, json_codec, later
from epochal.testing import given


@dataclass(frozen=True)
class Lent:
    to: str


CODEC = json_codec(Lent)


def lend(to: str, _: int) -> Sequence[Lent | Event]:
    return [CODEC.tagged(Lent(to), "book:b", f"member:{to}")]


def remind(to: str, _: int) -> Sequence[object]:
    return [later("reminder", [CODEC.tagged(Lent(to), "book:b")], at=after(days=1))]


DECIDER = Decider[str, int, Lent](initial=int, evolve=lambda count, _: count + 1, decide=lend)


@pytest.mark.parametrize("codec", [CODEC, None])
def test_an_event_with_tags_is_equal_to_the_event_that_was_tagged(codec: object) -> None:
    example = given(DECIDER, codec=codec).when("ada")  # type: ignore[call-overload]
    example.then(Lent("ada"))
    example.then_state(1)
    with pytest.raises(AssertionError, match="Lent"):
        example.then(Lent("ben"))
    with pytest.raises(AssertionError, match="Lent"):
        example.then(Lent("ada"), Lent("ada"))


@pytest.mark.parametrize("codec", [CODEC, None])
def test_tags_that_an_example_names_must_be_those(codec: object) -> None:
    example = given(DECIDER, codec=codec).when("ada")  # type: ignore[call-overload]
    example.then(CODEC.tagged(Lent("ada"), "book:b", "member:ada"))
    with pytest.raises(AssertionError, match="member:ada"):
        example.then(CODEC.tagged(Lent("ada"), "book:b"))
    with pytest.raises(AssertionError):
        example.then(CODEC.tagged(Lent("ben"), "book:b", "member:ada"))


def test_a_failed_example_shows_the_event_and_its_tags_and_no_bytes() -> None:
    with pytest.raises(AssertionError) as failed:
        given(DECIDER, codec=CODEC).when("ada").then(Lent("ben"))
    shown = str(failed.value)
    assert "tagged(Lent(to='ada'), 'book:b', 'member:ada')" in shown
    assert "data=" not in shown


def test_events_of_timers_are_compared_alike() -> None:
    decider = Decider(initial=int, evolve=lambda count, _: count + 1, decide=remind)  # type: ignore[arg-type]
    example = given(decider, codec=CODEC).when("ada")  # type: ignore[arg-type]
    example.then(later("reminder", [Lent("ada")], at=after(days=1)))
    with pytest.raises(AssertionError):
        example.then(later("reminder", [Lent("ben")], at=after(days=1)))
