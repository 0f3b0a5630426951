"""A process as examples: given these inputs, when this comes or time goes by, then these outputs."""

from __future__ import annotations

from dataclasses import replace

import pytest

from epochal import cancel, later
from epochal.contrib.processes import Append, Call, CommandRefused, Done, Publish, Send
from epochal.contrib.processes.testing import given_process
from epochal.errors import InvalidInput
from epochal.scheduling import after
from tests.contrib.processes.world import (
    Charge,
    Charged,
    Checkout,
    Confirmed,
    GaveUp,
    Outside,
    Placed,
    Released,
    Ship,
    Shipped,
    checkout,
)

PROCESS = checkout(Outside())


def test_an_input_leads_to_outputs_in_their_order() -> None:
    given_process(PROCESS).when(Placed(10)).then(
        Send("Payment", Charge(10)), later("GaveUp", [GaveUp()], at=after(minutes=30))
    )
    given_process(PROCESS, Placed(10)).when(Charged(10)).then(cancel("GaveUp"), Call("carrier", Ship(10)))
    given_process(PROCESS, Placed(10), Charged(10)).when(Shipped("p")).then(
        Publish("news", Shipped("p")), Append("Order", [Confirmed("p")]), Done()
    )
    given_process(PROCESS, Placed(10)).when(CommandRefused(Charge(10), "Declined")).then(
        Append("Order", [Released("Declined")]), Done()
    )


def test_time_brings_what_timers_are_set_for_once_and_not_before() -> None:
    given = given_process(PROCESS, Placed(10))
    given.after(minutes=29).then()
    given.after(minutes=30).then(Append("Order", [Released("late")]), Done())
    given.after(minutes=29).after(minutes=1).then(Append("Order", [Released("late")]), Done())
    given.after(minutes=30).after(days=30).then()
    given.when(Charged(10)).after(days=30).then()


def test_what_is_done_and_what_has_not_begun_answers_with_nothing() -> None:
    given_process(PROCESS, Placed(10), GaveUp()).when(Charged(10)).then()
    given_process(PROCESS).when(Charged(10)).then()
    given_process(PROCESS, Placed(10)).then_state(Checkout(10, ("Placed",)))


def test_a_claim_that_is_wrong_says_what_was_found() -> None:
    with pytest.raises(AssertionError, match=r"(?s)expected outputs.*but found"):
        given_process(PROCESS).when(Placed(10)).then()


def test_an_output_that_a_store_would_refuse_is_refused() -> None:
    lost = replace(PROCESS, react=lambda _, __: [Send("Bank", Charge(1))])
    with pytest.raises(InvalidInput, match="must include a decider for 'Bank'"):
        given_process(lost).when(Placed(10))
