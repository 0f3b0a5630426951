"""What each strategy stores, and what it makes a state of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from epochal.contrib.equinox.calving import Fixed
from epochal.contrib.equinox.streams import Tips
from epochal.deciders.access import (
    LATEST_KNOWN_EVENT,
    UNOPTIMIZED,
    Access,
    multi_snapshot,
    rolling_state,
    snapshot,
)
from epochal.deciders.codecs import EventCodec, Stored, json_codec
from epochal.deciders.on_streams import Decider, Deciders
from epochal.errors import CorruptData, UnknownType
from epochal.model.events import Event, Unfold
from tests.layouts.deciders.tally import (
    CODEC,
    STRATEGIES,
    Added,
    Cleared,
    OldSnapshotted,
    Snapshotted,
    Store,
    Tally,
    TallyEvent,
    add,
    clear,
    is_snapshot,
    to_both,
    to_snapshot,
    total,
)

S = "Tally-1"
SNAPSHOT = STRATEGIES["snapshot"]
ROLLING = STRATEGIES["rolling state"]


def stored(store: Store) -> tuple[list[str], list[tuple[str, int]]]:
    """Types of events, and types and versions of unfolds."""
    state = store.others.load(S)
    assert state is not None
    return [event.type for event in store.others.read(S)], [
        (unfold.type, unfold.version) for unfold in state.unfolds
    ]


@pytest.mark.parametrize(
    ("strategy", "events", "unfolds"),
    [
        ("unoptimized", ["Added", "Added", "Cleared"], []),
        ("latest known event", ["Added", "Added", "Cleared"], []),
        ("snapshot", ["Added", "Added", "Cleared"], [("Snapshotted", 3)]),
        ("multi-snapshot", ["Added", "Added", "Cleared"], [("OldSnapshotted", 3), ("Snapshotted", 3)]),
        ("rolling state", [], [("Snapshotted", 0)]),
        ("custom", ["Added", "Added"], [("Snapshotted", 2)]),
    ],
)
def test_a_strategy_stores_these(strategy: str, events: list[str], unfolds: list[tuple[str, int]]) -> None:
    store = Store()
    tallies = store.tallies(STRATEGIES[strategy])
    tallies.handle(S, decide=add(1))
    tallies.handle(S, decide=add(2))
    outcome = tallies.handle(S, decide=clear)
    assert stored(store) == (events, unfolds)
    assert outcome.state == Tally()
    assert outcome.events == (Cleared(),)
    assert outcome.version == len(events)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_the_token_of_an_outcome_is_the_streams(strategy: str) -> None:
    store = Store()
    outcome = store.tallies(STRATEGIES[strategy]).handle(S, decide=add(1))
    state = store.others.load(S)
    assert state is not None
    assert outcome.token == state.token
    assert store.tallies(STRATEGIES[strategy]).handle(S, decide=add(0)).token == state.token


# ------------------------------------------------------------------------- snapshots that lag behind


def append(store: Store, *events: TallyEvent) -> None:
    """Append as a program does that knows nothing of unfolds."""
    store.others.append(S, [CODEC.encode(event) for event in events])


@pytest.mark.parametrize("strategy", ["snapshot", "multi-snapshot"])
@pytest.mark.parametrize(("behind", "calves"), [(1, 0), (2, 1), (11, 2)])
def test_events_after_a_snapshot_are_folded_in_from_the_tip_or_from_calves(
    strategy: str, behind: int, calves: int
) -> None:
    store = Store(layout=Tips(calving=Fixed(max_events=2)))
    store.elsewhere(STRATEGIES[strategy]).handle(S, decide=add(100))
    for step in range(behind):
        append(store, Added(1, 101 + step))
    assert store.tallies(STRATEGIES[strategy]).query(S, total) == 100 + behind
    assert store.requests() == ["Get", *["Query"] * calves]


def test_a_snapshot_is_folded_on_and_not_from_the_start() -> None:
    """The events before the snapshot contradict it, which tells which of the two was used."""
    store = Store()
    append(store, Added(7, 7))
    store.others.append(S, [], unfolds=[unfold(Snapshotted(1000))])
    deciders = summing(store)
    append(store, Added(5, 0))
    assert deciders.query(S, int) == 1005


def summing(store: Store) -> Deciders[None, int, TallyEvent]:
    """A state that every event counts in."""

    def evolve(state: int, event: TallyEvent) -> int:
        match event:
            case Added(by=by):
                return state + by
            case Snapshotted(total=total):
                return total
            case Cleared() | OldSnapshotted():
                return 0

    decider: Decider[None, int, TallyEvent] = Decider(initial=int, evolve=evolve, decide=lambda _, __: [])
    access: Access[int, TallyEvent] = snapshot(is_snapshot, Snapshotted, trust_unmarked=True)
    return Deciders(streams=store.streams, decider=decider, codec=CODEC, access=access)


def unfold(event: TallyEvent) -> Unfold:
    encoded = CODEC.encode(event)
    return Unfold(type=encoded.type, data=encoded.data)


def test_unfolds_numbered_on_belong_to_the_version_of_the_first() -> None:
    """As Equinox numbers them: the second unfold's version is one more than what it was made from."""
    store = Store()
    store.others.append(
        S, [CODEC.encode(Added(1, 1))], unfolds=[unfold(OldSnapshotted(1)), unfold(Snapshotted(1))]
    )
    tip = next(item for item in store.tables.items("tips") if item["i"]["N"] == "2147483647")
    tip["u"]["L"][1]["M"]["i"] = {"N": "2"}
    append(store, Added(4, 0))
    assert summing(store).query(S, int) == 5


# ------------------------------------------------------------------------ snapshots of other schemas


def test_a_snapshot_of_an_unknown_type_is_ignored_and_the_events_folded() -> None:
    store = Store()
    append(store, Added(3, 3))
    store.others.append(S, [], unfolds=[Unfold(type="SnapshottedInTheFuture", data=b"not even JSON")])
    assert store.tallies(SNAPSHOT).query(S, total) == 3


def test_a_snapshot_that_is_no_origin_is_ignored_and_the_events_folded() -> None:
    store = Store()
    append(store, Added(3, 3))
    store.others.append(S, [], unfolds=[unfold(Snapshotted(-1))])
    sane = snapshot(
        lambda event: isinstance(event, Snapshotted) and event.total >= 0, to_snapshot, trust_unmarked=True
    )
    assert store.tallies(sane).query(S, total) == 3


def test_a_decision_replaces_snapshots_of_other_schemas() -> None:
    store = Store()
    append(store, Added(3, 3))
    store.others.append(S, [], unfolds=[Unfold(type="SnapshottedInTheFuture")])
    store.tallies(SNAPSHOT).handle(S, decide=add(1))
    assert stored(store)[1] == [("Snapshotted", 2)]


def test_programs_of_an_old_and_a_new_schema_read_the_same_multi_snapshot() -> None:
    store = Store()
    store.tallies(STRATEGIES["multi-snapshot"]).handle(S, decide=add(1))
    old: EventCodec[TallyEvent] = json_codec(Added, Cleared, OldSnapshotted)
    access = multi_snapshot(lambda event: isinstance(event, OldSnapshotted), to_both)
    store.requests()
    assert store.tallies(access, codec=old).query(S, total) == 1
    assert store.tallies(STRATEGIES["multi-snapshot"]).query(S, total) == 1
    assert store.requests() == ["Get", "Get"]


def test_a_multi_snapshot_may_hold_a_state_in_parts() -> None:
    def evolve(state: tuple[str, ...], event: str) -> tuple[str, ...]:
        return (event[1:],) if event.startswith("!") else (*state, event.strip("+"))

    words: Decider[str, tuple[str, ...], str] = Decider(
        initial=tuple, evolve=evolve, decide=lambda word, _: [word]
    )
    parts: Access[tuple[str, ...], str] = multi_snapshot(
        lambda event: event.startswith("!"),
        lambda state: [f"!{state[0]}", *(f"+{word}" for word in state[1:])],
    )
    codec: EventCodec[str] = EventCodec(encode=lambda word: Event(type=word), decode=lambda event: event.type)
    store = Store()
    deciders = Deciders(streams=store.streams, decider=words, codec=codec, access=parts)
    for word in ("one", "two", "three"):
        deciders.handle("Words-1", word)
    state = store.others.load("Words-1")
    assert state is not None
    assert [part.type for part in state.unfolds] == ["!one", "+two", "+three"]
    assert deciders.query("Words-1", tuple) == ("one", "two", "three")


def test_events_stand_in_for_a_snapshot_that_its_codec_cannot_read() -> None:
    store = Store()
    store.others.append(S, [CODEC.encode(Added(1, 1))], unfolds=[Unfold(type="Snapshotted", data=b"{}")])
    assert store.tallies(replace(SNAPSHOT, trust_unmarked=True)).query(S, total) == 1


def test_a_state_in_unfolds_that_its_codec_cannot_read_is_corrupt_since_no_events_make_it() -> None:
    store = Store()
    store.others.append(S, [CODEC.encode(Added(1, 1))], unfolds=[Unfold(type="Snapshotted", data=b"{}")])
    with pytest.raises(CorruptData, match=r"Snapshotted \(index 1\): total: is missing"):
        store.tallies(ROLLING).query(S, total)


# ------------------------------------------------------------------------------------- rolling state


@pytest.mark.parametrize("strategy", ["rolling state", "custom"])
def test_a_state_in_unfolds_that_the_codec_does_not_know_is_an_error_and_not_the_initial_state(
    strategy: str,
) -> None:
    store = Store()
    store.others.append(S, [], unfolds=[Unfold(type="SnapshottedInTheFuture")])
    with pytest.raises(UnknownType, match="SnapshottedInTheFuture"):
        store.tallies(STRATEGIES[strategy]).handle(S, decide=add(1))


def test_a_rolling_state_takes_over_from_events() -> None:
    store = Store(layout=Tips(calving=Fixed(max_events=2)))
    for step in range(1, 6):
        append(store, Added(1, step))
    assert store.tallies(ROLLING).handle(S, decide=add(1)).state == Tally(6)
    assert stored(store) == (["Added"] * 5, [("Snapshotted", 5)])
    assert store.tallies(ROLLING).query(S, total) == 6


def test_a_rolling_state_folds_all_earlier_events_and_not_the_latest_alone() -> None:
    store = Store()
    append(store, Added(3, 0), Added(4, 0))
    deciders = replace(summing(store), access=rolling_state(Snapshotted))
    assert deciders.query(S, int) == 7


# ------------------------------------------------------------------------------------- unknown types


def test_events_of_unknown_types_are_an_error_unless_the_codec_skips_them() -> None:
    store = Store()
    append(store, Added(3, 3))
    store.others.append(S, [Event(type="Audited")])
    for access in (UNOPTIMIZED, LATEST_KNOWN_EVENT, SNAPSHOT):
        with pytest.raises(UnknownType, match=r"Tally-1: the codec does not know type Audited \(index 1\)"):
            store.tallies(access).query(S, total)
        assert store.tallies(access, codec=replace(CODEC, skips_unknown=True)).query(S, total) == 3


def test_the_latest_event_that_is_known_may_lie_in_a_calf() -> None:
    store = Store(layout=Tips(calving=Fixed(max_events=2)))
    append(store, Added(3, 3))
    for _ in range(7):
        store.others.append(S, [Event(type="Audited")])
    codec = replace(CODEC, skips_unknown=True)
    assert store.tallies(LATEST_KNOWN_EVENT, codec=codec).query(S, total) == 3


def test_a_codec_is_given_what_is_stored() -> None:
    seen: list[Stored] = []

    def decode(stored: Stored) -> TallyEvent | None:
        seen.append(stored)
        return Cleared()

    store = Store()
    event = Event(type="T", data=b"d", meta=b"m", timestamp="2026-01-02T03:04:05Z")
    store.others.append(S, [event], unfolds=[Unfold(type="U", data=b"e", timestamp="2027-01-02T03:04:05Z")])
    store.tallies(SNAPSHOT, codec=replace(CODEC, decode=decode)).query(S, total)
    later, earlier = "2027-01-02T03:04:05.0000000+00:00", "2026-01-02T03:04:05.0000000+00:00"
    assert seen == [
        Stored(type="U", data=b"e", meta=b"", timestamp=later, index=1),
        Stored(type="T", data=b"d", meta=b"m", timestamp=earlier, index=0),
    ]


def test_what_a_codec_encodes_is_stored_whole() -> None:
    def encode(_: TallyEvent) -> Event:
        return Event(type="T", data=b"d", meta=b"m", timestamp="2026-01-02T03:04:05Z", correlation_id="c")

    store = Store()
    keep: Sequence[str] = ("type", "data", "meta", "timestamp")
    store.tallies(SNAPSHOT, codec=replace(CODEC, encode=encode)).handle(S, decide=add(1))
    (event,) = store.others.read(S)
    state = store.others.load(S)
    assert state is not None
    expected = ["T", b"d", b"m", "2026-01-02T03:04:05.0000000+00:00"]
    assert [getattr(event, name) for name in keep] == expected
    assert [getattr(state.unfolds[0], name) for name in keep] == expected
    assert event.correlation_id == "c"


def test_bodies_too_large_for_an_item_come_back_whole() -> None:
    store = Store()
    codec = EventCodec(encode=lambda body: Event(type="T", data=body), decode=lambda stored: stored.data)
    last: Decider[bytes, bytes, bytes] = Decider(
        initial=bytes, evolve=lambda _, event: event, decide=lambda command, _: [command]
    )
    body = bytes(range(256)) * 4000
    for access in (UNOPTIMIZED, rolling_state(bytes)):
        deciders = Deciders(streams=store.streams, decider=last, codec=codec, access=access)
        assert deciders.handle("Large-1", body).state == body
        assert deciders.query("Large-1", bytes) == body
