"""What reads by types or by codec passes the events of timers over; what reads all of a stream shows them."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from epochal.deciders.access import LATEST_KNOWN_EVENT, UNOPTIMIZED, Access, rolling_state, snapshot
from epochal.deciders.codecs import EventCodec, json_codec
from epochal.deciders.on_queries import Decisions
from epochal.deciders.on_streams import Decider, Deciders
from epochal.deciders.projections import projection
from epochal.model.events import Event
from epochal.model.expected_version import AtVersion
from epochal.model.stream_names import TIMER_CANCELLED, TIMER_SET
from epochal.model.tags import Query, QueryItem
from epochal.reactions.definition import Delivery, Reaction
from epochal.reactions.steering import Groups
from epochal.scheduling import after, cancel, later
from epochal.testing.feeds import MemoryStore


@dataclass(frozen=True)
class Lent:
    days: int


CODEC = json_codec(Lent)
TIMED = later("reminder", [Event(type="Reminded")], at=after(days=14))
DECIDER: Decider[int, int, Lent] = Decider(
    initial=lambda: 0, evolve=lambda _, event: event.days, decide=lambda days, _: [Lent(days)]
)


def of_types(delivery: Delivery) -> list[str]:
    return [event.type for event in delivery.events]


@pytest.mark.parametrize(
    "access",
    [
        UNOPTIMIZED,
        LATEST_KNOWN_EVENT,
        snapshot(lambda _: True, Lent),
        rolling_state(Lent),
    ],
)
def test_a_decider_folds_its_own_events_alone_though_the_stream_has_timers(access: Access[int, Lent]) -> None:
    feed = MemoryStore()
    deciders = Deciders(streams=feed.streams, decider=DECIDER, codec=CODEC, access=access)
    feed.streams.append("Loan-17", [TIMED])
    deciders.handle("Loan-17", 14)
    feed.streams.append("Loan-17", [cancel("reminder")])
    assert deciders.query("Loan-17", lambda state: state) == 14
    after = deciders.handle("Loan-17", 21)
    assert (after.state, deciders.query("Loan-17", lambda state: state)) == (21, 21)


def test_the_versions_of_a_stream_count_its_timers_and_reads_of_all_show_them() -> None:
    feed = MemoryStore()
    deciders = Deciders(streams=feed.streams, decider=DECIDER, codec=CODEC)
    feed.streams.append("Loan-17", [TIMED])
    assert deciders.handle("Loan-17", 14, expected=AtVersion(1)).version == 2
    assert [event.type for event in feed.streams.read("Loan-17")] == [TIMER_SET, "Lent"]
    feed.index()
    pages = [page for each in feed.feed.partitions() for page in feed.feed.read(each.partition)]
    assert [item.type for page in pages for item in page.items] == [TIMER_SET, "Lent"]


@pytest.mark.parametrize(
    "codec", [CODEC, CODEC.keeping(), EventCodec(encode=CODEC.encode, decode=CODEC.decode)]
)
def test_a_codec_reads_nothing_of_a_timers_event(codec: EventCodec[Lent]) -> None:
    feed = MemoryStore()
    feed.streams.append("Loan-17", [TIMED, Event.json("Lent", {"days": 14})])
    assert [codec.read(event) for event in feed.streams.read("Loan-17")] == [None, Lent(14)]


@pytest.mark.parametrize("types", [CODEC.types, frozenset()])
def test_a_projection_by_codec_passes_timers_over(types: frozenset[str]) -> None:
    feed = MemoryStore()
    codec = EventCodec(encode=CODEC.encode, decode=CODEC.decode, types=types)
    feed.tagged.append([later("r", [Event(type="A")], at=after(days=1), tags=["loan:17"])])
    feed.tagged.append([CODEC.tagged(Lent(14), "loan:17")])
    days = projection(tags=["loan:17"], codec=codec, evolve=lambda _, event: event.days, initial=0)
    assert Decisions(store=feed.tagged).model({"days": days}).states == {"days": 14}
    every = Query(items=(QueryItem(tags=frozenset({"loan:17"})),))
    assert [event.type for event in feed.tagged.read(every).events] == [TIMER_SET, "Lent"]


def test_a_reaction_is_given_timers_only_where_it_names_their_types() -> None:
    feed, came = MemoryStore(), dict[str, list[str]]()
    feed.streams.append("Loan-17", [TIMED, Event(type="Lent")])
    feed.streams.append("Loan-18", [TIMED, cancel("reminder")])
    for name, types in (
        ("all", None),
        ("lent", frozenset({"Lent"})),
        ("set", frozenset({TIMER_SET})),
        ("off", frozenset({TIMER_CANCELLED, "Lent"})),
    ):
        came[name] = []
        handler = lambda delivery, name=name: came[name].extend(of_types(delivery))  # noqa: E731  one for each
        feed.react(Reaction(name=name, handler=lambda delivery, run=handler: run(delivery), types=types))
    assert {name: sorted(types) for name, types in came.items()} == {
        "all": ["Lent"],
        "lent": ["Lent"],
        "set": [TIMER_SET, TIMER_SET],
        "off": [TIMER_CANCELLED, "Lent"],
    }


def test_a_stream_of_timers_alone_is_not_read_for_a_reaction_that_names_no_types() -> None:
    feed = MemoryStore()
    feed.streams.append("Loan-18", [TIMED, cancel("reminder")])
    called = list[Delivery]()
    everything = Reaction(name="all", handler=called.append)
    feed.react(everything)
    spans = [span for each in feed.feed.partitions() for span in feed.feed.spans(each.partition).spans]
    assert (called, [everything.wants(span) for span in spans]) == ([], [False])


def test_a_reset_counts_no_events_of_timers_for_a_reaction_that_is_given_none() -> None:
    feed = MemoryStore()
    feed.streams.append("Loan-17", [TIMED, Event(type="Lent")])
    reaction = Reaction(name="all", handler=lambda _: None)
    feed.react(reaction)
    resets = Groups(reader=feed.feed).reset(reaction, to="beginning", dry_run=True)
    assert sum(each.again for each in resets) == 1
