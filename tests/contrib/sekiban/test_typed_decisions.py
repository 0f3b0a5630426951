"""Decisions on tagged events whose projections are given classes of the domain."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from epochal import Decisions, Event, json_codec, projection, upcast
from epochal.contrib.sekiban import memory_dcb_events
from epochal.deciders.codecs import EventCodec
from epochal.deciders.projections import Projection
from epochal.errors import InvalidInput, UnknownType
from epochal.store.tagged import TaggedStore
from epochal.testing.stores import memory_tagged_events


@dataclass(frozen=True)
class Opened:
    seats: int


@dataclass(frozen=True)
class Taken:
    student: str


@upcast("Opened", 1, to=2)
def rename(event: dict[str, Any]) -> dict[str, Any]:
    return {"seats": event["size"]}


codec = json_codec(named={"Opened": Opened, "Begun": Opened, "Taken": Taken}, upcasts=[rename])


def free() -> Projection[int]:
    def evolve(left: int, event: Opened | Taken) -> int:
        return left + event.seats if isinstance(event, Opened) else left - 1

    return projection(tags=["course:latin"], codec=codec, evolve=evolve, initial=0)


@pytest.mark.parametrize("opened", [memory_tagged_events, memory_dcb_events])
def test_a_projection_is_given_classes_of_every_version_and_name(opened: Callable[[], TaggedStore]) -> None:
    store = opened()
    for kind, data in (("Opened", '{"size": 3}'), ("Begun", '{"seats": 2}')):
        store.append([Event(type=kind, data=data.encode(), tags=("course:latin",))])
    store.append([codec.tagged(Opened(5), "course:latin"), codec.tagged(Taken("ann"), "course:latin")])
    assert Decisions(store=store).model({"free": free()}).states == {"free": 3 + 2 + 5 - 1}


def test_a_typed_decision_is_held_to_the_types_of_its_codec_alone() -> None:
    store = memory_tagged_events()
    store.append([codec.tagged(Opened(1), "course:latin")])
    decided: list[int] = []

    def rules(model: Mapping[str, int]) -> list[Event]:
        decided.append(model["free"])
        if len(decided) == 1:
            store.append([Event(type="Painted", tags=("course:latin",))])
        if len(decided) == 2:
            raise AssertionError("an event of another type was in the way")
        return [codec.tagged(Taken("ann"), "course:latin")]

    Decisions(store=store).handle({"free": free()}, rules)
    assert decided == [1]


def test_another_who_takes_the_seat_is_seen() -> None:
    store = memory_tagged_events()
    store.append([codec.tagged(Opened(1), "course:latin")])
    seen: list[int] = []

    def rules(model: Mapping[str, int]) -> list[Event]:
        seen.append(model["free"])
        if len(seen) == 1:
            store.append([codec.tagged(Taken("ben"), "course:latin")])
        return [codec.tagged(Taken("ann"), "course:latin")] if model["free"] else []

    assert Decisions(store=store).handle({"free": free()}, rules).events == ()
    assert seen == [1, 0]


def test_a_codec_puts_an_event_under_tags() -> None:
    assert codec.tagged(Taken("ann"), "a").data == b'{"student":"ann"}'
    raw = EventCodec[bytes](
        encode=lambda body: Event(type="Raw", data=body), decode=lambda stored: stored.data
    )
    assert raw.tagged(b"\xff", "a").data == b"\xff"
    store = memory_tagged_events()
    (back,) = store.append([raw.tagged(b"\xff", "a")]).events
    assert raw.read(back) == b"\xff"


def test_a_codec_that_does_not_say_its_types_is_given_all_events_of_the_tags() -> None:
    store = memory_tagged_events()
    store.append([Event(type="Painted", data=b"{}", tags=("course:latin",))])
    strict = EventCodec[Taken](encode=codec.encode, decode=lambda _: None)
    of_all = projection(tags=["course:latin"], codec=strict, evolve=lambda count, _: count + 1, initial=0)
    with pytest.raises(UnknownType):
        Decisions(store=store).model({"all": of_all})


def test_a_projection_has_functions_or_a_codec() -> None:
    with pytest.raises(InvalidInput, match="on"):
        projection(tags=["a"], initial=0)  # type: ignore[call-overload]
    with pytest.raises(InvalidInput, match="evolve"):
        projection(tags=["a"], initial=0, codec=codec)  # type: ignore[call-overload]
