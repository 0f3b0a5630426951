"""Everything that can happen to a group that parks: its reactors and operators in every order of their requests, each
state visited once.

A process cannot be copied, but it is a function of what it was answered. So a process is its answers, and a state is
the tables with every process's answers and what has been handled. Handling is a step like a request: it succeeds, fails
while the budget lasts, or is its process's last. A write may lose its answer, arrive late, or be its sender's last.
Reads of what no longer changes are part of the step before.

What must hold: no event is handled before its predecessor; no checkpoint goes back but by a reset, a deletion or
another number of members, or passes what, since then, is neither handled nor parked nor given up; nothing is committed
while the group pauses; a reset answers what it has done; and wherever all of it has led to, one more run and replay
bring everything to its end. After a reset all that was handled beyond its target is owed again; after a deletion,
everything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from epochal.contrib.equinox.port import tips_source
from epochal.contrib.equinox.streams import Tips
from epochal.errors import BeyondTheEnd, GroupMissing, InvalidInput
from epochal.feed.indexer import Indexer
from epochal.feed.reader import FeedReader
from epochal.feed.stream_history import StreamHistory
from epochal.feed.stream_records import Record
from epochal.index.checkpoints import Checkpoint
from epochal.index.group_state import GroupState
from epochal.index.groups import group_stream, load
from epochal.model.events import Event
from epochal.plan.failures import Lost
from epochal.plan.ops import Delete, Execute, Op, Put, Reply, Update
from epochal.plan.values import Units
from epochal.reactions.definition import Delivery, OnFailure, Reaction, Start
from epochal.reactions.group_member import Member
from epochal.reactions.parking import Parking
from epochal.reactions.reactor import Reactor
from epochal.reactions.steering import Groups
from epochal.store.streams import Streams
from epochal.testing.memory import MemoryTables
from epochal.testing.stores import memory_tables
from tests.simulation.exploring import explore, put
from tests.simulation.index_checks import Reading, perform
from tests.simulation.parking_states import (
    FAILED,
    HANDLED,
    UNHEARD,
    Asked,
    Budget,
    Counts,
    Handling,
    Past,
    Place,
    State,
)
from tests.simulation.world import NOON, bytes_of, driver_on
from tests.support.inline import Inline

GROUP = "board"
STATE = group_stream(0, GROUP)
MODEL = "model"
"""Another group, which stays where it is."""

RESETS: dict[str, Start] = {
    "reset": "beginning",
    "reset to 1": {0: Checkpoint.of(0, 1)},
    "reset to 2": {0: Checkpoint.of(0, 2)},
    "reset to the tail": "tail",
}
STEERING = (*RESETS, "reset to here", "pause", "resume", "delete", "begin")
OPERATING = ("replay", "discard", "skip")


@dataclass(slots=True)
class Explorer:
    """Explores all that may happen.

    Attributes:
        slots: what each slot's processes do, and how many it has. They `react`, as the second member (`react 1`), of
            another number (`react 1 of 2`), `carefully`, or `briefly`, with no time for a second stream. Or they
            operate on a parked stream: `replay`, `discard` or `skip`. Or they steer the group: `pause`, `resume`,
            `delete`, `begin` it like the model, or `reset` it: to the beginning, to an entry, to the tail, or to where
            it is.
        feed: streams, in the order of appends of one event each; `grows` more come meanwhile.
        begun: where the group is at first; None where it has yet to begin.
        model: where another group is.
    """

    slots: tuple[tuple[str, int], ...]
    feed: tuple[str, ...]
    budget: Budget
    on_failure: OnFailure = "park"
    members: int = 1
    max_events: int = 2
    later: tuple[str, ...] = ()
    begun: GroupState | None = None
    model: GroupState | None = None
    tables: list[MemoryTables] = field(default_factory=list)
    asked: list[Any] = field(default_factory=list)
    replies: list[Reply] = field(default_factory=list)
    numbers: dict[tuple[str, str], int] = field(default_factory=dict)
    following: dict[Past, int | None] = field(default_factory=dict)
    performed: dict[tuple[int, int], tuple[int, int]] = field(default_factory=dict)
    settled: set[tuple[int, frozenset[Place]]] = field(default_factory=set)
    groups: dict[int, GroupState | None] = field(default_factory=dict)
    returned: dict[Past, Counts] = field(default_factory=dict)
    feeds: dict[int, list[tuple[str, int, Any]]] = field(default_factory=dict)
    grown: dict[tuple[int, str], int] = field(default_factory=dict)
    met: set[str] = field(default_factory=set)
    steering: dict[int, str] = field(default_factory=dict)

    def explore(self) -> int:
        """Visit every state; how many there are."""
        first = memory_tables()
        for stream in self.feed:
            self._append(first, stream)
        for name, group in ((GROUP, self.begun), (MODEL, self.model)):
            if group is not None:
                member = self._reactor(name, first.execute, lambda _: None, name=name).member
                member.save(member.load(0), group)
        tables = self._tables_number(first)
        state = State(
            tables=tables,
            done=frozenset() if self.begun is None else self._handled(tables, self.begun),
            working=(None,) * len(self.slots),
            counted=(None,) * len(self.slots),
            lives=tuple(lives for _, lives in self.slots),
            budget=self.budget._replace(grows=len(self.later)),
        )
        return explore(state, self._steps, self._check)

    # ------------------------------------------------------------------------------------------------------- the steps

    def _steps(self, state: State) -> Iterator[tuple[str, State]]:
        for place, number in enumerate(state.on_the_way):
            left = state.on_the_way[:place] + state.on_the_way[place + 1 :]
            tables, _ = self._perform(state.tables, number)
            after = self._steered(state, number, tables, None)
            yield f"late: {self._shown(number)}", after._replace(tables=tables, on_the_way=left)
        if state.budget.grows:
            stream = self.later[-state.budget.grows]
            grown = self._grown(state.tables, stream)
            yield f"{stream} grows", state._replace(tables=grown, budget=state.budget.less("grows"))
        for slot, past in enumerate(state.working):
            if past is None:
                yield from self._begin(state, slot)
            else:
                yield from self._go_on(state, slot, past)

    def _begin(self, state: State, slot: int) -> Iterator[tuple[str, State]]:
        kind = self.slots[slot][0]
        parked = self._state(state.tables).parked
        if not state.lives[slot] or (kind in OPERATING and not parked):
            return
        past = Past(kind, f"{slot}.{state.lives[slot]}")
        lives = put(state.lives, slot, state.lives[slot] - 1)
        yield f"{past.who} begins to {kind}", self._moved(state._replace(lives=lives), slot, past)

    def _go_on(self, state: State, slot: int, past: Past) -> Iterator[tuple[str, State]]:
        number = self._next(past)
        if number is None:
            counts = self.returned.get(past)
            if counts is not None and state.counted[slot] is not None:
                assert counts == state.counted[slot], f"{past.who} counts {counts}, not {state.counted[slot]}"
                self.met.add("counted")
            ended = state._replace(counted=put(state.counted, slot, None))
            yield f"{past.who} is done", ended._replace(working=put(state.working, slot, None))
            return
        asked, gone = self.asked[number], put(state.working, slot, None)
        if state.budget.deaths:
            left = state.budget.less("deaths")
            yield f"{past.who} dies before {asked}", state._replace(working=gone, budget=left)
        if isinstance(asked, Handling):
            yield from self._handle(state, slot, past, asked)
            return
        tables, reply = self._perform(state.tables, number)
        given_up = self._given_up(past, state.tables, tables)
        steered = self._steered(state._replace(owed=state.owed - given_up), number, tables, slot)
        after = steered._replace(tables=tables, done=steered.done | given_up)
        what = f"{past.who}: {self._shown(number)}"
        yield what, self._moved(after, slot, self._told(past, reply))
        if not isinstance(asked, Put | Update):
            return
        if state.budget.unheard:
            unheard = past._replace(answers=(*past.answers, UNHEARD))
            left = state.budget.less("unheard")
            yield f"{what}, unheard", self._moved(after._replace(budget=left), slot, unheard)
        if state.budget.deaths:
            left = state.budget.less("deaths")
            yield f"{what}, and dies", after._replace(working=gone, budget=left)
        if state.budget.late:
            left = state.budget.less("late")
            late = (*state.on_the_way, number)
            yield f"{what}, held up, and dies", state._replace(working=gone, on_the_way=late, budget=left)

    def _handle(self, state: State, slot: int, past: Past, asked: Handling) -> Iterator[tuple[str, State]]:
        early = [at for at in range(asked.first) if (asked.stream, at) not in state.done]
        assert not early, f"{asked} comes before {early}"
        what = f"{past.who} handles {asked.stream} {asked.first} to {asked.end - 1}"
        handled = state._replace(done=state.done | asked.places, owed=state.owed - asked.places)
        yield what, self._moved(handled, slot, past._replace(answers=(*past.answers, HANDLED)))
        if state.budget.deaths:
            left = state.budget.less("deaths")
            gone = put(state.working, slot, None)
            yield f"{what}, and dies", handled._replace(working=gone, budget=left)
        if state.budget.fails and asked.stream == "A-1":
            failed = past._replace(answers=(*past.answers, FAILED))
            yield (
                f"{what}, and fails",
                self._moved(state._replace(budget=state.budget.less("fails")), slot, failed),
            )

    def _moved(self, state: State, slot: int, past: Past) -> State:
        """A process that has been answered, and has read at once what no longer changes."""
        while not state.budget.grows:
            number = self._next(past)
            if number is None or not _is_read_of_feed(self.asked[number]):
                break
            _, reply = self._perform(state.tables, number)
            past = self._told(past, reply)
        return state._replace(working=put(state.working, slot, past))

    def _check(self, state: State) -> None:
        """Nothing is passed; and at rest, all can be brought to its end."""
        group = self._state(state.tables)
        for stream, index, after in self._feed(state.tables):
            waits = stream in group.parked and group.parked[stream] <= index
            lacks = (stream, index) not in state.done - state.owed
            checkpoint = self._at(group, stream)
            assert not (after <= checkpoint and lacks and not waits), f"{checkpoint} passed {stream}@{index}"
        self.met |= {"parked"} if group.parked else set()
        if not any(state.working) and not state.on_the_way:
            self._check_rest(state)

    def _check_rest(self, state: State) -> None:
        if (state.tables, state.done, state.owed) in self.settled:
            return
        self.settled.add((state.tables, state.done, state.owed))
        tables, done, owed = self.tables[state.tables].copy(), set(state.done), set(state.owed)

        def handle(asked: Handling) -> None:
            early = [at for at in range(asked.first) if (asked.stream, at) not in done]
            assert not early, f"at rest, {asked} comes before {early}"
            done.update(asked.places)
            owed.difference_update(asked.places)

        reactor = self._reactor("settler", tables.execute, handle)
        if self._state(state.tables).paused:
            self._groups(reactor).resume(GROUP)
        for share in range(self.members):
            reactor.run(0, share=share, seconds=1_000.0)
        parking = Parking(reactor=reactor)
        for parked in parking.streams(0):
            parking.replay(0, parked.stream, seconds=1_000.0)
        missing = {(stream, index) for stream, index, _ in self._feed(state.tables)} - done
        assert not missing, f"never handled: {sorted(missing)}"
        assert not owed, f"never came again: {sorted(owed)}"

    def _at(self, group: GroupState, stream: str) -> Checkpoint:
        """The checkpoint of the member whose a stream is."""
        return group.checkpoint_of(stream)

    def _steered(self, state: State, number: int, tables: int, slot: int | None) -> State:
        """What is owed once a group was steered, what is never to come, and what whoever did it must have counted."""
        kind = self.steering.get(number, "")
        was, now = self.stored(state.tables), self.stored(tables)
        if not kind or (was == now and (was is None or now is None or was.generation == now.generation)):
            return state
        if kind == "delete":
            self.met.add(kind)
            return state._replace(owed=state.done)
        if now is None or kind in ("pause", "resume"):
            return state
        if kind == "begin":
            self.met.add(kind)
            handled = self._handled(tables, now)
            return state._replace(done=state.done | handled, owed=state.owed - handled)
        assert was is not None, "a reset begins a group"
        return self._after_reset(state, was, now, tables, slot)

    def _after_reset(
        self, state: State, was: GroupState, now: GroupState, tables: int, slot: int | None
    ) -> State:
        done, owed, again, skipped = set(state.done), set(state.owed), 0, 0
        self.met.add("reset")
        for stream, index, at in self._feed(tables):
            place, comes = (stream, index), at > now.checkpoint
            met = _is_passed(was, stream, at) or _is_ahead(was, stream, index)
            if comes and place in done:
                owed.add(place)
            elif not comes and not _waits(now, stream, index):
                done.add(place)
                owed.discard(place)
            again += comes and met and stream not in now.parked
            skipped += not comes and not met and stream not in was.parked
            if comes and met and not _is_passed(was, stream, at):
                self.met.add("ahead")
        counted = state.counted if slot is None else put(state.counted, slot, (again, skipped))
        return state._replace(done=frozenset(done), owed=frozenset(owed), counted=counted)

    def _handled(self, tables: int, group: GroupState) -> frozenset[Place]:
        """What a group has handled, as its state tells."""
        return frozenset(
            (stream, index)
            for stream, index, at in self._feed(tables)
            if not _waits(group, stream, index)
            and (_is_passed(group, stream, at) or _is_ahead(group, stream, index))
        )

    def _given_up(self, past: Past, before: int, after: int) -> frozenset[Place]:
        """What a discard or a skip that has been written has given up."""
        was, now = self._state(before), self._state(after)
        freed = was.parked.keys() - now.parked.keys()
        self.met |= {past.kind} if freed else set()
        if past.kind == "skip" and was.parked != now.parked:
            self.met.add("skip")
            given_up = {name: (index, now.parked[name]) for name, index in was.parked.items()}
            assert all(end <= index + 1 for index, end in given_up.values()), (
                "a skip gives up more than an event"
            )
        elif past.kind == "discard":
            given_up = {stream: (was.parked[stream], now.ahead[stream]) for stream in freed}
        else:
            return frozenset()
        return frozenset(
            (stream, index) for stream, (first, end) in given_up.items() for index in range(first, end)
        )

    # ---------------------------------------------------------------------------------------- the processes, and tables

    def _next(self, past: Past) -> int | None:
        """What a process asks for next; None at its end."""
        if past not in self.following:
            self.following[past] = self._replay(past)
        return self.following[past]

    def _replay(self, past: Past) -> int | None:
        """The process from its beginning, with the answers that it has had."""
        answers, beyond = iter(past.answers), list[Asked]()

        def ask(what: Any) -> Any:
            answer = next(answers, None)
            if answer is None:
                # Whoever is asked for anything after that is told of the first.
                beyond.append(Asked(what))
                raise beyond[0]
            if answer == UNHEARD:
                raise Lost("unheard")
            return answer if isinstance(answer, str) else self.replies[answer]

        def handle(asked: Handling) -> None:
            if ask(asked) == FAILED:
                raise ValueError("fails")

        try:
            self._run(past, self._reactor(past.who, ask, handle, past.kind))
        except Asked as asked:
            number = self._number("asked", self.asked, asked.args[0])
            if past.kind in STEERING:
                self.steering[number] = past.kind
            return number
        return None

    def _run(self, past: Past, reactor: Reactor) -> None:
        if past.kind.startswith("react"):
            words = past.kind.split()
            share = next((int(word) for word in words if word.isdigit()), 0)
            seconds = 1.0 if "briefly" in words else 1_000.0
            reactor.run(0, share=share, seconds=seconds, careful="carefully" in words)
            return
        if past.kind in STEERING:
            self._steer(past, self._groups(reactor))
            return
        parking = Parking(reactor=reactor)
        try:
            match past.kind:
                case "replay":
                    parking.replay(0, "A-1", seconds=1_000.0)
                case "skip":
                    for parked in parking.streams(0):
                        parking.skip(0, parked.stream, parked.index)
                case _:
                    parking.discard(0, "A-1")
        except InvalidInput:
            return  # by then it is no longer parked

    def _groups(self, reactor: Reactor) -> Groups:
        member = reactor.member
        return Groups(member.reader, now=member.now, fresh=member.fresh)

    def _steer(self, past: Past, groups: Groups) -> None:
        with suppress(GroupMissing, BeyondTheEnd, InvalidInput):
            match past.kind:
                case "begin":
                    groups.begin(GROUP, like=MODEL)
                case "pause" | "resume" | "delete" as act:
                    getattr(groups, act)(GROUP)
                case "reset to here":
                    (standing,) = groups.standing(GROUP)
                    self._reset(past, groups, {0: standing.checkpoint})
                case kind:
                    self._reset(past, groups, RESETS[kind])

    def _reset(self, past: Past, groups: Groups, to: Start) -> None:
        (done,) = groups.reset(GROUP, to)
        self.returned[past] = (done.again, done.skipped)

    def _reactor(
        self,
        who: str,
        execute: Execute,
        handle: Callable[[Handling], None],
        kind: str = "",
        name: str = GROUP,
    ) -> Reactor:
        def handler(delivery: Delivery) -> None:
            first = delivery.events[0].index
            handle(Handling(delivery.stream, first, first + len(delivery.events)))
            if "briefly" in kind:
                driver.sleep(10.0)

        driver = driver_on(execute)
        _, of, members = kind.partition(" of ")
        reaction = Reaction(
            name=name,
            handler=handler,
            max_events=self.max_events,
            attempts=1,
            parallel=1,
            members=int(members) if of else self.members,
            on_failure=self.on_failure,
        )
        reader = FeedReader(
            driver=driver,
            table="index",
            histories=(StreamHistory(Streams(driver=driver, table="tips", layout=Tips())),),
        )
        member = Member(reaction=reaction, reader=reader, now=lambda: NOON, fresh=bytes_of(who))
        return Reactor(member=member, executor=Inline)

    def _told(self, past: Past, number: int) -> Past:
        """A process that has been answered once more. Whether its request was applied before, the driver knows."""
        return past._replace(answers=(*past.answers, number))

    def _perform(self, tables: int, number: int) -> tuple[int, int]:
        """What a request makes of the tables, and the reply to it."""
        if (tables, number) not in self.performed:
            op, changed = self.asked[number], self.tables[tables]
            if isinstance(op, Put | Update | Delete):
                changed = changed.copy()
            reply = replace(changed.execute(op), units=Units())
            after = self._tables_number(changed)
            was, now = self._state(tables), self._state(after)
            self.met |= {"shared"} if len(set(now.shares)) > 1 else set()
            if number not in self.steering:
                for stream in {*self.feed, *self.later}:
                    same = len(was.shares) == len(now.shares)
                    assert not same or self._at(was, stream) <= self._at(now, stream), (
                        "a checkpoint goes back"
                    )
                assert not was.paused or was.checkpoint == now.checkpoint, "committed in a pause"
                assert was.paused == now.paused, "a commit ends a pause"
            self.performed[tables, number] = after, self._number("reply", self.replies, reply)
        return self.performed[tables, number]

    def _append(self, tables: MemoryTables, stream: str) -> None:
        """One event, appended and indexed at once."""
        driver, fresh = driver_on(tables.execute), bytes_of(f"{stream} {len(tables.changes('tips'))}")
        Streams(driver=driver, table="tips", layout=Tips(), now=lambda: NOON, fresh=fresh).append(
            stream, [Event(type="x")]
        )
        (*_, image) = tables.changes("tips")
        indexer = Indexer(
            driver=driver,
            index_table="index",
            sources=(tips_source("tips"),),
            now=lambda: NOON,
            fresh=fresh,
        )
        indexer.register()
        indexer.index([Record(table="tips", sequence_number="1", image=image)])

    def _grown(self, number: int, stream: str) -> int:
        if (number, stream) not in self.grown:
            tables = self.tables[number].copy()
            self._append(tables, stream)
            self.grown[number, stream] = self._tables_number(tables)
        return self.grown[number, stream]

    def _state(self, number: int) -> GroupState:
        return self.stored(number) or GroupState()

    def stored(self, number: int) -> GroupState | None:
        """What the tables have of the group."""
        if number not in self.groups:
            self.groups[number] = perform(self.tables[number], load("index", STATE)).state
        return self.groups[number]

    def _feed(self, number: int) -> list[tuple[str, int, Any]]:
        if number not in self.feeds:
            self.feeds[number] = [
                (span.stream, index, after)
                for entry, after in Reading.whole(self.tables[number]).seen
                for span in entry.spans
                for index in range(span.index, span.next)
            ]
        return self.feeds[number]

    def _tables_number(self, tables: MemoryTables) -> int:
        content = f"{sorted(map(repr, tables.items('index')))} {len(tables.changes('tips'))}"
        return self._number("tables", self.tables, tables, content)

    def _number(self, what: str, values: list[Any], value: Any, key: str | None = None) -> int:
        number = self.numbers.setdefault((what, key or repr(value)), len(values))
        if number == len(values):
            values.append(value)
        return number

    def _shown(self, number: int) -> str:
        op = self.asked[number]
        return f"{type(op).__name__} {getattr(op, 'key', None) or getattr(op, 'item', op)['p']['S']}"


def _is_read_of_feed(op: Op | Handling) -> bool:
    """Whether a request reads the index or events: what nobody here writes, unless the feed grows."""
    if isinstance(op, Handling | Put | Update | Delete):
        return False
    key = getattr(op, "key", None)
    return key is None or not key["p"]["S"].startswith("$Reader")


def _is_passed(group: GroupState, stream: str, at: Checkpoint) -> bool:
    """Whether the checkpoint has passed an event."""
    return at <= group.checkpoint_of(stream)


def _is_ahead(group: GroupState, stream: str, index: int) -> bool:
    """Whether an event is handled, whatever the checkpoint is."""
    return index < max(group.ahead.get(stream, 0), group.parked.get(stream, 0))


def _waits(group: GroupState, stream: str, index: int) -> bool:
    """Whether an event waits in a parked stream."""
    return stream in group.parked and group.parked[stream] <= index
