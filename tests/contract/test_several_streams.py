"""Appends to several streams at once, on each store: all of it is there, or nothing, whoever races for it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from epochal import NO_STREAM, Event, StreamAppend, Unfold
from epochal.deciders.codecs import EventCodec
from epochal.deciders.on_streams import Decider, Deciders, handle_all
from epochal.layout.outcomes import refusing_head
from epochal.model.outcomes import Appended, Conflict
from epochal.pages.layout import Pages
from epochal.store.driver import Driver, Meter
from epochal.store.streams import Streams
from tests.contract.places import PATIENT, Place

E = Event(type="Moved", data=b'{"amount": 1}')


@pytest.fixture
def streams(place: Place) -> Streams:
    driver = Driver(execute=place.execute, meter=Meter(), patience=PATIENT)
    return Streams(driver=driver, table=place.table, layout=Pages())


@pytest.fixture
def names(place: Place) -> tuple[str, str]:
    return f"{place.partition}a", f"{place.partition}b"


def test_what_is_appended_to_several_streams_is_in_all_of_them_or_in_none(
    streams: Streams, names: tuple[str, str]
) -> None:
    first, second = names
    made = streams.append_all(
        [
            StreamAppend(stream=first, events=[E, E], expected=NO_STREAM),
            StreamAppend(stream=second, events=[E], unfolds=[Unfold(type="Sum", data=b"1")]),
        ]
    )
    streams.append(second, [E])

    stale = [StreamAppend(stream=name, events=[E], expected=made.streams[name].token) for name in names]
    refused = streams.try_append_all(stale)

    assert isinstance(refused, Conflict)
    assert list(refused.streams) == [second]
    assert [len(list(streams.read(name))) for name in names] == [2, 2]
    again = streams.append_all([stale[0], replace(stale[1], expected=refused.streams[second].token)])
    assert [each.version for each in again.streams.values()] == [3, 3]


def test_it_is_one_request_that_costs_twice_what_its_appends_cost(
    streams: Streams, names: tuple[str, str]
) -> None:
    made = streams.append_all([StreamAppend(stream=name, events=[E], expected=NO_STREAM) for name in names])

    assert (made.capacity.requests, made.capacity.write) == (1, 4)


def test_as_many_streams_as_a_transaction_takes_are_one_append(streams: Streams, place: Place) -> None:
    appends = [StreamAppend(stream=f"{place.partition}-{k}", events=[E]) for k in range(100)]

    assert isinstance(streams.try_append_all(appends), Appended)
    assert isinstance(streams.try_append_all(appends), Appended)
    assert all(len(list(streams.read(each.stream))) == 2 for each in appends[::33])


def test_racers_over_the_same_streams_each_append_to_both_once(
    streams: Streams, names: tuple[str, str]
) -> None:
    def move(number: int) -> None:
        ordered = names if number % 2 else names[::-1]
        event = Event(type=f"Moved{number}")
        streams.append_all([StreamAppend(stream=name, events=[event]) for name in ordered])

    with ThreadPoolExecutor(6) as racers:
        list(racers.map(move, range(12)))

    orders = [[event.type for event in streams.read(name)] for name in names]
    assert orders[0] == orders[1], "both streams have them in one order"
    assert sorted(orders[0]) == sorted(f"Moved{number}" for number in range(12))


def test_what_is_only_read_is_a_condition_that_a_write_breaks(
    streams: Streams, names: tuple[str, str]
) -> None:
    written, read = names
    streams.append(read, [E])
    known = {written: None, read: streams.head(read)}
    appends = [StreamAppend(stream=written, events=[E])]
    streams.append(read, [E])

    moved = streams.append_on(known, appends)
    assert isinstance(moved, Conflict)
    assert moved.streams.keys() == {read}
    head = refusing_head(moved.streams[read])
    assert head.version == 2
    known = {written: None, read: head}
    assert streams.append_on(known, []) == Appended()
    appended = streams.append_on(known, appends)
    assert isinstance(appended, Appended)
    assert appended.streams.keys() == {written}
    gone = streams.append_on({written: None, read: streams.head(read)}, [])
    assert isinstance(gone, Conflict)
    assert gone.streams.keys() == {written}


def test_a_key_makes_it_one_append_whoever_repeats_it(streams: Streams, names: tuple[str, str]) -> None:
    def keyed() -> Appended:
        appends = [StreamAppend(stream=name, events=[E]) for name in names]
        return streams.append_all(appends, idempotency_key="k")

    with ThreadPoolExecutor(4) as racers:
        made = list(racers.map(lambda _: keyed(), range(4)))

    assert sum(not each.streams[names[0]].replayed for each in made) == 1
    assert len({tuple(each.token for each in one.streams.values()) for one in made}) == 1
    assert [len(list(streams.read(name))) for name in names] == [1, 1]
    first, *_ = made
    streams.append(names[0], [E], expected=first.streams[names[0]].token)


def test_of_joint_decisions_under_one_key_one_is_made_and_all_are_answered_the_same(
    streams: Streams, names: tuple[str, str]
) -> None:
    class Done(Exception):
        pass

    deciders = Deciders(
        streams=streams,
        decider=Decider[None, int, Event](
            initial=int, evolve=lambda total, _: total + 1, decide=lambda *_: []
        ),
        codec=EventCodec[Event](encode=lambda event: event, decode=lambda stored: Event(type=stored.type)),
    )

    def decide(one: int, other: int) -> tuple[list[Event], list[Event]]:
        if one or other:
            raise Done
        return [E], [E, E]

    def ask(_: int) -> list[tuple[int, int, bool]]:
        first, second = names
        made = handle_all((deciders.on(first), deciders.on(second)), decide, idempotency_key="request-1")
        return [(each.version, each.state, each.replayed) for each in made.parties]

    with ThreadPoolExecutor(8) as pool:
        told = list(pool.map(ask, range(8)))

    assert {tuple(each[:2] for each in parties) for parties in told} == {((1, 1), (2, 2))}
    assert [parties[0][2] for parties in told].count(False) == 1
    assert [len(list(streams.read(name))) for name in names] == [1, 2]
