"""Writers, follower and verification, together on a store in memory."""

from __future__ import annotations

import io
import re
from collections.abc import Iterable
from dataclasses import replace
from functools import cache
from itertools import islice
from typing import TYPE_CHECKING, Any

import pytest
from rich.console import Console

from epochal.codec import json
from epochal.codec.bodies import Encoded, decode, encode
from epochal.layout.tables import INDEX
from epochal.model.events import Event, Unfold
from epochal.plan.ops import Put
from examples.flights.aircraft import INITIAL, Aircraft, fold
from examples.flights.dataset import days, zones
from examples.flights.display import Display, figures
from examples.flights.following import FeedStalled, Lag
from examples.flights.happenings import Batch, by_day, by_moment, in_order
from examples.flights.ledger import Ledger
from examples.flights.options import BadOption, Options
from examples.flights.steps import Sending, send, verify
from examples.flights.stores import Conflict, Item, Page, Standing, Store, Written
from examples.flights.writers import Writer, write_all

if TYPE_CHECKING:
    from tests.examples.conftest import World


@cache
def flights(count: int = 300) -> list[Batch]:
    """The first appends of the year."""
    return [batch for batch, _ in zip(by_moment(in_order(days(1), zones())), range(count), strict=False)]


def _send(store: Store, batches: Iterable[Batch]) -> Sending:
    return send(store, batches, sent=lambda _: None, arrived=lambda _: None)


def _writer(store: Store) -> Writer:
    return Writer(store=store, ledger=Ledger(), acknowledged=lambda *_: None)


@pytest.mark.slow
def test_what_was_sent_comes_out_of_the_feed(world: World) -> None:
    sending, events = _send(world.store, flights()), sum(len(each.events) for each in flights())
    verdict = verify(world.store, sending.ledger, seen=lambda _: None)
    assert (verdict.seen, verdict.differences) == (events, 0)
    assert sending.ledger.events == sending.tally.events == sending.lag.arrived == events > 300


@pytest.mark.slow
def test_days_sent_as_one_append_an_aircraft_come_out_the_same(world: World) -> None:
    sending = _send(world.store, islice(by_day(in_order(days(1), zones())), 50))
    assert verify(world.store, sending.ledger, seen=lambda _: None).differences == 0


@pytest.mark.slow
def test_an_entry_removed_from_the_index_is_missed(world: World) -> None:
    sending = _send(world.store, flights())
    lost = _forget_a_span(world)
    verdict = verify(world.store, sending.ledger, seen=lambda _: None)
    assert {(each.stream, each.index) for each in verdict.first} >= {(lost["p"], lost["i"])}
    assert verdict.differences >= len(lost["c"])


@pytest.mark.slow
def test_the_snapshot_beside_an_aircrafts_events_is_the_state_they_lead_to(world: World) -> None:
    sending = _send(world.store, flights())
    history: dict[str, tuple[Event, ...]] = {}
    for batch in flights():
        history[batch.stream] = history.get(batch.stream, ()) + batch.events
    for stream in list(sending.ledger.streams)[::10]:
        standing = world.store.load(stream)
        assert standing is not None
        expected = fold(INITIAL, history[stream]) if stream.startswith("Aircraft-") else None
        assert standing.state == expected


def test_an_append_after_the_first_is_one_request_on_the_token_of_the_answer_before() -> None:
    store = Scripted([_written("t1"), _written("t2")])
    writer = _writer(store)
    writer.write(_batch("Aircraft-A"))
    writer.write(_batch("Aircraft-A"))
    assert store.calls == [("append", "Aircraft-A", None), ("append", "Aircraft-A", "t1")]


def test_a_writer_that_meets_a_conflict_goes_on_from_the_state_that_stands_there() -> None:
    theirs = Aircraft(airport="LAX", flights=7, minutes=70, delay=0)
    store = Scripted([Conflict(), _written("t9")], standing=Standing(state=theirs, token="t8"))
    writer = _writer(store)
    writer.write(_batch("Aircraft-A", "FlightDeparted"))
    assert store.calls == [
        ("append", "Aircraft-A", None),
        ("load", "Aircraft-A", None),
        ("append", "Aircraft-A", "t8"),
    ]
    assert store.snapshots[-1] == replace(theirs, airport=None, flights=8).snapshot()
    assert writer.tally.conflicts == 1
    assert writer.ledger.events == 1


def test_streams_of_carriers_have_no_snapshot() -> None:
    store = Scripted([_written("t1")])
    _writer(store).write(_batch("Unassigned-UA"))
    assert store.snapshots == [None]


def test_one_writers_error_ends_all_and_is_raised() -> None:
    class Broken(Scripted):
        def append(self, batch: Batch, snapshot: Unfold | None, token: str | None) -> Written | Conflict:
            if batch.stream == "Aircraft-13":
                raise ConnectionError("gone")
            return super().append(batch, snapshot, token)

    store = Broken([_written("t")] * 10_000)
    with pytest.raises(ConnectionError, match="gone"):
        write_all([_writer(store) for _ in range(4)], (_batch(f"Aircraft-{n % 200}") for n in range(10_000)))
    assert len(store.calls) < 10_000


def test_a_stop_from_the_keyboard_ends_the_writers() -> None:
    def batches() -> Iterable[Batch]:
        yield _batch("Aircraft-A")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_all([_writer(Scripted([_written("t")]))], batches())


@pytest.mark.slow
def test_a_feed_that_stays_behind_is_reported(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("examples.flights.steps.INDEX_PATIENCE", 0.5)
    stuck = StuckFeed(world.store)
    with pytest.raises(FeedStalled, match="0 of 10 events are in the feed"):
        _send(stuck, [_batch(f"Aircraft-{n}") for n in range(10)])


def test_lag_runs_from_acknowledgement_to_arrival_and_is_none_where_the_feed_was_first() -> None:
    now = iter([10.0, 12.5, 20.0, 21.0])
    lag = Lag(clock=lambda: next(now))
    lag.acknowledged("A", 0, 2)
    lag.arrive([_item("A", 0), _item("A", 1)])
    assert lag.longest == 2.5
    lag.arrive([_item("B", 0)])
    lag.acknowledged("B", 0, 1)
    assert (lag.arrived, lag.longest, lag.typical) == (3, 2.5, 1.25)


@pytest.mark.slow
def test_the_summary_has_every_figure(world: World) -> None:
    sending = _send(world.store, flights(100))
    shown = dict(figures(sending, verify(world.store, sending.ledger, seen=lambda _: None)))
    assert list(shown) == [
        "events in",
        "throughput",
        "write units",
        "conflicts",
        "indexing lag",
        "partition 0",
        "feed read back",
    ]
    assert shown["partition 0"].startswith("1 epoch, read to checkpoint 0@")


@pytest.mark.parametrize("days_", ["0", "366", "-1", "two", "1.5", "²"])
def test_days_outside_the_year_are_refused(days_: str) -> None:
    with pytest.raises(BadOption, match="DAYS must be a whole number from 1 to 365"):
        Options.from_environment({"DAYS": days_})


def test_a_way_that_does_not_exist_is_refused() -> None:
    with pytest.raises(BadOption, match="VIA must be http or library, not 'ftp'"):
        Options.from_environment({"VIA": "ftp"})


def test_a_day_over_http_is_the_default_also_where_make_hands_on_empty_values() -> None:
    assert Options.from_environment({"DAYS": "", "VIA": "", "KEEP": ""}) == Options(
        days=1, via="http", keep=False
    )


def test_a_deployment_is_kept_where_that_is_asked_for_and_there_is_one() -> None:
    assert Options.from_environment({"KEEP": "1"}).keep
    with pytest.raises(BadOption, match="KEEP must be 1 or 0, not 'yes'"):
        Options.from_environment({"KEEP": "yes"})
    with pytest.raises(BadOption, match="VIA=library makes none"):
        Options.from_environment({"KEEP": "1", "VIA": "library"})


def test_a_long_step_says_without_a_terminal_how_far_it_is_and_how_long_it_takes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("examples.flights.display.QUIET_SECONDS", -1.0)
    shown = io.StringIO()
    with Display(Console(file=shown, width=120)).step("writing", "written") as bars:
        bar = bars.bar("flights", 400)
        bar(2)
        bar(100)
    assert "flights 2 of 400\n" in shown.getvalue()
    assert re.search(r"flights 100 of 400, some \d+ s left", shown.getvalue())


@pytest.mark.parametrize("console", [None, "http://epochal:k@127.0.0.1:1/"])
def test_three_commands_to_try_next_are_shown_and_the_console_where_it_stays(console: str | None) -> None:
    shown = io.StringIO()
    Display(Console(file=shown, width=120)).next_steps(console, "Aircraft-N1", "2013-01-01/B61103/JFK")
    lines = shown.getvalue().splitlines()
    commands = [line for line in lines if line.startswith(("  make ", "  .venv/bin/epochal "))]
    assert len(commands) == 3 + (console is not None)  # the fourth says how it ends
    assert (console is not None) == ("epochal local down" in shown.getvalue())
    assert console is None or console in shown.getvalue()


class Scripted:
    """A store whose answers are written down; remembers what it was asked."""

    def __init__(self, answers: list[Written | Conflict], standing: Standing | None = None) -> None:
        self._answers = answers
        self._standing = standing
        self.calls: list[tuple[str, str, str | None]] = []
        self.snapshots: list[Unfold | None] = []

    def append(self, batch: Batch, snapshot: Unfold | None, token: str | None) -> Written | Conflict:
        self.calls.append(("append", batch.stream, token))
        self.snapshots.append(snapshot)
        return self._answers.pop(0)

    def load(self, stream: str) -> Standing | None:
        self.calls.append(("load", stream, None))
        return self._standing

    def tails(self) -> dict[int, str]:
        return {}

    def page(self, partition: int, start: str, *, data: bool, wait: int = 0) -> Page:  # noqa: ARG002  a Store's
        return Page(items=(), next=start, at_tail=True)


class StuckFeed(Scripted):
    """A store that takes every append, and whose feed stays empty."""

    def __init__(self, store: Store) -> None:
        super().__init__([])
        self._store = store

    def append(self, batch: Batch, snapshot: Unfold | None, token: str | None) -> Written | Conflict:
        return self._store.append(batch, snapshot, token)


def _batch(stream: str, kind: str = "FlightScheduled") -> Batch:
    return Batch(stream=stream, events=(Event(type=kind, data=b"{}"),))


def _written(token: str) -> Written:
    return Written(version=1, token=token, units=1.0)


def _item(stream: str, index: int) -> Item:
    return Item(stream=stream, index=index, type="FlightScheduled", body=None)


def _forget_a_span(world: World) -> dict[str, Any]:
    """Take the first span of the first entry of the index out, as if it had never been written."""
    for item in world.tables.items(INDEX.kind):
        if not item["p"]["S"].startswith("$AppendsEpoch-"):
            continue
        event = item["e"]["L"][0]["M"]
        entry = json.loads(_body(event))
        lost: dict[str, Any] = entry["add"].pop(0)
        packed = encode(json.dumps(entry))
        fields = {**event, "d": {"B": packed.data}, "D": {"N": str(packed.encoding)}}
        changed = {**item, "e": {"L": [{"M": fields}, *item["e"]["L"][1:]]}}
        world.tables.execute(Put(table=INDEX.kind, item=changed, condition=None))
        return lost
    raise AssertionError("nothing was indexed")


def _body(event: dict[str, dict[str, object]]) -> bytes:
    body = decode(Encoded(int(str(event.get("D", {}).get("N", 0))), event["d"]["B"]))  # type: ignore[arg-type]
    assert isinstance(body, bytes)
    return body
