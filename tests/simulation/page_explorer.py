"""Every interleaving of a few processes on one stream of pages (see `exploring`).

What is true is what was written: which append's event each index was given, and the unfolds that were left last. Every
state of the table is held to that, and so is all that anyone is told.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace

from epochal.layout.streams import PruneProgress, accepts
from epochal.model.expected_version import ExpectedVersion
from epochal.model.outcomes import Appended, Conflict, Undetermined
from epochal.model.tokens import Token
from epochal.pages.batch import Packed
from epochal.pages.frames import read_unfolds
from epochal.pages.items import STREAMS, Page, is_page, read_page, state_of
from epochal.plan.ops import Steps
from epochal.testing.memory import MemoryTables
from tests.simulation.exploring import Diary, State, apart
from tests.simulation.exploring import Explorer as Exploring
from tests.simulation.exploring import Table as Explored
from tests.simulation.page_actors import (
    TABLE,
    Actor,
    Answer,
    Call,
    Delete,
    Load,
    Read,
    Seen,
    Taken,
    act,
    ruled_by,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Table(Explored):
    """A state of the table, and what is true of it.

    Attributes:
        appends: what each index was given, by the part of a stamp that tells appends apart.
        unfolds: those of the stream.
        marks: who has written without events.
        states: every last page that there has been, and its unfolds.
    """

    appends: tuple[bytes, ...] = ()
    unfolds: bytes = b""
    marks: frozenset[bytes] = frozenset()
    pages: tuple[Page, ...] = ()
    states: frozenset[tuple[Page, bytes]] = frozenset()

    @property
    def held(self) -> frozenset[int]:
        """Every event that a page holds."""
        return frozenset(index for page in self.pages for index in range(page.base, page.version))

    @property
    def gone(self) -> int:
        """Every event below this is gone."""
        return min(
            (page.span.base for page in self.pages if page.span.base < page.version),
            default=len(self.appends),
        )


@dataclass(slots=True)
class Explorer(Exploring[Actor, Table]):
    """Explores all that may happen to `actors`, after others have acted alone, one after the other."""

    batches: dict[str, Packed] = field(default_factory=dict)
    loads: bool = False

    def first(self) -> Table:
        self.loads = any(isinstance(each, Load) for actor in self.everyone for each in actor.does)
        self.batches = {call.name: call.batch for actor in self.everyone for call in actor.calls}
        return Table(tables=MemoryTables({TABLE: STREAMS}))

    def process(self, actor: Actor, diary: Diary) -> Steps[None]:
        return apart(act(actor, diary))

    def ruled(self, actor: Actor) -> AbstractContextManager[None]:
        return ruled_by(actor.rule)

    def content(self, table: Table) -> str:
        content = f"{list(table.tables.items(TABLE))} {table.appends} {table.unfolds!r} {sorted(table.marks)}"
        return content + f" {sorted(map(repr, table.states))}"

    # ------------------------------------------------------------------------------------------- what anybody was told

    def told(self, state: State, answers: tuple[Answer, ...]) -> State:
        table = self.tables[state.table]
        for answer in answers:
            doing, expected, told, head = answer
            self.met.add(type(told).__name__)
            match told:
                case Page():
                    _check_state(told, table)
                case Seen() if isinstance(doing, Read):
                    _check_read(doing, told, table)
                case PruneProgress(low_water=low_water, done=done):
                    assert done
                    assert table.gone >= low_water, f"pruned below {low_water}, yet {table.gone} is there"
                    assert (
                        not isinstance(doing, Delete)
                        or doing.leave_open
                        or not any(page.unfolds for page in table.pages)
                    ), "unfolds that outlive the stream"
                    state = state._replace(
                        ended=state.ended or (isinstance(doing, Delete) and not doing.leave_open)
                    )
                case _ if isinstance(doing, Call) and doing.ids:
                    self._check_identified(doing, told, table)
                case _ if isinstance(doing, Call):
                    batch = self.batches[doing.name]
                    _check_told(answer, batch, self._own(doing), table)
                    if isinstance(told, Conflict) and not doing.key:
                        assert not accepts(expected, head), "in conflict with what was expected"
                        state = state._replace(denied=state.denied | {batch.rest})
        return state

    def _own(self, doing: Call) -> frozenset[bytes]:
        """What tells the call's writes, or those of others under its key, from all others."""
        calls = [call for actor in self.actors for call in actor.calls]
        calls = [call for call in calls if call == doing or (call.key and call.key == doing.key)]
        batches = [self.batches[call.name] for call in calls]
        return frozenset(each for batch in batches for each in (batch.rest, batch.mark))

    def _check_identified(self, call: Call, told: object, table: Table) -> None:
        """What is said of an append with ids is true of the ids that are there, whoever has appended them."""
        there, own = self.ids_of(table), self.batches[call.name].rest
        match told:
            case Appended(first=first, version=version, token=token, replayed=replayed):
                assert there[first:version] == list(call.ids), f"told {first} to {version} of {there}"
                assert replayed or own in table.appends, "told that it was new, and it is another's"
                if token.etag is not None:
                    _check_token(token, frozenset(table.appends), table)
            case Taken():
                assert set(call.ids) & set(there), "told that ids are taken, and none is there"
                assert own not in table.appends, "refused, and it is there"
            case Conflict():
                assert own not in table.appends, "told of a conflict, and it is there"
                begun = call.expects == "none" and there[: len(call.ids)] == list(call.ids)
                assert not begun, "told of a conflict, and it was made before"
            case Undetermined(first=first):
                assert first not in table.held, "undetermined, though the evidence is there"

    def ids_of(self, table: Table) -> list[int]:
        """Of the event that each index was given; 0 where it has none."""
        ids = {self.batches[call.name].rest: call.ids for each in self.everyone for call in each.calls}
        if not any(ids.values()):
            return []
        found: list[int] = []
        for index, rest in enumerate(table.appends):
            given = ids.get(rest) or (0,)
            found.append(given[(index - table.appends.index(rest)) % len(given)])
        return found

    # ------------------------------------------------------------------------------------------------------ the table

    def check_write(self, state: State, after: Table, knows: tuple[Actor, ExpectedVersion]) -> None:
        actor, expected = knows
        before = self.tables[state.table]
        if len(after.appends) > len(before.appends):
            assert not state.ended, "an event after the stream was said to be deleted"
            assert after.appends[-1] not in state.denied, "told that it was not appended, and then it is"
        if after.unfolds != before.unfolds:
            own = {call.unfolds for call in actor.calls}
            own |= {"" for each in actor.does if isinstance(each, Delete)}
            assert _letter(after.unfolds) in own, "unfolds were lost, or came back"
        self._check_expected(before, expected, actor)

    def _check_expected(self, before: Table, expected: ExpectedVersion, actor: Actor) -> None:
        """A write on a token is one on that state, or on the page that the same append has closed."""
        if not isinstance(expected, Token) or not before.pages:
            return
        last, known = before.pages[-1], state_of(expected.etag or "")
        closed = last.latest[8:] in {self.batches[call.name].mark for call in actor.calls}
        # What is pruned of a full page changes nothing for the next.
        full = known is not None and known.full and last.full and not last.deleted
        same = last.version == expected.version and (full or last.etag == expected.etag)
        assert closed or same, "a write on another state"

    def checked(self, before: Table, tables: MemoryTables) -> Table:
        """The table after a write, if all of it is true."""
        pages = tuple(
            sorted(
                (read_page(item, TABLE) for item in tables.items(TABLE) if is_page(item)),
                key=lambda page: page.index,
            )
        )
        appends, follows, latest = list(before.appends), pages[0].index if pages else 0, -1
        for page in pages:
            assert page.index == follows, (
                f"a page at {page.index}, and one that ends at {follows}: a fork, or a hole"
            )
            at, follows = page.base, page.version
            for frame in page.frames:
                for index in range(at, at + frame.count):
                    if index == len(appends):
                        appends.append(frame.stamp[8:])
                    assert appends[index] == frame.stamp[8:], (
                        f"index {index} was given to another append: a fork"
                    )
                at += frame.count
            times = [int.from_bytes(frame.stamp[:8], "big") for frame in page.frames]
            for time in times:
                assert time > latest, f"stamps that go back, on page {page.index}"
                latest = time
        grown = len(appends) - len(before.appends)
        chosen = [each for each in self.ids_of(replace(before, appends=tuple(appends))) if each]
        assert len(chosen) == len(set(chosen)), "an id was appended twice"
        for call in (call for each in self.everyone for call in each.calls if call.key):
            there = appends.count(self.batches[call.name].rest)
            assert there <= call.events, f"{there} events under one key, of {call.events}"
        assert follows == len(appends), f"a version of {follows} after {len(appends)} events"
        assert not (grown and before.pages and before.pages[-1].deleted), "an event after a tombstone"
        unfolds = _unfolds(pages)
        marks = before.marks | {page.stamp[8:] for page in pages if page.stamp is not None}
        calls = [call for each in self.everyone for call in each.calls if call.key and not call.events]
        made = [call.key for call in calls if self.batches[call.name].mark in marks]
        assert len(made) == len(set(made)), "unfolds under one key were written twice"
        # Only who loads a state, or is in conflict with one, is held to what there has been.
        states = before.states | {(pages[-1], unfolds)} if self.loads else before.states
        return Table(
            tables=tables, appends=tuple(appends), unfolds=unfolds, marks=marks, pages=pages, states=states
        )


def _check_read(read: Read, seen: Seen, table: Table) -> None:
    """What was read is true; what is missing of it is gone."""
    indices = [index for index, _ in seen.events]
    assert indices == sorted(set(indices), reverse=not read.forward)
    wanted = range(read.start or 0, seen.version) if read.forward else range(seen.version)
    missing = set(wanted) - set(indices)
    assert all(index < table.gone for index in missing), f"read past {sorted(missing)}"
    for index, identity in seen.events:
        assert table.appends[index] == identity, f"read at {index} what is not there"


def _check_state(head: Page, table: Table) -> None:
    """The last page, and the unfolds with it, as they once were together."""
    assert (head, head.found or head.unfolds) in table.states, "a state that there has never been"
    head.read_unfolds()


def _check_told(answer: Answer, batch: Packed, own: frozenset[bytes], table: Table) -> None:
    call, _, told, head = answer
    assert isinstance(call, Call)
    rests = [each.rest for each in (*batch.before, batch) for _ in each.events]
    places = [index for index, each in enumerate(table.appends) if each in rests]
    if batch.before:
        assert [table.appends[index] for index in places] in ([], rests), "what goes out together is apart"
    match told:
        case Appended(first=first, version=version, token=token):
            assert places == list(range(first, version)), f"told {first} to {version}, and it is at {places}"
            _check_token(token, own, table)
        case Conflict():
            if table.states and head is not None:
                _check_state(head, table)
            assert call.key or not places, f"told of a conflict, and it is at {places}"
        case Undetermined(first=first):
            assert not call.events or first not in table.held, "undetermined, though the evidence is there"


def _check_token(token: Token, own: frozenset[bytes], table: Table) -> None:
    """It is of what the append left, and of nothing that another has written since."""
    state = state_of(token.etag or "")
    assert state is not None
    page = next((page for page in table.pages if page.index == state.index), None)
    if page is None:
        return
    if (page.version, page.time) == (token.version, state.time):
        assert page.latest[8:] in own, "the token is of what another has left"
        assert state.full == page.full or not token.of, "the token does not say whether the page is full"
    if state.full:
        assert (page.version, page.full) == (token.version, True), "the token begins where no page ends"


def _unfolds(pages: tuple[Page, ...]) -> bytes:
    """Those of the stream, wherever they are."""
    at = pages[-1].unfolds_at if pages else None
    if at is None:
        return pages[-1].unfolds if pages else b""
    holder = next(page for page in pages if page.index == at)
    assert holder.unfolds, "unfolds were lost: the page that has them was emptied"
    assert holder.full, "a page that may change has the unfolds of a later one"
    return holder.unfolds


def _letter(unfolds: bytes) -> str:
    return read_unfolds(unfolds).unfolds()[0].data.data.decode() if unfolds else ""
