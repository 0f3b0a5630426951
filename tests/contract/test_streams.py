"""Streams in each layout on each store: the whole life of one, and what each call costs in requests."""

from __future__ import annotations

import random

import pytest

from epochal.errors import InvalidInput
from epochal.layout.streams import AnyStreamLayout
from epochal.model.events import Event, Unfold
from epochal.model.expected_version import ANY, NO_STREAM, STREAM_EXISTS, AtVersion
from epochal.model.outcomes import Appended, Conflict
from epochal.model.tokens import Token, parse_token
from epochal.store.driver import Driver, Meter
from epochal.store.reading import Pruned
from epochal.store.streams import Streams
from tests.contract.places import Place
from tests.support.stream_layouts import LAYOUTS, WAYS


@pytest.fixture
def name(place: Place) -> str:
    return place.partition


@pytest.fixture(params=LAYOUTS.values(), ids=LAYOUTS)
def streams(place: Place, request: pytest.FixtureRequest) -> Streams:
    return over(place, request.param)


def over(place: Place, layout: AnyStreamLayout) -> Streams:
    driver = Driver(execute=place.execute, meter=Meter())
    return Streams(driver=driver, table=place.table, layout=layout)


def numbered(first: int, count: int = 1, size: int = 20) -> list[Event]:
    dice = random.Random(first)
    return [Event(type=f"E{first + k}", data=dice.randbytes(size)) for k in range(count)]


def appended(outcome: object) -> Appended:
    assert isinstance(outcome, Appended)
    return outcome


in_every_way = pytest.mark.parametrize("layout", WAYS.values(), ids=WAYS)


@in_every_way
def test_a_stream_replays_completely_both_ways_from_every_index(
    place: Place, layout: AnyStreamLayout
) -> None:
    store, name, expected = over(place, layout), place.partition, NO_STREAM
    written: list[Event] = []
    for batch in (1, 3, 2, 1, 1, 4, 1):
        events = numbered(len(written), batch, size=300)
        expected = appended(store.append(name, events, expected=expected)).token
        written += events

    stored = list(store.read(name))
    assert [(event.index, event.type, event.data) for event in stored] == [
        (index, event.type, event.data) for index, event in enumerate(written)
    ]
    for start in range(len(written) + 2):
        assert list(store.read(name, start=start)) == stored[start:]
        assert list(store.read(name, start=start, direction="backward")) == stored[: start + 1][::-1]
        assert list(store.read(name, start=start, limit=3)) == stored[start : start + 3]


def test_every_field_of_an_event_comes_back(streams: Streams, name: str) -> None:
    event = Event(
        type="Größe",
        data=b"\x00\xff not json",
        meta=b'{"user":"\xc3\xbc"}' * 20,
        timestamp="2013-01-01T05:15:00.1234567-05:00",
        correlation_id="c" * 1024,
        causation_id="ü",
    )
    streams.append(name, [event, Event(type="Bare")])

    full, bare = streams.read(name)

    assert (full.type, full.data, full.meta) == (event.type, event.data, event.meta)
    assert full.timestamp == "2013-01-01T10:15:00.1234567+00:00"
    assert (full.correlation_id, full.causation_id) == (event.correlation_id, event.causation_id)
    assert (bare.data, bare.meta, bare.correlation_id, bare.causation_id) == (b"", b"", None, None)
    assert full.append_id is not None
    assert bare.append_id is None


def test_a_token_makes_the_next_append_one_request_and_survives_as_text(streams: Streams, name: str) -> None:
    token: Token = appended(streams.append(name, numbered(0))).token

    for index in range(1, 4):
        before = streams.driver.meter.requests
        outcome = appended(streams.append(name, numbered(index), expected=parse_token(token.text())))
        assert streams.driver.meter.requests == before + 1
        assert (outcome.first, outcome.version) == (index, index + 1)
        token = outcome.token


def test_a_loaded_token_is_as_good_as_an_appended_one(streams: Streams, name: str) -> None:
    token = appended(streams.append(name, numbered(0, 3), unfolds=[Unfold(type="S", data=b"1")])).token

    state = streams.load(name)

    assert state is not None
    assert state.token == token
    assert isinstance(streams.try_append(name, numbered(3), expected=state.token), Appended)


def test_state_with_a_snapshot_is_one_request_of_one_item(streams: Streams, name: str) -> None:
    streams.append(name, numbered(0, 2), unfolds=[Unfold(type="Snapshot", data=b"{}" * 30, meta=b"m")])
    before = streams.driver.meter.requests

    state = streams.load(name)

    assert streams.driver.meter.requests == before + 1
    assert state is not None
    (unfold,) = state.unfolds
    assert (unfold.version, unfold.type, unfold.data, unfold.meta) == (2, "Snapshot", b"{}" * 30, b"m")


@pytest.mark.parametrize("kind", ["token", "version", "no stream"])
def test_a_conflict_costs_no_extra_read_and_brings_the_token_to_go_on_with(
    streams: Streams, name: str, kind: str
) -> None:
    token = appended(streams.append(name, numbered(0))).token
    newest = appended(streams.append(name, numbered(1))).token
    expected = {"token": token, "version": AtVersion(version=1), "no stream": NO_STREAM}[kind]
    before = streams.driver.meter.requests

    refused = streams.try_append(name, numbered(1), expected=expected)

    assert streams.driver.meter.requests == before + 1
    assert isinstance(refused, Conflict)
    assert (refused.version, refused.token, refused.deleted) == (2, newest, False)
    assert isinstance(streams.try_append(name, numbered(2), expected=refused.token), Appended)


def test_unfolds_are_kept_replaced_or_removed_as_asked(streams: Streams, name: str) -> None:
    def unfolds() -> list[tuple[int, str]]:
        state = streams.load(name)
        assert state is not None
        return [(unfold.version, unfold.type) for unfold in state.unfolds]

    streams.append(name, numbered(0), unfolds=[Unfold(type="A"), Unfold(type="B")])
    assert unfolds() == [(1, "A"), (1, "B")]
    streams.append(name, numbered(1))
    assert unfolds() == [(1, "A"), (1, "B")]
    streams.append(name, numbered(2), unfolds=[Unfold(type="C")])
    assert unfolds() == [(3, "C")]
    streams.append(name, [], unfolds=[Unfold(type="D")])
    assert unfolds() == [(3, "D")]
    streams.append(name, numbered(3), unfolds=[])
    assert unfolds() == []


def test_unfolds_alone_may_begin_a_stream_whose_first_event_still_gets_index_0(
    streams: Streams, name: str
) -> None:
    only = appended(streams.append(name, [], unfolds=[Unfold(type="S")], expected=NO_STREAM))
    assert (only.first, only.version) == (0, 0)

    first = appended(streams.append(name, numbered(0), expected=AtVersion(version=0)))

    assert (first.first, first.version) == (0, 1)


def test_a_stream_of_unfolds_alone_exists_so_that_two_who_begin_it_do_not_both_succeed(
    streams: Streams, name: str
) -> None:
    assert isinstance(
        streams.try_append(name, [], unfolds=[Unfold(type="S")], expected=STREAM_EXISTS), Conflict
    )
    appended(streams.append(name, [], unfolds=[Unfold(type="S")], expected=NO_STREAM))

    assert isinstance(streams.try_append(name, [], unfolds=[Unfold(type="T")], expected=NO_STREAM), Conflict)
    appended(streams.append(name, [], unfolds=[Unfold(type="T")], expected=STREAM_EXISTS))


def test_a_written_unfold_makes_an_older_token_a_conflict_but_not_an_older_version(
    streams: Streams, name: str
) -> None:
    token = appended(streams.append(name, numbered(0))).token
    streams.append(name, [], unfolds=[Unfold(type="S")])

    assert isinstance(streams.try_append(name, numbered(1), expected=token), Conflict)
    assert isinstance(streams.try_append(name, numbered(1), expected=AtVersion(version=1)), Appended)


@in_every_way
def test_pruning_makes_events_gone_whatever_items_they_are_in(place: Place, layout: AnyStreamLayout) -> None:
    store, name = over(place, layout), place.partition
    for index in range(7):
        store.append(name, numbered(index))
    stored = list(store.read(name))

    for before in (1, 2, 3, 6, 7):
        pruned = store.prune(name, before)
        assert isinstance(pruned, Pruned)
        assert (pruned.low_water, pruned.done) == (before, True)
        assert list(store.read(name)) == stored[before:]
        assert list(store.read(name, direction="backward")) == stored[before:][::-1]
        page = store.page(name, start=0)
        assert (page.low_water, page.version, page.exists) == (before, 7, True)
    assert appended(store.append(name, numbered(7))).first == 7


def test_the_token_of_a_tombstone_appends_nothing(streams: Streams, name: str) -> None:
    streams.append(name, numbered(0, 3))
    streams.delete(name)
    state = streams.load(name)
    assert state is not None

    refused = streams.try_append(name, numbered(3), expected=state.token)

    assert isinstance(refused, Conflict)
    assert (refused.version, refused.deleted) == (3, True)
    assert list(streams.read(name)) == []


def test_a_deleted_stream_keeps_its_tombstone(streams: Streams, name: str) -> None:
    streams.append(name, numbered(0, 3))

    gone = streams.try_delete(name)
    assert isinstance(gone, Pruned)
    assert (gone.low_water, gone.done) == (3, True)

    refused = streams.try_append(name, numbered(3))
    assert isinstance(refused, Conflict)
    assert (refused.version, refused.deleted) == (3, True)
    assert list(streams.read(name)) == []
    page = streams.page(name)
    assert (page.events, page.exists, page.deleted, page.version) == ((), True, True, 3)


def test_a_key_used_again_is_answered_like_the_first_time(streams: Streams, name: str) -> None:
    first = appended(streams.append(name, numbered(0), idempotency_key="a key"))
    streams.append(name, numbered(1))

    again = appended(streams.append(name, numbered(0), idempotency_key="a key"))

    assert (again.first, again.version, again.replayed) == (first.first, first.version, True)
    assert len(list(streams.read(name))) == 2


def test_a_key_is_one_append_whatever_is_expected_later(streams: Streams, name: str) -> None:
    begun = appended(streams.append(name, numbered(0), expected=NO_STREAM))
    first = appended(streams.append(name, numbered(1), expected=begun.token, idempotency_key="k"))
    reloaded = streams.load(name)
    assert reloaded is not None

    for expected in (reloaded.token, NO_STREAM, AtVersion(version=2), ANY, begun.token):
        again = appended(streams.append(name, numbered(1), expected=expected, idempotency_key="k"))
        assert (again.first, again.token.etag, again.replayed) == (1, first.token.etag, True)
    assert len(list(streams.read(name))) == 2


def test_a_bound_that_is_too_high_is_lowered(streams: Streams, name: str) -> None:
    streams.append(name, numbered(0))
    ahead = Token(version=7, etag="0" * 32)
    assert isinstance(streams.try_append(name, numbered(1), expected=ahead, idempotency_key="k"), Conflict)

    for replayed in (False, True):
        answer = appended(streams.append(name, numbered(1), idempotency_key="k"))
        assert (answer.first, answer.replayed) == (1, replayed)


def test_unfolds_alone_under_a_key_are_written_once(streams: Streams, name: str) -> None:
    state, newer = Unfold(type="State", data=b"1"), Unfold(type="State", data=b"2")
    begun = appended(streams.append(name, numbered(0)))
    first = appended(streams.append(name, [], unfolds=[state], expected=begun.token, idempotency_key="k"))
    streams.append(name, [], unfolds=[newer], expected=first.token)

    again = appended(streams.append(name, [], unfolds=[state], idempotency_key="k"))
    assert (again.version, again.token.etag, again.replayed) == (1, first.token.etag, True)
    with pytest.raises(InvalidInput, match="idempotency_key"):
        streams.append(name, [], unfolds=[newer], idempotency_key="k")
    with pytest.raises(InvalidInput, match="idempotency_key"):
        streams.append(name, numbered(1), idempotency_key="k")
    left = streams.load(name)
    assert left is not None
    assert [unfold.data for unfold in left.unfolds] == [b"2"]


def test_events_that_hardly_fit_an_item_follow_each_other(streams: Streams, name: str) -> None:
    token: Token | None = None
    for index in range(5):
        outcome = appended(streams.append(name, numbered(index, size=150_000), expected=token or NO_STREAM))
        token = outcome.token

    assert [len(event.data) for event in streams.read(name)] == [150_000] * 5


@pytest.mark.ddbl
@pytest.mark.parametrize(
    "layout",
    [pytest.param(LAYOUTS["tips"], marks=pytest.mark.proof), LAYOUTS["pages"]],
    ids=["tips", "pages"],
)
def test_ten_thousand_events_and_megabytes_of_items_replay_completely_both_ways(
    on_ddbl: Place, layout: AnyStreamLayout
) -> None:
    store, name = over(on_ddbl, layout), on_ddbl.partition
    for first in range(0, 10_500, 500):
        store.append(name, numbered(first, 500, size=200))

    forward = list(store.read(name))

    assert [(event.index, event.type) for event in forward] == [
        (index, f"E{index}") for index in range(10_500)
    ]
    assert sum(len(event.data) for event in forward) > 2 * 1024 * 1024
    assert list(store.read(name, direction="backward")) == forward[::-1]
