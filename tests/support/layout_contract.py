"""What every layout has to keep so that it can be indexed, read, reacted to and verified: one suite for all of them.

A test module derives a class from `LayoutContract` and says how its layout is written. Everything else goes through the
port, the registry and the feed, so that a layout which passes is one that the rest of the house can live with.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import inf

import pytest

from epochal.care.auditor import Audit, Auditor
from epochal.care.mender import Mender
from epochal.care.verify import Verifier
from epochal.dynamo.table_kinds import kind_of
from epochal.errors import CorruptData
from epochal.feed.events import FeedEvent
from epochal.feed.indexer import Indexer, Report, sources_of
from epochal.feed.reader import reader_of
from epochal.feed.stream_records import Record
from epochal.layout.changes import Removal
from epochal.layout.healing import Gap
from epochal.layout.port import Port
from epochal.layout.registry import layouts_in
from epochal.layout.source import Source
from epochal.layout.tables import INDEX
from epochal.plan.effects import holds
from epochal.plan.ops import Execute, Op, Reply, Scan
from epochal.plan.values import Item
from epochal.reactions.definition import Delivery, Reaction
from epochal.reactions.group_member import Member
from epochal.reactions.reactor import Reactor
from epochal.settings import Settings
from epochal.store.driver import Driver, Meter
from epochal.store.encoding import BodyCodec
from epochal.testing.memory import Fault, Faults, MemoryTables
from tests.support.permissions import Allowed, actions, allowed


@dataclass(frozen=True, slots=True, kw_only=True)
class Writer:
    """Writes streams of one layout.

    Attributes:
        settings: that name the layout's tables by their kinds, and no other's.
        streams: two names.
        foreign: items in the table of heads that are no heads of this feed.
        malformed: a head of a third stream that cannot be read.
        append: events of these types to a stream, whatever it has.
        prune: makes the events below an index gone; None where the layout has no way to.
        end: ends a stream for good; None where the layout has no way to.
        empty: deletes a stream that goes on; None where the layout has no way to.
    """

    settings: Settings
    streams: tuple[str, str]
    foreign: tuple[Item, ...]
    malformed: Item
    append: Callable[[Driver, str, tuple[str, ...]], object]
    prune: Callable[[Driver, str, int], object] | None = None
    end: Callable[[Driver, str], object] | None = None
    empty: Callable[[Driver, str], object] | None = None


@dataclass
class World:
    """A deployment with one layout."""

    writer: Writer
    seen: int = 0
    delivered: list[tuple[str, int]] = field(default_factory=list)
    used: Allowed = field(default_factory=set)

    @cached_property
    def tables(self) -> MemoryTables:
        return MemoryTables({spec.kind: spec for spec in (INDEX, *self.port.tables)})

    def driver(self, execute: Execute | None = None) -> Driver:
        return Driver(execute=execute or self._noted, meter=Meter(), sleep=lambda _: None)

    def _noted(self, op: Op) -> Reply:
        self.used |= actions(op)
        return self.tables.execute(op)

    @property
    def port(self) -> Port:
        (layout,) = layouts_in(self.writer.settings)
        return layout.port

    @property
    def source(self) -> Source:
        (source,) = sources_of(self.writer.settings)
        return source

    @cached_property
    def indexer(self) -> Indexer:
        indexer = Indexer(driver=self.driver(), index_table=INDEX.kind, sources=(self.source,))
        indexer.register()
        return indexer

    def append(self, stream: str, *types: str) -> None:
        self.writer.append(self.driver(), stream, types)

    def images(self) -> tuple[Item, ...]:
        """Images in the stream of the table of heads since the previous call."""
        changes = self.tables.changes(self.source.table)
        fresh, self.seen = changes[self.seen :], len(changes)
        return fresh

    def index(self, images: tuple[Item, ...] | None = None) -> Report:
        """Index these images, or the new ones, as a deployed function does."""
        images = self.images() if images is None else images
        met = [image for image in images if wakes(self.source, image)]
        return self.indexer.index(
            Record(table=self.source.table, sequence_number=str(number), image=image)
            for number, image in enumerate(met)
        )

    def fed(self) -> dict[str, list[tuple[int, str]]]:
        """The feed as index and type of events, by stream."""
        found: dict[str, list[tuple[int, str]]] = {}
        reader = reader_of(self.settings, self.driver(), BodyCodec())
        for page in reader.read(self.source.base):
            for item in page.items:
                found.setdefault(item.stream, []).append((item.index, item.type))
        return found

    def parts(self, stream: str) -> list[int | Removal]:
        """Return a stream's part of the feed: indices of events, and removals."""
        reader = reader_of(self.settings, self.driver(), BodyCodec())
        items = [item for page in reader.read(self.source.base, removals=True) for item in page.items]
        return [item.removal or item.index for item in items if item.stream == stream]

    def audit(self) -> Audit:
        """Run the auditor on everything."""
        mender = Mender(driver=self.driver(), index_table=INDEX.kind)
        return Auditor(mender=mender, sources=(self.source,), settle=0).audit(inf)

    def events(self) -> Iterator[FeedEvent]:
        reader = reader_of(self.settings, self.driver(), BodyCodec())
        for page in reader.read(self.source.base, data=True, strict=True):
            yield from (item.event for item in page.items if item.event is not None)

    def react(self) -> None:
        """Run a reaction to the end of the feed."""

        def handler(delivery: Delivery) -> None:
            self.delivered += [(event.stream, event.index) for event in delivery.events]

        reader = reader_of(self.settings, self.driver(), BodyCodec())
        reactor = Reactor(member=Member(reaction=Reaction(name="board", handler=handler), reader=reader))
        assert reactor.run(self.source.base, seconds=inf).at_tail

    def found_wrong(self) -> list[str]:
        verifier = Verifier(
            mender=Mender(driver=self.driver(), index_table=INDEX.kind), sources=(self.source,), settle=0
        )
        return [each.kind for each in verifier.findings()]

    @property
    def settings(self) -> Settings:
        return replace(self.writer.settings, index_table=INDEX.kind)


def wakes(source: Source, image: Item) -> bool:
    """Return whether an image wakes the indexer."""
    either = [each for each in (source.moved, source.pruned) if each is not None]
    return holds(source.where, image) and (not either or any(holds(each, image) for each in either))


class LayoutContract:
    """The tests that every layout must pass. A subclass provides the writer."""

    writer: Writer

    @pytest.fixture
    def world(self) -> World:
        return World(self.writer)

    def test_appends_come_through_the_feed_in_the_order_of_each_stream(self, world: World) -> None:
        one, other = world.writer.streams
        world.append(one, "a", "b")
        world.append(other, "x")
        world.append(one, "c")
        assert world.index().failed == ()
        assert world.fed() == {one: [(0, "a"), (1, "b"), (2, "c")], other: [(0, "x")]}

    def test_the_scan_of_heads_finds_each_stream_and_where_it_ends(self, world: World) -> None:
        one, other = world.writer.streams
        world.append(one, "a", "b")
        world.append(other, "x")
        reply = world.driver().ask(Scan(table=world.source.table, where=world.source.where))
        ends = [world.source.end(item) for item in reply.items]
        found = {end.stream: (end.pruned, end.next) for end in ends if end is not None}
        assert found == {one: (0, 2), other: (0, 1)}

    def test_what_images_did_not_tell_is_read_from_the_store(self, world: World) -> None:
        one, _ = world.writer.streams
        world.append(one, "a")
        world.index()
        for kind in "bcd":
            world.append(one, kind)
        world.images()
        world.append(one, "e")
        assert world.index().set_aside == 0
        assert world.fed() == {one: list(enumerate("abcde"))}

    def test_a_redelivery_of_any_part_adds_nothing(self, world: World) -> None:
        one, other = world.writer.streams
        for kind in "abc":
            world.append(one, kind)
            world.append(other, kind)
        images = world.images()
        world.index(images)
        before = world.fed()
        for at in range(len(images)):
            world.index(images[at:])
            world.index(images[: at + 1])
        assert world.fed() == before == {one: list(enumerate("abc")), other: list(enumerate("abc"))}

    @pytest.mark.parametrize("fault", [Fault.UNANSWERED, Fault.LOST])
    def test_an_append_of_which_an_answer_is_lost_is_in_the_feed_once(
        self, world: World, fault: Fault
    ) -> None:
        one, _ = world.writer.streams
        world.append(one, "a")
        counted = Faults(world.tables.copy().execute, {})
        world.writer.append(world.driver(counted.execute), one, ("b",))
        for number in range(counted.requests):
            again = World(world.writer)
            again.append(one, "a")
            faulty = Faults(again.tables.execute, {number: fault})
            again.writer.append(again.driver(faulty.execute), one, ("b",))
            again.index()
            assert again.fed() == {one: [(0, "a"), (1, "b")]}

    def test_what_is_pruned_before_it_was_indexed_is_passed_over(self, world: World) -> None:
        one, _ = world.writer.streams
        if world.writer.prune is None:
            pytest.skip("nothing of this layout is pruned")
        for kind in "abc":
            world.append(one, kind)
        world.writer.prune(world.driver(), one, 2)
        world.images()
        world.append(one, "d")
        assert world.index().set_aside == 0
        assert world.fed() == {one: [(2, "c"), (3, "d")]}
        assert world.found_wrong() == []

    def test_the_end_of_a_stream_tells_no_events(self, world: World) -> None:
        one, _ = world.writer.streams
        if world.writer.end is None:
            pytest.skip("no stream of this layout ends")
        world.append(one, "a")
        world.index()
        world.writer.end(world.driver(), one)
        assert (world.index().failed, world.index().set_aside) == ((), 0)
        assert world.fed() == {one: [(0, "a")]}
        assert world.found_wrong() == []

    def test_a_gap_is_healed_up_to_its_end_and_not_beyond(self, world: World) -> None:
        one, _ = world.writer.streams
        for kinds in ("ab", "cd", "ef"):
            world.append(one, *kinds)
        for index in range(6):
            for end in range(index + 1, 7):
                piece = world.driver().run(world.source.heal(Gap(stream=one, index=index, end=end)))
                types = "".join("".join(span.types) for span in piece.spans)
                assert types == "abcdef"[index:end], (index, end, piece)

    def test_a_prune_is_in_the_feed_where_it_was_and_once(self, world: World) -> None:
        one, other = world.writer.streams
        if world.writer.prune is None:
            pytest.skip("nothing of this layout is pruned")
        for kind in "abc":
            world.append(one, kind)
        world.append(other, "x")
        world.writer.prune(world.driver(), one, 2)
        world.append(one, "d")
        world.writer.prune(world.driver(), one, 3)
        images = world.images()
        world.index(images)
        found = world.parts(one)
        removals = [each for each in found if isinstance(each, Removal)]
        if found[0] == 0:  # each append told what it appended
            assert found == [0, 1, 2, removals[0], 3, removals[1]]
        assert removals == [
            Removal(one, 2, "pruned", next=3),
            Removal(one, 3, "pruned", next=4, first=2),
        ]
        for at in range(len(images)):
            world.index(images[at:])
        assert world.parts(one) == found
        assert world.parts(other) == [0]
        assert (world.audit().missing, world.audit().removals, world.found_wrong()) == (0, 0, [])

    def test_it_comes_after_what_it_removed_and_before_what_follows(self, world: World) -> None:
        one, _ = world.writer.streams
        if world.writer.prune is None:
            pytest.skip("nothing of this layout is pruned")
        for kind in "abc":
            world.append(one, kind)
            world.index()
        world.writer.prune(world.driver(), one, 2)
        pruning = world.images()
        world.append(one, "d")
        world.index(world.images())
        world.index(pruning)
        (removal,) = [each for each in world.parts(one) if isinstance(each, Removal)]
        assert world.parts(one) == [0, 1, 2, 3, removal], "a record that is late comes at the end"
        assert removal == Removal(one, 2, "pruned", next=4)

    def test_a_prune_that_the_stream_lost_is_told_by_the_auditor_once(self, world: World) -> None:
        one, _ = world.writer.streams
        if world.writer.prune is None:
            pytest.skip("nothing of this layout is pruned")
        for kind in "abc":
            world.append(one, kind)
        world.index()
        world.writer.prune(world.driver(), one, 2)
        world.images()
        audit = world.audit()
        assert (audit.missing, audit.healed, audit.removals, audit.troubles) == (0, 0, 1, [])
        assert world.parts(one) == [0, 1, 2, Removal(one, 2, "pruned", next=3)]
        assert world.audit().removals == 0

    def test_the_end_of_a_stream_is_in_the_feed_and_says_that_it_is_one(self, world: World) -> None:
        one, _ = world.writer.streams
        if world.writer.end is None or world.writer.empty is None:
            pytest.skip("no stream of this layout ends")
        world.append(one, "a", "b")
        world.writer.empty(world.driver(), one)
        world.append(one, "c")
        world.index()
        emptied = Removal(one, 2, "emptied", next=2)
        assert world.parts(one)[-2:] == [emptied, 2]
        assert not emptied.late
        world.writer.end(world.driver(), one)
        world.index()
        assert world.parts(one)[-3:] == [emptied, 2, Removal(one, 3, "deleted", next=3, first=2)]
        assert world.audit().removals == 0

    def test_no_write_that_removes_nothing_says_that_it_does(self, world: World) -> None:
        one, _ = world.writer.streams
        if world.writer.prune is None:
            pytest.skip("nothing of this layout is pruned")
        for kind in "abc":
            world.append(one, kind)
        world.writer.prune(world.driver(), one, 2)
        world.images()
        world.append(one, "d")
        changes = [world.source.appended(image) for image in world.images()]
        assert not any(isinstance(each, Removal) for each in changes), "an append has the low-water mark, too"

    def test_what_else_is_in_the_table_of_heads_tells_nothing(self, world: World) -> None:
        for item in world.writer.foreign:
            if holds(world.source.where, item):
                assert world.source.appended(item) is None
                assert world.source.end(item) is None
            else:
                assert not wakes(world.source, item)

    def test_a_head_that_cannot_be_read_is_set_aside_and_its_neighbours_go_on(self, world: World) -> None:
        one, _ = world.writer.streams
        world.append(one, "a")
        with pytest.raises((CorruptData, KeyError, TypeError, ValueError)):
            world.source.appended(world.writer.malformed)
        assert world.index((world.writer.malformed, *world.images())).set_aside == 1
        assert world.fed() == {one: [(0, "a")]}

    def test_what_it_stores_tells_its_table_and_nothing_another_table(self, world: World) -> None:
        one, _ = world.writer.streams
        world.append(one, "a")
        world.append(one, "b")
        world.index()
        kinds = {INDEX.kind, *(spec.kind for spec in world.port.tables)}
        for kind in kinds:
            told = {kind_of(item) for item in world.tables.items(kind)}
            assert told - {None} == ({kind} if told else set())

    def test_a_function_does_to_its_tables_what_it_says_and_nothing_else(self, world: World) -> None:
        one, _ = world.writer.streams
        world.append(one, "a")
        world.index()
        world.append(one, "b")
        world.images()
        world.append(one, "c")
        runs: dict[str, Callable[[], object]] = {
            "append": lambda: world.append(one, "d"),
            "indexer": world.index,
            "feed": lambda: list(world.events()),
            "reaction": world.react,
            "auditor": world.found_wrong,
        }
        if "append" not in world.port.access(world.settings):
            del runs["append"]  # the HTTP API has no operation on this layout
        for function, run in runs.items():
            world.used.clear()
            run()
            mine = {(action, resource) for action, resource in world.used if resource != INDEX.kind}
            assert mine <= allowed(world.port, function), function
            assert mine or function not in ("append", "feed", "auditor")

    def test_events_are_read_in_the_shape_of_the_feed(self, world: World) -> None:
        one, other = world.writer.streams
        world.append(one, "a", "b")
        world.append(other, "x")
        world.index()
        found = [(event.stream, event.index, event.type) for event in world.events()]
        assert sorted(found) == sorted([(one, 0, "a"), (one, 1, "b"), (other, 0, "x")])

    def test_the_store_tells_where_a_stream_ends_whatever_the_feed_has_got_to(self, world: World) -> None:
        one, _ = world.writer.streams
        world.append(one, "a", "b")
        reader = reader_of(world.settings, world.driver(), BodyCodec())
        assert reader.end_of(world.source.base, one, 0) == reader.end_of(world.source.base, one, 1) == 2

    def test_a_reaction_handles_each_event_once(self, world: World) -> None:
        one, other = world.writer.streams
        world.append(one, "a", "b")
        world.append(other, "x")
        world.index()
        world.react()
        world.append(one, "c")
        world.index()
        world.react()
        assert sorted(world.delivered) == sorted([(one, 0), (one, 1), (one, 2), (other, 0)])

    def test_an_index_that_lacks_events_is_found_out(self, world: World) -> None:
        one, other = world.writer.streams
        world.append(one, "a")
        world.append(other, "x")
        world.index()
        assert world.found_wrong() == []
        world.append(other, "y")
        world.images()
        assert world.found_wrong() == ["missing"]
