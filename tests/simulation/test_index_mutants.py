"""The simulation is worth its time: take any one rule out of the indexer, and a seed finds out.

Each mutant leaves out what a rule of DESIGN §5.9 or §5.10, or of the module it is in, asks for. The seeds are those
that the unchanged indexer passes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from epochal.contrib.equinox.append import append
from epochal.contrib.equinox.calving import ByCost
from epochal.index import epoch_loading, ingestion, marks, series
from epochal.index.checkpoints import REMOVALS, epoch_stream
from epochal.index.entries import Entry, EntryPart
from epochal.index.epoch_loading import LoadedEpochs
from epochal.index.epochs import Epoch, decide
from epochal.index.ingestion import Indexing, Partition
from epochal.index.marks import Leaf, Leaves, write_marks
from epochal.index.tip import load_tip
from epochal.index.wire_batch import batch_of
from epochal.layout.changes import Change, Removal, Span
from epochal.layout.healing import Gap, Heal, Healed
from epochal.layout.source import Source
from epochal.model.expected_version import ANY
from epochal.plan.ops import Several, Steps, Transact
from tests.simulation import index_world
from tests.simulation.index_world import run
from tests.simulation.index_writers import LAYOUTS, changes_of
from tests.simulation.mutants import Mutant, Patch, play_all

SEEDS = 400

MUTANTS: dict[tuple[str, str], tuple[Mutant, str, int]] = {}


def mutant(found: str, *layouts: str, begin: int = 0) -> Callable[[Mutant], Mutant]:
    """Register a mutant, how it is found out, and in the worlds of which layouts: in all, if none is named."""

    def register(change: Mutant) -> Mutant:
        for layout in layouts or LAYOUTS:
            MUTANTS[change.__name__, layout] = change, found, begin
        return change

    return register


def nothing(*_: Any, **__: Any) -> Steps[None]:
    """Steps that ask for nothing."""
    yield from ()


@mutant("backwards|double|rest")
def no_marks_are_written(patch: Patch) -> None:
    patch.setattr(ingestion, "write_marks", nothing)


@mutant("backwards|rest")
def no_marks_are_read(patch: Patch) -> None:
    def no_marks(*_: Any) -> Steps[dict[str, int]]:
        yield from ()
        return {}

    patch.setattr(ingestion, "read_marks", no_marks)


@mutant("removal comes again|does not follow", "tips", "pages", begin=35)
def marks_of_removals_are_not_read(patch: Patch) -> None:
    def without(table: str, partition: int, leaves: Leaves, streams: Sequence[str]) -> Steps[dict[str, int]]:
        events = [each for each in streams if not each.startswith(REMOVALS)]
        return marks.read_marks(table, partition, leaves, events)

    patch.setattr(ingestion, "read_marks", without)


@mutant("a gap|comes after", "tips", "pages", begin=122)
def a_removal_does_not_wait_for_what_comes_before_it(patch: Patch) -> None:
    def hasty(changes: Sequence[Change], next_of: Callable[[str], int]) -> list[Any]:
        found = decide(changes, next_of)
        return [
            step
            for at, step in enumerate(found)
            if not (isinstance(step, Gap) and at + 1 < len(found) and isinstance(found[at + 1], Removal))
        ]

    patch.setattr(ingestion, "decide", hasty)


@mutant("comes after|before events", "tips", "pages", begin=10)
def what_is_gone_is_indexed_when_its_record_comes_after_all(patch: Patch) -> None:
    def fold(self: Epoch, entry: Entry | None) -> None:
        before = dict(self.next)
        folded(self, entry)
        for removal in entry.removals if entry else ():
            spans = [span.next for span in entry.spans if span.stream == removal.stream] if entry else []
            self.next[removal.stream] = max([*spans, before.get(removal.stream, 0)])

    folded = Epoch.fold
    patch.setattr(Epoch, "fold", fold)


@mutant("lowered", begin=14)
def a_mark_may_be_lowered(patch: Patch) -> None:
    patch.setattr(Leaf, "with_raised_marks", lambda self, given: self.with_marks({**self.marks(), **given}))


@mutant("lowered|two leaves|lacks")
def a_leaf_is_written_whatever_it_is_by_then(patch: Patch) -> None:
    put = marks._put  # noqa: SLF001  # the mutant is of this very request
    patch.setattr(marks, "_put", lambda *given: replace(put(*given), condition=None))


@mutant("lowered|two leaves|lacks")
def a_leaf_is_split_by_one_write_after_the_other(patch: Patch) -> None:
    raising = marks._raise_marks  # noqa: SLF001  # the mutant is of this very step

    def in_turn(*given: Any) -> Steps[Any]:
        steps = raising(*given)
        try:
            step = next(steps)
            while True:
                ops = step.ops if isinstance(step, Several) else (step,)
                replies = []
                for op in ops:
                    for write in op.writes if isinstance(op, Transact) else (op,):
                        reply = yield write
                    replies.append(reply)
                step = steps.send(replies if isinstance(step, Several) else replies[0])
        except StopIteration as end:
            return end.value

    patch.setattr(marks, "_raise_marks", in_turn)


@mutant("backwards")
def marks_are_kept_from_one_epoch_to_the_next(patch: Patch) -> None:
    hold = Partition.hold

    def keeping(self: Partition, loaded: LoadedEpochs) -> None:
        leaves, known = self.leaves, self.marked
        hold(self, loaded)
        self.leaves, self.marked = leaves, known

    patch.setattr(Partition, "hold", keeping)


@mutant("backwards|lost")
def the_epoch_closes_before_its_marks_are_written(patch: Patch) -> None:
    due: list[Any] = []
    start_epoch = series.start_epoch

    def later(
        table: str, partition: int, _leaves: Leaves, some: list[tuple[str, int]], **_: Any
    ) -> Steps[None]:
        due.append((table, partition, Leaves(), some))
        yield from ()

    def start(*started: Any) -> Steps[Any]:
        while due:
            yield from write_marks(*due.pop())
        return (yield from start_epoch(*started))

    patch.setattr(ingestion, "write_marks", later)
    patch.setattr(ingestion, "start_epoch", start)


@mutant("backwards")
def closing_does_not_wait_for_marks_that_are_left(patch: Patch) -> None:
    owed = Partition.marks
    patch.setattr(Partition, "due", lambda self, _fullness: len(self.forgotten))
    patch.setattr(Partition, "marks", lambda self, due: owed(self, due)[:1])


@mutant("backwards|double|rest", begin=1)
def an_entry_tells_of_marks_that_were_not_written(patch: Patch) -> None:
    owed = Partition.marks

    def all_but_the_last(self: Partition, due: int) -> list[tuple[str, int]]:
        return owed(self, due)[:-1]

    patch.setattr(Partition, "marks", all_but_the_last)


@mutant("backwards|double|rest")
def processes_count_marks_in_orders_of_their_own(patch: Patch) -> None:
    hold, turn = Partition.hold, iter(range(1_000_000))

    def in_some_order(self: Partition, loaded: LoadedEpochs) -> None:
        hold(self, loaded)
        if next(turn) % 2:
            self.forgotten = self.forgotten[::-1]

    patch.setattr(Partition, "hold", in_some_order)


@mutant("follows the end|backwards")
def what_a_crashed_invocation_held_is_used_again(patch: Patch) -> None:
    remove = index_world.World.crash

    def crash(self: index_world.World, invocation: index_world.Invocation) -> None:
        remove(self, invocation)
        if invocation.held.loaded is not None:
            self.held.append(invocation.held)

    patch.setattr(index_world.World, "crash", crash)


@mutant("a gap")
def a_gap_is_accepted(patch: Patch) -> None:
    def without_gaps(*batch: Any) -> list[Any]:
        return [step for step in decide(*batch) if not isinstance(step, Gap)]

    patch.setattr(ingestion, "decide", without_gaps)


@mutant("a gap|lost")
def an_unknown_stream_is_accepted_where_it_begins(patch: Patch) -> None:
    def lenient(spans: Sequence[Change], next_of: Callable[[str], int]) -> list[Span | Gap]:
        first = {span.stream: span.index for span in reversed(spans) if isinstance(span, Span)}
        return decide(spans, lambda stream: next_of(stream) or first.get(stream, 0))

    patch.setattr(ingestion, "decide", lenient)


@mutant("backwards|rest", begin=1)
def the_previous_epoch_is_not_looked_at(patch: Patch) -> None:
    hold = Partition.hold

    def forgetful(self: Partition, loaded: LoadedEpochs) -> None:
        hold(self, LoadedEpochs(active=loaded.active, previous=None))

    patch.setattr(Partition, "hold", forgetful)


@mutant("backwards")
def a_refused_write_learns_the_tip_but_not_its_entries(patch: Patch) -> None:
    def careless(table: str, partition: int, loaded: LoadedEpochs, tip: Any = None) -> Steps[LoadedEpochs]:
        tip = tip or (yield from load_tip(table, epoch_stream(partition, loaded.active.number)))
        if tip is not None and tip.span.types[-1:] == ("Closed",):
            return (yield from epoch_loading.load_next(table, partition, loaded.active))
        loaded.active.tip, loaded.active.version = tip, tip.version
        return loaded

    patch.setattr(ingestion, "refresh", careless)


@mutant("does not come to rest", begin=1)
def a_refused_write_is_tried_again_as_it_was(patch: Patch) -> None:
    def unmoved(_table: str, _partition: int, loaded: LoadedEpochs, _tip: Any = None) -> Steps[LoadedEpochs]:
        yield from ()
        return loaded

    patch.setattr(ingestion, "refresh", unmoved)


@mutant("follows the end|backwards|a gap")
def an_entry_is_written_whatever_the_epoch_holds_by_then(patch: Patch) -> None:
    def anyhow(table: str, batch: Any, _known: Any) -> Steps[Any]:
        return (yield from append(table, batch, ANY, ByCost()))

    patch.setattr(ingestion, "append_on", anyhow)


@mutant("ahead of the epochs|a fork")
def the_next_epoch_begins_before_the_last_one_has_closed(patch: Patch) -> None:
    def batch_without_closed(stream: str, events: list[Any], **ids: Any) -> Any:
        return batch_of(stream, [event for event in events if event.type != "Closed"], **ids)

    patch.setattr(ingestion, "batch_of", batch_without_closed)


@mutant("ahead of the epochs")
def the_series_is_told_before_the_epoch_has_closed(patch: Patch) -> None:
    write = Indexing._write  # noqa: SLF001  # the mutant is of this very step

    def hasty(self: Indexing, partition: Partition, loaded: LoadedEpochs, spans: list[Span]) -> Steps[bool]:
        yield from series.start_epoch(self.table, partition.number, loaded.active.number + 1, self.ids())
        return (yield from write(self, partition, loaded, spans))

    patch.setattr(Indexing, "_write", hasty)


@mutant("lost|a gap")
def healing_reads_nothing(patch: Patch) -> None:
    def heal(_source: Source) -> Heal:
        def unread(_gap: Gap) -> Steps[Healed]:
            yield from ()
            return Healed()

        return unread

    patch.setattr(index_world, "heal_of", heal)


@mutant("backwards")
def healing_reads_one_event_too_many(patch: Patch) -> None:
    def heal(source: Source) -> Heal:
        return lambda gap: source.heal(gap if gap.end is None else replace(gap, end=gap.end + 1))

    patch.setattr(index_world, "heal_of", heal)


@mutant("backwards")
def what_is_left_of_a_batch_is_not_decided_again_in_a_new_epoch(patch: Patch) -> None:
    def all_at_once(self: Indexing, partition: Partition, spans: list[EntryPart]) -> Steps[list[EntryPart]]:
        for span in spans:
            while not (yield from self._write(partition, partition.state, [span])):
                pass
        return []

    patch.setattr(Indexing, "_write_all", all_at_once)


@mutant("a gap|lost|backwards")
def a_piece_of_a_gap_is_taken_for_all_of_it(patch: Patch) -> None:
    in_pieces = index_world.in_pieces

    def all_of_it(heal: Heal) -> Heal:
        def healed(gap: Gap) -> Steps[Healed]:
            return replace((yield from in_pieces(heal)(gap)), whole=True)

        return healed

    patch.setattr(index_world, "in_pieces", all_of_it)


@mutant("lost", "journal")
def heads_that_another_library_wrote_tell_nothing(patch: Patch) -> None:
    def ours(writer: Any, *rest: Any) -> Any:
        changes, seen = changes_of(writer, *rest)
        return [change for change in changes if isinstance(change, Span)], seen

    patch.setattr(index_world, "changes_of", ours)


@mutant("lost", "journal")
def of_what_another_library_appended_only_the_first_event_is_read(patch: Patch) -> None:
    def heal(source: Source) -> Heal:
        def first(gap: Gap) -> Steps[Healed]:
            found = yield from source.heal(gap)
            if gap.end is not None or not found.events:
                return found
            return Healed(spans=[found.spans[0]._replace(types=found.spans[0].types[:1])])

        return first

    patch.setattr(index_world, "heal_of", heal)


@mutant("backwards|double|a gap|lost", "journal")
def what_follows_a_head_of_another_library_is_decided_as_if_that_had_told_nothing(patch: Patch) -> None:
    def forgetful(changes: Sequence[Change], next_of: Callable[[str], int]) -> list[Span | Gap]:
        return [step for change in changes for step in decide([change], next_of)]

    patch.setattr(ingestion, "decide", forgetful)


def named() -> list[Any]:
    """Each mutant in the world of its first layout; in the others, by `make proof` alone."""
    first = dict(reversed(MUTANTS))
    return [
        pytest.param(name, layout, marks=[] if first[name] == layout else [pytest.mark.proof])
        for name, layout in MUTANTS
    ]


@pytest.mark.parametrize(("name", "layout"), named())
def test_a_seed_finds_out(name: str, layout: str, monkeypatch: Patch) -> None:
    change, found, begin = MUTANTS[name, layout]
    change(monkeypatch)
    with pytest.raises(AssertionError, match=rf"^seed \d+ of {layout}: .*({found})"):
        play_all(lambda seed: run(seed, layout), SEEDS, begin)
