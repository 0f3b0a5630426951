"""Snapshots in streams of a class that has changed since: the state is made from the events."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import make_dataclass, replace
from typing import Any

import pytest

from epochal.contrib.equinox import memory_tips
from epochal.deciders.access import Access, multi_snapshot
from epochal.deciders.codecs import Stored, json_codec
from epochal.deciders.fingerprints import fingerprint_of
from epochal.deciders.on_streams import Deciders
from epochal.deciders.upcasting import upcast
from epochal.errors import EventsPruned, InvalidInput
from epochal.model.events import Event, RecordedUnfold, Unfold
from epochal.store.streams import Streams
from epochal.testing.stores import memory_streams
from tests.core.deciders.changed_states import (
    ACCOUNT,
    CHANGES,
    COUNTING,
    Account,
    CountedPurse,
    Counting,
    CountingAlways,
    Paid,
    Program,
    Purse,
)

S = "Account-1"


@pytest.mark.parametrize("layout", [memory_streams, memory_tips])
@pytest.mark.parametrize("change", CHANGES)
def test_a_snapshot_of_a_changed_class_gives_way_to_the_events(
    change: str, layout: Callable[[], Streams]
) -> None:
    before, after = CHANGES[change]
    streams = layout()
    for amount in (5, 4):
        before.on(streams).handle(S, amount)
    assert after.on(streams).query(S, lambda state: state) == after.folded(5, 4)
    assert after.on(streams).handle(S, 3).state == after.folded(5, 4, 3)
    assert after.on(streams).query(S, lambda state: state) == after.folded(5, 4, 3)


def balance(state: Account) -> int:
    return state.balance


def only_unfold(streams: Streams) -> RecordedUnfold:
    state = streams.load(S)
    assert state is not None
    (unfold,) = state.unfolds
    return unfold


def requests(streams: Streams, do: Callable[[Streams], object]) -> int:
    driver, meter = streams.driver.metered()
    do(replace(streams, driver=driver))
    return meter.requests


def test_a_snapshot_says_in_its_metadata_what_it_was_made_with() -> None:
    streams = memory_streams()
    ACCOUNT.on(streams).handle(S, 5)
    assert json.loads(only_unfold(streams).meta) == {"$shape": fingerprint_of(Account)}
    ACCOUNT.on(streams, version="2").handle(S, 5)
    unfold = only_unfold(streams)
    assert json.loads(unfold.meta) == {"$shape": fingerprint_of(Account), "$version": "2"}
    assert unfold.json() == {"balance": 10}


def test_a_snapshot_of_an_unchanged_class_is_used_whatever_the_class_is_called_in_the_program() -> None:
    def gone(_: Any, __: Paid) -> Any:
        raise AssertionError("no event is folded")

    streams = memory_streams()
    ACCOUNT.on(streams, version="2").handle(S, 5)
    moved = make_dataclass("Moved", [("balance", int, 0)], frozen=True)
    found = Program(moved, moved, gone).on(streams, version="2").query(S, balance)
    assert found == 5


def test_a_snapshot_of_another_version_of_the_rules_is_not_used() -> None:
    twice = replace(ACCOUNT, evolve=lambda state, event: Account(state.balance + 2 * event.amount))
    streams = memory_streams()
    ACCOUNT.on(streams).handle(S, 5)
    assert twice.on(streams).query(S, balance) == 5, "no schema shows what another `evolve` does"
    assert twice.on(streams, version="2").handle(S, 4).state == Account(18)
    assert ACCOUNT.on(streams).query(S, balance) == 9
    assert ACCOUNT.on(streams, version="1").query(S, balance) == 9


@pytest.mark.parametrize("meta", [b"", b'{"by":"them"}', b'{"$shape":"000000000000"}'])
def test_a_snapshot_that_does_not_say_what_it_was_made_with_is_not_used_unless_it_is_trusted(
    meta: bytes,
) -> None:
    streams = memory_streams()
    body = Unfold.json("Account", {"balance": 100}, meta=meta)
    streams.append(S, [ACCOUNT.codec.encode(Paid(5))], unfolds=[body])
    assert ACCOUNT.on(streams).query(S, balance) == 5
    trusted = 5 if b"$shape" in meta else 100
    assert ACCOUNT.on(streams, trust_unmarked=True).query(S, balance) == trusted
    assert ACCOUNT.on(streams, trust_unmarked=True, version="2").query(S, balance) == 5


def test_a_snapshot_of_an_older_version_of_its_type_is_upcast_and_used() -> None:
    @upcast("Account", 1, to=2)
    def count(account: dict[str, Any]) -> dict[str, Any]:
        return {**account, "payments": 70}

    streams = memory_streams()
    ACCOUNT.on(streams).handle(S, 5)
    codec = json_codec(Paid, named={"Account": Counting}, upcasts=[count])
    counting = replace(COUNTING.on(streams), codec=codec)
    assert counting.handle(S, 4).state == Counting(9, 71)
    assert counting.query(S, lambda state: state) == Counting(9, 71)
    changed = json_codec(Paid, named={"Account": CountingAlways}, upcasts=[count])
    again = replace(CHANGES["a field added without a default"][1].on(streams), codec=changed)
    assert again.query(S, lambda state: state) == CountingAlways(9, 2), (
        "it is of today's version, and not its class"
    )


@pytest.mark.parametrize("forget_pruned", [False, True])
def test_where_events_are_pruned_that_would_stand_in_an_error_says_so_and_what_to_do(
    forget_pruned: bool,
) -> None:
    streams = memory_streams()
    for amount in (5, 4, 3):
        ACCOUNT.on(streams).handle(S, amount)
    streams.prune(S, 2, unarchived=True)
    counting = replace(COUNTING.on(streams), forget_pruned=forget_pruned)
    words = r"Account, which is not used: its class has changed since\. Use the class and the version"
    with pytest.raises(EventsPruned, match=words):
        counting.query(S, balance)
    assert replace(ACCOUNT.on(streams), forget_pruned=forget_pruned).query(S, balance) == 12


def test_metadata_of_a_codec_are_kept_beside_the_mark_and_given_back_without_it() -> None:
    seen = []

    def encode(event: Any) -> Event:
        return replace(ACCOUNT.codec.encode(event), meta=b'{"by":"me"}')

    def decode(stored: Stored) -> Any:
        seen.append(stored.meta)
        return ACCOUNT.codec.decode(stored)

    streams = memory_streams()
    program = ACCOUNT.on(streams)
    own = replace(program, codec=replace(ACCOUNT.codec, encode=encode, decode=decode))
    own.handle(S, 5)
    assert json.loads(only_unfold(streams).meta) == {"by": "me", "$shape": fingerprint_of(Account)}
    assert own.query(S, balance) == 5
    assert set(seen) == {b'{"by":"me"}'}
    assert COUNTING.on(streams).query(S, lambda state: state) == Counting(5, 1)


def test_metadata_that_are_no_object_stay_as_they_are_and_their_snapshot_is_used() -> None:
    codec = replace(ACCOUNT.codec, encode=lambda event: replace(ACCOUNT.codec.encode(event), meta=b"by hand"))
    streams = memory_streams()
    own = replace(ACCOUNT.on(streams), codec=codec)
    own.handle(S, 5)
    assert only_unfold(streams).meta == b"by hand"
    with pytest.raises(InvalidInput, match="version: cannot be stored"):
        replace(ACCOUNT.on(streams, version="2"), codec=codec).handle(S, 5)
    streams.append(S, [], unfolds=[Unfold.json("Account", {"balance": 100}, meta=b"by hand")])
    assert own.query(S, balance) == 100


def test_a_part_that_is_out_of_date_makes_its_whole_snapshot_so() -> None:
    def on(streams: Streams, part: type) -> Deciders[int, Any, Any]:
        access: Access[Any, Any] = multi_snapshot(
            lambda event: isinstance(event, Account), lambda state: (state, part())
        )
        codec = json_codec(Paid, Account, named={"Part": part})
        decider = replace(
            ACCOUNT.decider,
            evolve=lambda state, event: state if isinstance(event, part) else _evolved(state, event),
        )
        return replace(ACCOUNT.on(streams), codec=codec, access=access, decider=decider)

    streams = memory_streams()
    on(streams, Purse).handle(S, 5)
    assert requests(streams, lambda counted: on(counted, Purse).query(S, balance)) == 1
    streams.append(S, [], unfolds=[_wrong(each) for each in _unfolds(streams)])
    assert on(streams, Purse).query(S, balance) == 100
    assert on(streams, CountedPurse).query(S, balance) == 5


def _evolved(state: Account, event: Any) -> Account:
    return event if isinstance(event, Account) else Account(state.balance + event.amount)


def _unfolds(streams: Streams) -> Sequence[RecordedUnfold]:
    state = streams.load(S)
    assert state is not None
    return state.unfolds


def _wrong(unfold: RecordedUnfold) -> Unfold:
    """The unfold with a balance that its events contradict, which tells what a state was made from."""
    data = b'{"balance":100}' if unfold.type == "Account" else unfold.data
    return Unfold(type=unfold.type, data=data, meta=unfold.meta)


def test_what_is_not_used_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    before = Program(Account, Account, ACCOUNT.evolve)
    streams = memory_streams()
    named = {"Ledger": Account}
    ledgers = replace(before.on(streams), codec=json_codec(Paid, named=named))
    ledgers.handle(S, 5)
    after = replace(COUNTING.on(streams), codec=json_codec(Paid, named={"Ledger": Counting}))
    for _ in range(2):
        after.query(S, balance)
    (record,) = caplog.records
    assert record.getMessage() == (
        "a snapshot of Ledger is not used: its class has changed since. States are made from events until an append "
        "stores a new snapshot; this is logged once"
    )


@pytest.mark.parametrize("version", [2, "x" * 65, "\ud800"])
def test_a_version_is_a_short_text(version: Any) -> None:
    with pytest.raises(InvalidInput, match="version"):
        ACCOUNT.on(memory_streams(), version=version)
