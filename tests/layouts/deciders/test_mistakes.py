"""Rules that are written wrong are told of at once, in the words of who wrote them, and nothing of it is stored."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import attrs
import msgspec
import pydantic
import pytest

from epochal import AtVersion, Event
from epochal.contrib.event_store_adapter import aggregate_id, memory_aggregates
from epochal.contrib.event_store_adapter.deciders import AggregateDeciders
from epochal.contrib.event_store_adapter.state_codecs import json_state
from epochal.deciders.codecs import json_codec
from epochal.deciders.on_queries import Decisions
from epochal.deciders.on_streams import Decider, Deciders
from epochal.deciders.projections import projection
from epochal.errors import CorruptData, InvalidInput
from epochal.testing.scenarios import given
from epochal.testing.stores import memory_streams, memory_tagged_events


@dataclass(frozen=True)
class Placed:
    total: int


@dataclass(frozen=True)
class Paid:
    total: int


@dataclass(frozen=True)
class Order:
    total: int = 0


CODEC = json_codec(Placed, Paid)


def forgets(state: Order, event: Placed | Paid) -> Any:
    """A branch of it has no `return`."""
    if isinstance(event, Placed):
        return Order(event.total)
    return None


def decider(decide: Any, evolve: Any = forgets, initial: Callable[[], Any] = Order) -> Decider[Any, Any, Any]:
    return Decider(initial=initial, evolve=evolve, decide=decide)


def paid(command: int, state: Any) -> list[Paid]:
    return [Paid(command)]


NONE = "evolve: must return a state, but returned None for Paid"


def test_an_evolve_that_returns_nothing_is_refused_and_nothing_is_stored() -> None:
    streams = memory_streams()
    orders = Deciders(streams=streams, decider=decider(paid), codec=CODEC)
    with pytest.raises(InvalidInput, match=NONE):
        orders.handle("Order-1", 7)
    assert streams.load("Order-1") is None


def test_events_that_it_forgets_are_refused_when_they_are_read_too() -> None:
    streams = memory_streams()
    streams.append("Order-1", [CODEC.encode(Paid(7))])
    orders = Deciders(streams=streams, decider=decider(paid), codec=CODEC)
    with pytest.raises(InvalidInput, match=NONE):
        orders.query("Order-1", lambda state: state)


def test_a_domain_whose_states_begin_with_none_may_go_back_to_it() -> None:
    streams = memory_streams()
    rules = decider(paid, lambda _, event: forgets(Order(), event), lambda: None)
    orders = Deciders(streams=streams, decider=rules, codec=CODEC)
    streams.append("Order-1", [CODEC.encode(Placed(7))])
    assert orders.handle("Order-1", 7).state is None


def test_so_it_is_with_aggregates_and_tagged_events_and_in_scenarios() -> None:
    aggregates = AggregateDeciders(
        store=memory_aggregates(types=["order"]), decider=decider(paid), codec=CODEC, state=json_state(Order)
    )
    with pytest.raises(InvalidInput, match=NONE):
        aggregates.handle(aggregate_id("order", "1"), 7)
    store = memory_tagged_events()
    store.append([CODEC.tagged(Paid(7), "order:1")])
    asked = projection(tags=["order:1"], codec=CODEC, evolve=forgets, initial=Order())
    with pytest.raises(InvalidInput, match="evolve: must return a state, but returned None for Paid"):
        Decisions(store=store).handle({"order": asked}, lambda _: [])
    with pytest.raises(InvalidInput, match=NONE):
        given(decider(paid), Paid(7))


class Named(NamedTuple):
    total: int


class Modelled(pydantic.BaseModel):
    total: int


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (Placed(7), "not Placed: put it into a list"),
        (Named(7), "not Named: put it into a list"),
        (Modelled(total=7), "not Modelled: put it into a list"),
        ("Placed", "not str: put it into a list"),
        (None, r"not NoneType: return \[\] where there is nothing to do"),
    ],
    ids=lambda each: type(each).__name__,
)
def test_a_decision_that_returns_one_event_or_none_is_told_to_return_a_list(answer: Any, told: str) -> None:
    streams = memory_streams()
    orders = Deciders(streams=streams, decider=decider(lambda *_: answer), codec=CODEC)
    with pytest.raises(InvalidInput, match=f"decide: must return a list of events, {told}"):
        orders.handle("Order-1", 7)
    with pytest.raises(InvalidInput, match="decide: must return a list of events"):
        Decisions(store=memory_tagged_events()).handle(
            {"order": projection(tags=["order:1"], on={"Placed": lambda state, _: state}, initial=0)},
            lambda _: answer,
        )
    with pytest.raises(InvalidInput, match="decide: must return a list of events"):
        given(decider(lambda *_: answer)).when(7).then()


def test_lists_tuples_and_functions_that_yield_are_decisions() -> None:
    def yields(command: int, state: Order) -> Iterator[Placed]:
        yield Placed(command)

    for answer in (
        lambda c, _: [Placed(c)],
        lambda c, _: (Placed(c),),
        yields,
        lambda c, _: map(Placed, [c]),
    ):
        orders = Deciders(streams=memory_streams(), decider=decider(answer), codec=CODEC)
        assert orders.handle("Order-1", 7).state == Order(7)


def test_a_version_is_expected_by_its_number_alone() -> None:
    streams = memory_streams()
    streams.append("Cart-1", [Event(type="Opened")])
    assert AtVersion(1) == AtVersion(version=1)
    assert streams.append("Cart-1", [Event(type="Paid")], expected=AtVersion(1)).version == 2


# ------------------------------------------------------------------------------------------------- a field that is new


@dataclass(frozen=True)
class PlainShipped:
    parcel: str
    carrier: str


@attrs.frozen
class AttrsShipped:
    parcel: str
    carrier: str


class ModelShipped(pydantic.BaseModel):
    parcel: str
    carrier: str


class StructShipped(msgspec.Struct):
    parcel: str
    carrier: str


@pytest.mark.parametrize("kind", [PlainShipped, AttrsShipped, ModelShipped, StructShipped])
def test_a_field_that_older_events_lack_is_told_with_their_stream_and_with_what_to_do(kind: type) -> None:
    streams, codec = memory_streams(), json_codec(named={"Shipped": kind})
    bodies = ({"parcel": "p", "carrier": "c"}, {"parcel": "p"})
    streams.append("Order-9", [Event.json("Shipped", each) for each in bodies])
    rules = decider(lambda *_: [], lambda state, _: state)
    orders = Deciders(streams=streams, decider=rules, codec=codec)
    words = (
        r"Order-9: Shipped \(index 1\): carrier: is missing; "
        "to read events stored before the field existed, give it a default, or add an upcast"
    )
    with pytest.raises(CorruptData, match=words):
        orders.query("Order-9", lambda state: state)
    with pytest.raises(CorruptData, match=words):
        [codec.read(event) for event in streams.read("Order-9")]


def test_what_is_wrong_otherwise_is_told_without_that_hint() -> None:
    stored = Event.json("Placed", {"total": "seven"})
    streams = memory_streams()
    streams.append("Order-9", [stored])
    orders = Deciders(streams=streams, decider=decider(paid), codec=CODEC)
    with pytest.raises(CorruptData, match=r"^Order-9: Placed \(index 0\): total: [^;]*$"):
        orders.query("Order-9", lambda state: state)
