"""given / when / after / then: time goes by where an example says so, and never else."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest

from epochal.deciders.codecs import EventCodec, json_codec
from epochal.deciders.loop import Answer
from epochal.deciders.on_streams import Decider
from epochal.model.timers import Later
from epochal.scheduling import after, cancel, later
from epochal.testing.scenarios import given


@dataclass(frozen=True)
class Added:
    by: int


@dataclass(frozen=True)
class Reminded:
    times: int


SEEN = json_codec(Added, Reminded)


def reminding(command: str, total: int) -> Answer[Added | Reminded]:
    if command == "forget":
        return [cancel("reminder")]
    again = Later("reminder", [Reminded(2)], at=after(days=7))
    return [
        Added(1),
        Later("reminder", [Reminded(1), again], at=after(days=14)),
        Later("fine", [Reminded(9)], at=SUMMER),
    ]


SUMMER = "2000-06-01T00:00:00Z"
REMINDING: Decider[str, int, Added | Reminded] = Decider(
    initial=lambda: 0,
    evolve=lambda total, event: total + (event.by if isinstance(event, Added) else event.times),
    decide=reminding,
)


@pytest.mark.parametrize("codec", [None, SEEN])
def test_an_example_has_time_go_by(codec: EventCodec[Added | Reminded] | None) -> None:
    begun = given(REMINDING, codec=codec)
    begun.when("lend").after(days=13, hours=23).then()
    begun.when("lend").after(days=14).then(Reminded(1))
    begun.when("lend").after(weeks=3).then(Reminded(1), Reminded(2))
    begun.when("lend").after(weeks=3).then_state(4)
    begun.when("lend").after(days=366).then(Reminded(1), Reminded(2), Reminded(9))


@pytest.mark.parametrize("codec", [None, SEEN])
def test_an_example_goes_on_after_some_time(codec: EventCodec[Added | Reminded] | None) -> None:
    lent = given(
        REMINDING, Added(1), later("reminder", [SEEN.encode(Reminded(5))], at=after(days=1)), codec=SEEN
    )
    lent.after(hours=23).when("forget").after(days=400).then()
    lent.after(hours=25).then(Reminded(5))
    lent.after(hours=25).when("lend").then_state(7)
    set_anew = given(REMINDING, codec=codec).when("lend").after(days=10).when("lend")
    set_anew.after(days=13).then()
    set_anew.after(days=14).then(Reminded(1))


def test_an_example_begins_at_the_moment_it_is_given() -> None:
    summer = given(REMINDING, now="2000-05-31T00:00:00Z").when("lend")
    summer.after(hours=23).then()
    summer.after(hours=24).then(Reminded(9))
    given(REMINDING, now="2000-07-01T00:00:00Z").when("lend").after().then(Reminded(9))


@pytest.mark.parametrize("codec", [None, SEEN])
def test_an_example_compares_the_timers_that_are_decided(codec: EventCodec[Added | Reminded] | None) -> None:
    example = given(REMINDING, codec=codec)
    again = Later("reminder", [Reminded(2)], at=after(days=7))
    first = Later("reminder", [Reminded(1), again], at=after(days=14))
    fine = Later("fine", [Reminded(9)], at=SUMMER)
    example.when("lend").then(Added(1), first, fine)
    example.when("forget").then(cancel("reminder"))
    with pytest.raises(AssertionError):
        example.when("lend").then(Added(1), replace(first, at=after(days=15)), fine)
    with pytest.raises(AssertionError):
        example.when("lend").after(days=14).then(Reminded(2))
