"""Imports: resumable from anywhere, every event once, entries and heads as appends leave them."""

from __future__ import annotations

import uuid
from dataclasses import replace

import pytest

from epochal.contrib.sekiban.items import TaggedEvent
from epochal.contrib.sekiban.listings import TagListings
from epochal.contrib.sekiban.opening import DcbImporter
from epochal.errors import InvalidInput, TooLarge
from epochal.model.bodies import Claim
from epochal.model.outcomes import Appended, Conflict
from epochal.plan.ops import BatchGet, Op, Transact
from epochal.plan.values import Item
from epochal.store.tagged_importer import Imported, ImportedEvent, imported
from epochal.testing.memory import Fault, Faults
from tests.contrib.sekiban.world import NOW, World, event, query

pytestmark = pytest.mark.usefixtures("one_thread")

TICKS = 630_000_000_000_000_000
"""Sometime in 1997."""


class Killed(Exception):
    """The process ends here."""


def history(count: int, *, tags: int = 3, data: str = "{}", dated: bool = True) -> list[ImportedEvent]:
    """Events a tick apart; each of one of `tags` tags, and of one that all have."""
    return [
        ImportedEvent(
            event=TaggedEvent(
                type=f"T{nth % 2}",
                data=data.encode(),
                tags=("all:1", f"some:{nth % tags}"),
                id=str(uuid.UUID(int=nth + 1)),
                executed_user="ann",
            ),
            timestamp="1997-05-23T21:20:00+00:00",
            place=str(f"{TICKS + nth:019d}{nth:011d}") if dated else None,
        )
        for nth in range(count)
    ]


def stored(world: World) -> list[Item]:
    """Everything, but for what tells how the appends were cut: a head's latest append."""
    items = [*world.tables.items("events"), *world.tables.items("tags")]
    plain = [
        {name: value for name, value in item.items() if not ("n" in item and name in ("a", "c", "ids"))}
        for item in items
    ]
    return sorted(plain, key=lambda item: (item["pk"]["S"], item["sk"]["S"]))


def test_what_is_imported_is_there_as_it_was_elsewhere() -> None:
    elsewhere, world = World(), World()
    for nth in range(70):
        elsewhere.store(NOW - 10**12 + nth).append(
            [event("A", "t:1", f"u:{nth % 3}", data=str(nth)), event("B")]
        )
    exported = list(TagListings(store=elsewhere.store()).all_events())

    report = DcbImporter(store=world.store()).run(map(imported, exported))

    assert report == Imported(read=140, written=140)
    assert stored(world) == stored(elsewhere)
    assert list(TagListings(store=world.store()).all_events()) == exported


def test_batches_are_as_large_as_a_transaction_allows_and_no_larger() -> None:
    world = World()
    sizes = []
    world.before = lambda op: sizes.append(len(op.writes)) if isinstance(op, Transact) else None

    DcbImporter(store=world.store()).run(history(200))

    # An event has itself and two entries; the four heads come once a batch.
    assert sizes == [100, 100, 100, 100, 100, 100, 28]


def test_batches_of_large_events_stay_within_4_mb() -> None:
    world = World()
    transactions = []
    world.before = lambda op: transactions.append(op) if isinstance(op, Transact) else None

    report = DcbImporter(store=world.store()).run(history(25, data='"' + "x" * 390_000 + '"'))

    assert report.written == 25
    assert len(transactions) == 3


def test_sizes_are_reckoned_with_the_entries_and_heads_of_long_tags() -> None:
    """Eleven of these events are less than 4 MB; with their entries and heads they are more."""
    events = [
        replace(
            each,
            event=replace(each.event, tags=tuple(f"{nth}:{place}".ljust(512, "x") for place in range(4))),
        )
        for nth, each in enumerate(history(25, data='"' + "x" * 375_000 + '"'))
    ]

    assert DcbImporter(store=World().store()).run(events).written == 25


def test_an_import_moves_type_heads_where_they_are_on() -> None:
    world = World(type_heads=True)
    sizes = []
    world.before = lambda op: sizes.append(len(op.writes)) if isinstance(op, Transact) else None

    DcbImporter(store=world.store()).run(history(60))

    assert max(sizes) <= 100
    assert len(world.store().read(query(("T0", ""))).events) == 30
    assert len(world.store().read(query(("", ""))).events) == 60


def test_the_heads_of_an_import_fence_conditions_as_those_of_appends_do() -> None:
    world = World()
    DcbImporter(store=world.store()).run(history(90))
    asked = query(("", "some:1"))
    seen = world.store().read(asked)
    assert len(seen.events) == 30

    DcbImporter(store=world.store()).run(history(91)[90:])
    unmoved = world.store().try_append([event("A", "other")], fail_if=asked, after=seen.position)
    DcbImporter(store=world.store()).run(history(92)[91:])
    moved = world.store().try_append([event("A", "other")], fail_if=asked, after=seen.position)

    assert isinstance(unmoved, Appended)
    assert isinstance(moved, Conflict)
    assert [found.id for found in moved.events] == [history(92)[91].event.id]


def test_a_second_run_writes_nothing_and_one_from_a_report_does_not_even_ask() -> None:
    world = World()
    first = DcbImporter(store=world.store()).run(history(100))
    before = stored(world)
    requests = world.meter.requests

    again = DcbImporter(store=world.store()).run(history(100))
    assert again == Imported(read=100, found=100)
    assert world.meter.requests - requests == 4

    assert DcbImporter(store=world.store()).run(history(100), after=first) == first
    assert world.meter.requests - requests == 4
    assert stored(world) == before


@pytest.mark.slow
def test_an_import_killed_at_any_request_goes_on_from_the_start_or_from_its_last_report() -> None:
    whole = World()
    requests: list[Op] = []
    whole.before = requests.append
    DcbImporter(store=whole.store()).run(history(80))
    expected = stored(whole)

    for number in range(len(requests)):
        for applied in (False, True):
            for from_report in (False, True):
                world = World()
                heard = [Imported()]
                _kill(world, number, applied=applied)
                with pytest.raises(Killed):
                    DcbImporter(store=world.store()).run(history(80), progress=heard.append)
                world.before = world.after = lambda _: None

                report = DcbImporter(store=world.store()).run(
                    history(80), after=heard[-1] if from_report else None
                )

                assert stored(world) == expected
                assert (report.read, report.written + report.found) == (80, 80)


def _kill(world: World, number: int, *, applied: bool) -> None:
    """End the process at request `number`, before it is made or when it has been."""
    made = iter(range(1_000))

    def end(_: Op) -> None:
        if next(made) == number:
            raise Killed

    if applied:
        world.after = end
    else:
        world.before = end


@pytest.mark.slow
@pytest.mark.parametrize("fault", Fault)
def test_a_request_that_fails_is_repeated_and_no_event_written_twice(fault: Fault) -> None:
    whole = World()
    DcbImporter(store=whole.store()).run(history(60))
    requests = whole.meter.requests

    for number in range(requests):
        world = World()
        faulty = Faults(world.tables.execute, {number: fault})
        store = world.store()
        store = replace(store, driver=replace(store.driver, execute=faulty.execute))

        assert DcbImporter(store=store).run(history(60)).read == 60
        assert stored(world) == stored(whole)


def test_it_runs_beside_appends_to_the_same_tags() -> None:
    world, other = World(), World()
    other.tables = world.tables
    turns = iter(range(1_000))

    def interfere(op: Op) -> None:
        if isinstance(op, Transact) and next(turns) % 2 == 0:
            other.store().append([event("Live", "all:1")])

    world.before = interfere
    report = DcbImporter(store=world.store()).run(history(90))

    assert report.written == 90
    # Live events are of today: what is older than the last of its tags gets the id that follows.
    assert report.renumbered == 90
    found = list(TagListings(store=world.store()).tagged("all:1"))
    assert len(found) == len({each.id for each in found}) > 90
    assert [each.id for each in found if each.type != "Live"] == [each.event.id for each in history(90)]
    assert {each.timestamp for each in found if each.type != "Live"} == {"1997-05-23T21:20:00+00:00"}


def test_an_unordered_history_is_imported_in_its_own_order_and_the_report_says_so() -> None:
    world = World()
    backwards = history(10, tags=1)[::-1]

    report = DcbImporter(store=world.store()).run(backwards)

    assert report.renumbered == 9
    assert [each.id for each in TagListings(store=world.store()).tagged("all:1")] == [
        each.event.id for each in backwards
    ]


def test_events_without_sortable_ids_get_the_same_at_every_run() -> None:
    one, two = World(), World()
    for world in (one, two):
        DcbImporter(store=world.store()).run(history(20, dated=False))

    assert stored(one) == stored(two)


def test_an_id_that_stands_twice_in_a_history_is_imported_once() -> None:
    world = World()
    once = history(5)

    report = DcbImporter(store=world.store()).run([*once, once[4], once[0]])

    assert report == Imported(read=7, written=5, found=2)


def test_an_id_with_other_contents_is_refused_by_its_place_and_its_batch_not_written() -> None:
    world = World()
    changed = history(80)
    DcbImporter(store=world.store()).run(changed[:70])
    changed[60] = replace(changed[60], event=replace(changed[60].event, data=b'"other"'))

    with pytest.raises(InvalidInput, match=r"history\[60\].*belongs to another event"):
        DcbImporter(store=world.store()).run(changed)

    assert sum(1 for _ in world.tables.items("events")) == 70


@pytest.mark.parametrize(
    ("broken", "named"),
    [
        ({"event": replace(history(1)[0].event, id=None)}, "id"),
        ({"event": replace(history(1)[0].event, id="x")}, "id"),
        ({"event": replace(history(1)[0].event, data=Claim(key="k", sha256="0" * 64, size=1))}, "data"),
        ({"event": replace(history(1)[0].event, tags=("$all",))}, "tags"),
        ({"timestamp": "yesterday"}, "timestamp"),
        ({"place": "1"}, "place"),
        ({"place": "9" * 30}, "place.*future"),
    ],
    ids=[
        "no id",
        "no UUID",
        "a claim",
        "a reserved tag",
        "no time",
        "a short place",
        "a place from the future",
    ],
)
def test_a_malformed_event_is_named_by_its_place(broken: dict[str, object], named: str) -> None:
    world = World()
    events = history(3)
    events[2] = replace(events[2], **broken)  # type: ignore[arg-type]

    with pytest.raises(InvalidInput, match=rf"history\[2\]\.{named}"):
        DcbImporter(store=world.store()).run(events)

    assert list(world.tables.items("events")) == []


def test_an_event_that_no_transaction_holds_ends_the_import_after_what_precedes_it() -> None:
    world = World()
    events = history(4)
    tags = tuple(f"many:{nth}" for nth in range(60))
    events[2] = replace(events[2], event=replace(events[2].event, tags=tags))

    with pytest.raises(TooLarge, match="transaction: 121 items"):
        DcbImporter(store=world.store()).run(events)

    assert sum(1 for _ in world.tables.items("events")) == 2


def test_an_import_asks_for_its_events_in_one_request_a_batch() -> None:
    world = World()
    asked: list[BatchGet] = []
    world.before = lambda op: asked.append(op) if isinstance(op, BatchGet) and op.table == "events" else None

    DcbImporter(store=world.store()).run(history(64))

    assert [len(op.keys) for op in asked] == [32, 32]
