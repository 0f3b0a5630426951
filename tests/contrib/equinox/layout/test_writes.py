"""The requests of each operation, as FORMATS §1 lists them: keys, conditions, counters. This outlives the code."""

from __future__ import annotations

from dataclasses import replace

import pytest

from epochal.contrib.equinox import memory_tips
from epochal.contrib.equinox.calving import Calving, Fixed
from epochal.contrib.equinox.streams import Tips
from epochal.index.checkpoints import TIP, calf_key, tip_key
from epochal.model.events import Event, Unfold
from epochal.model.expected_version import NO_STREAM, AtVersion
from epochal.model.outcomes import Appended
from epochal.plan.conditions import Absent, All, AnyOf, Compare, Condition, equals
from epochal.plan.ops import Delete, Extend, Get, Op, Put, Query, Reply, Set, Transact, TransactGet, Update
from epochal.plan.values import Item, number, text, value_size
from epochal.store.streams import Streams
from epochal.testing.memory import MemoryTables
from epochal.testing.stores import memory_tables
from tests.contrib.equinox.layout.items import STREAM, TABLE

E = Event(type="E", data=b"{}")
TWO_STEP = Fixed(max_events=2, mode="two-step")
AT_ONCE = Fixed(max_events=2, mode="transactional")


class Recorder:
    """A store in memory, and what it asked for since `clear`."""

    def __init__(self) -> None:
        self.tables: MemoryTables = memory_tables()
        self.ops: list[Op] = []

    def store(self, calving: Calving = TWO_STEP) -> Streams:
        streams = replace(memory_tips(self.tables), layout=Tips(calving=calving))
        return replace(streams, driver=replace(streams.driver, execute=self._perform))

    def tip(self) -> Item:
        found = self.tables.execute(Get(table=TABLE, key=tip_key(STREAM))).item
        assert found is not None
        return found

    def _perform(self, op: Op) -> Reply:
        self.ops.append(op)
        return self.tables.execute(op)


@pytest.fixture
def recorder() -> Recorder:
    return Recorder()


def token(streams: Streams) -> object:
    state = streams.load(STREAM)
    assert state is not None
    return state.token


def holding(recorder: Recorder, events: int) -> str:
    """A Tip with so many events; its etag."""
    outcome = recorder.store().append(STREAM, [E] * events, expected=NO_STREAM)
    assert isinstance(outcome, Appended)
    recorder.ops.clear()
    return str(outcome.token.etag)


def sets(update: Op) -> dict[str, object]:
    assert isinstance(update, Update)
    return {change.name: (type(change), change.value) for change in update.sets}


def on_state(etag: str, version: int) -> Condition:
    return All((equals("etag", text(etag)), equals("n", number(version))))


def on_live_state(etag: str, version: int) -> Condition:
    return All((on_state(etag, version), AnyOf((Absent("z"), equals("z", number(0))))))


def test_a_new_stream_is_one_put_of_the_tip_if_there_is_none(recorder: Recorder) -> None:
    recorder.store().append(STREAM, [E, E], unfolds=[Unfold(type="U")], expected=NO_STREAM)

    (put,) = recorder.ops
    assert isinstance(put, Put)
    assert put.condition == Absent("i")
    assert (put.item["i"], put.item["n"], put.item["a"]) == (number(TIP), number(2), number(2))
    assert set(put.item) == {"p", "i", "n", "a", "etag", "e", "c", "u"}


def test_an_append_is_one_update_of_the_tip_on_its_etag_and_version(recorder: Recorder) -> None:
    etag = holding(recorder, 1)
    streams = recorder.store()
    known = token(streams)
    recorder.ops.clear()

    streams.append(STREAM, [E], expected=known)  # type: ignore[arg-type]

    (update,) = recorder.ops
    assert isinstance(update, Update)
    assert update.key == tip_key(STREAM)
    assert update.condition == on_live_state(etag, 1)
    changed = sets(update)
    assert set(changed) == {"n", "a", "etag", "e", "c"}
    assert (changed["n"], changed["a"]) == ((Set, number(2)), (Set, number(1)))
    assert (changed["e"][0], changed["c"][0]) == (Extend, Extend)  # type: ignore[index]
    assert changed["etag"] != (Set, text(etag))
    assert update.removes == ()


def test_unfolds_alone_append_nothing_to_the_feed(recorder: Recorder) -> None:
    etag = holding(recorder, 1)

    recorder.store().append(STREAM, [], unfolds=[Unfold(type="U")])

    _, update = recorder.ops
    changed = sets(update)
    assert set(changed) == {"n", "a", "etag", "u"}
    assert (changed["n"], changed["a"]) == ((Set, number(1)), (Set, number(0)))
    assert isinstance(update, Update)
    assert update.condition == on_live_state(etag, 1)


def test_two_steps_put_the_calf_if_there_is_none_and_then_update_the_tip_on_its_etag(
    recorder: Recorder,
) -> None:
    etag = holding(recorder, 2)
    carried = recorder.tip()["e"]

    recorder.store().append(STREAM, [E], expected=AtVersion(version=2))

    read, put, update = recorder.ops
    assert isinstance(read, Get)
    assert isinstance(put, Put)
    assert put.condition == Absent("i")
    assert (put.item["i"], put.item["n"], put.item["e"]) == (number(0), number(2), carried)
    assert set(put.item) == {"p", "i", "n", "e", "c"}
    assert isinstance(update, Update)
    assert update.condition == on_live_state(etag, 2)
    changed = sets(update)
    assert set(changed) == {"n", "a", "etag", "e", "c", "b"}
    assert (changed["e"][0], changed["c"][0]) == (Set, Set)  # type: ignore[index]
    assert changed["b"] == (Set, number(sum(map(value_size, carried["L"]))))


def test_at_once_calf_and_tip_are_one_transaction_of_the_same_two_writes(recorder: Recorder) -> None:
    etag = holding(recorder, 2)

    recorder.store(AT_ONCE).append(STREAM, [E], expected=AtVersion(version=2))

    _, transact = recorder.ops
    assert isinstance(transact, Transact)
    put, update = transact.writes
    assert isinstance(put, Put)
    assert isinstance(update, Update)
    assert (put.condition, put.item["i"]) == (Absent("i"), number(0))
    assert update.condition == on_live_state(etag, 2)


def test_the_bytes_of_calved_events_add_up(recorder: Recorder) -> None:
    streams = recorder.store()
    for _ in range(7):
        streams.append(STREAM, [E])

    calved = [item for item in recorder.tables.items(TABLE) if item["i"] != number(TIP)]
    events = [event for calf in calved for event in calf["e"]["L"]]
    assert len(events) == 6
    assert recorder.tip()["b"] == number(sum(map(value_size, events)))


def test_a_prune_is_one_update_on_the_etag_and_then_deletes_what_lies_below_the_mark(
    recorder: Recorder,
) -> None:
    streams = recorder.store()
    for _ in range(6):
        streams.append(STREAM, [E])
    tip = recorder.tip()
    recorder.ops.clear()

    streams.prune(STREAM, 5)

    read, update, query, *deletes = recorder.ops
    assert isinstance(read, Get)
    assert isinstance(query, Query)
    assert isinstance(update, Update)
    assert update.condition == on_state(tip["etag"]["S"], 6)
    changed = sets(update)
    assert (changed["l"], changed["a"]) == ((Set, number(5)), (Set, number(0)))
    assert changed["e"] == (Set, {"L": tip["e"]["L"][1:]})
    below = Compare("n", "<=", number(5))
    assert deletes == [Delete(table=TABLE, key=calf_key(STREAM, base), condition=below) for base in (0, 2)]


def test_a_tip_that_a_prune_empties_loses_its_lists(recorder: Recorder) -> None:
    holding(recorder, 2)

    recorder.store().prune(STREAM, 2)

    assert not {"e", "c"} & set(recorder.tip())


def record_of(op: Op) -> dict[str, object]:
    assert isinstance(op, Put)
    assert op.item["p"]["S"].startswith("$Idempotency-")
    assert len(op.item["p"]["S"]) == len("$Idempotency-") + 32
    assert op.item["i"] == number(0)
    assert op.item["ttl"] == number(1_800_000_000 + 86_400)
    return {name: value for name, value in op.item.items() if name not in {"p", "i", "ttl"}}


@pytest.fixture
def keyed(recorder: Recorder) -> Streams:
    return replace(recorder.store(), now=lambda: 1_800_000_000 * 10**9)


def test_a_key_is_remembered_before_the_append_for_a_day(recorder: Recorder, keyed: Streams) -> None:
    keyed.append(STREAM, [E], idempotency_key="key")

    read, remember, put = recorder.ops
    assert isinstance(read, Get)
    assert record_of(remember) == {"n": number(0)}
    assert isinstance(put, Put)
    assert put.item["i"] == number(TIP)


def test_a_key_where_no_stream_is_expected_is_two_requests(recorder: Recorder, keyed: Streams) -> None:
    keyed.append(STREAM, [E], expected=NO_STREAM, idempotency_key="key")

    remember, _ = recorder.ops
    assert record_of(remember) == {"n": number(0)}


def test_a_key_with_a_token_is_two_requests(recorder: Recorder, keyed: Streams) -> None:
    holding(recorder, 1)
    known = token(keyed)
    recorder.ops.clear()

    keyed.append(STREAM, [E], expected=known, idempotency_key="key")  # type: ignore[arg-type]

    remember, update = recorder.ops
    assert record_of(remember) == {"n": number(1)}
    assert isinstance(update, Update)


def test_the_record_of_a_key_names_its_stream(recorder: Recorder, keyed: Streams) -> None:
    for stream in ("Flight-1", "Flight-2"):
        keyed.append(stream, [E], expected=NO_STREAM, idempotency_key="key")

    one, _, other, _ = recorder.ops
    assert isinstance(one, Put)
    assert isinstance(other, Put)
    assert one.item["p"] != other.item["p"]


def test_unfolds_alone_under_a_key_are_one_transaction_with_its_record(
    recorder: Recorder, keyed: Streams
) -> None:
    etag = holding(recorder, 3)
    known = token(keyed)
    recorder.ops.clear()

    keyed.append(STREAM, [], unfolds=[Unfold(type="U")], expected=known, idempotency_key="key")  # type: ignore[arg-type]

    (transaction,) = recorder.ops
    assert isinstance(transaction, Transact)
    update, remember = transaction.writes
    assert isinstance(update, Update)
    assert update.condition == on_live_state(etag, 3)
    assert isinstance(remember, Put)
    record = record_of(remember)
    assert set(record) == {"n", "k", "etag"}
    assert (record["n"], record["etag"]) == (number(3), text(recorder.tip()["etag"]["S"]))


def test_a_conflict_under_a_new_key_that_names_a_version_looks_at_one_index_only(recorder: Recorder) -> None:
    """However long the stream: where the append would stand, if it had been made before."""
    streams = recorder.store(Fixed(max_events=1, mode="two-step"))
    for _ in range(50):
        streams.append(STREAM, [E])
    recorder.ops.clear()

    streams.try_append(STREAM, [E], expected=AtVersion(version=7), idempotency_key="key")

    _, recall, query = recorder.ops
    assert isinstance(recall, TransactGet)
    assert isinstance(query, Query)
    assert (query.limit, query.forward, query.sort) == (1, False, ("i", number(0), number(7)))
