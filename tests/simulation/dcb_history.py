"""What was asked of tagged events and what was answered, against what was committed, and when.

The judge of G11 is the order of commits: every event that matches an append's condition, and was committed before it,
must be among those that its position stands for. Which those are is kept beside the position, as a set of ids.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import takewhile

from epochal.contrib.sekiban.items import read_event
from epochal.contrib.sekiban.transaction import tags_of
from epochal.layout.queries import fence_after
from epochal.model.events import Event, Recorded
from epochal.model.outcomes import Appended, Conflict
from epochal.model.positions import Position
from epochal.model.tags import Query
from tests.simulation.dcb_world import World, tag_of

Ids = frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """A position, and the matching events that whoever holds it has seen.

    Attributes:
        broader: it comes from a read of a broader query: it claims no event that this did not show, but maybe fewer.
    """

    query: Query
    position: Position
    seen: Ids
    broader: bool = False


@dataclass(slots=True, kw_only=True)
class Attempt:
    """One call of append. `outcome` is None where it died or gave up."""

    events: tuple[Event, ...]
    query: Query | None = None
    known: Known | None = None
    outcome: Appended | Conflict | None = None

    @property
    def ids(self) -> Ids:
        return frozenset(event.id or "" for event in self.events)

    @property
    def seen(self) -> Ids:
        return frozenset() if self.known is None else self.known.seen

    def learned(self) -> Known:
        """Return the position that came back."""
        assert self.outcome is not None
        assert self.query is not None
        new = {event.id for event in self.outcome.events}
        if isinstance(self.outcome, Appended) and self.outcome.replayed:
            new = set()
        broader = self.known is not None and self.known.broader
        return Known(query=self.query, position=self.outcome.position, seen=self.seen | new, broader=broader)


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """A read, what it was told, and the events that had been acknowledged when it began.

    Attributes:
        last: of a read of the last few, which come newest first: all that lies below its position.
    """

    query: Query
    after: Known | None
    acknowledged: Ids
    events: tuple[Recorded, ...]
    position: Position
    last: Ids | None = None

    @property
    def before(self) -> Ids:
        """Events that had been seen when the read began."""
        return frozenset() if self.after is None else self.after.seen

    @property
    def broader(self) -> bool:
        return self.after is not None and self.after.broader

    def learned(self) -> Known:
        seen = self.before | {event.id for event in self.events} | (self.last or frozenset())
        return Known(query=self.query, position=self.position, seen=seen, broader=self.broader)

    def learned_of(self, place: int) -> Known:
        """Return what the position of one of the events has seen, if they are read forward."""
        position = self.events[place].position
        assert position is not None, "an event that tells no position"
        seen = self.before | {event.id for event in self.events[: place + 1]}
        return Known(query=self.query, position=position, seen=seen, broader=self.broader)


@dataclass(slots=True)
class History:
    """All calls of one simulation, in the order in which they were made."""

    world: World
    attempts: list[Attempt] = field(default_factory=list)
    reads: list[Read] = field(default_factory=list)

    def acknowledged(self) -> Ids:
        """Return the events whose appends have been answered."""
        written = (a for a in self.attempts if isinstance(a.outcome, Appended))
        return frozenset(event_id for attempt in written for event_id in attempt.ids)

    def check(self) -> None:
        """Check every promise, on what is stored and on what was answered."""
        self.check_tables()
        self._check_atomicity()
        self.check_answers()

    def check_tables(self) -> None:
        """Compare what is stored with what was committed."""
        check_tables(self.world)

    def check_answers(self) -> None:
        """Compare what was answered with what is stored."""
        stored = {event.id: event for event in self.world.events()}
        for attempt in self.attempts:
            self._check_condition(attempt, stored)
            self._check_outcome(attempt, stored)
        for read in self.reads:
            self._check_read(read, stored)

    def _check_atomicity(self) -> None:
        committed = self.world.tables.committed
        ids = [event_id for each in committed for event_id in each]
        assert len(ids) == len(set(ids)), "an event was committed twice"
        assert {frozenset(each) for each in committed} <= {a.ids for a in self.attempts}, "a part committed"

    def _check_condition(self, attempt: Attempt, stored: Mapping[str, Recorded]) -> None:
        if attempt.query is None or not attempt.ids & stored.keys():
            return
        before = takewhile(lambda event: event.id not in attempt.ids, stored.values())
        unseen = [event for event in before if event.id not in attempt.seen]
        in_the_way = [event for event in unseen if attempt.query.matches(event.type, event.tags)]
        assert not in_the_way, f"a condition was violated: committed after {in_the_way}"

    def _check_outcome(self, attempt: Attempt, stored: Mapping[str, Recorded]) -> None:
        applied = attempt.ids & stored.keys()
        match attempt.outcome:
            case Appended(events=events):
                assert {event.id for event in events} == applied == attempt.ids, "written, yet not stored"
                assert all(stored[event.id] == event for event in events), "written as something else"
            case Conflict(events=events):
                assert not applied, "rejected, yet committed"
                assert events, "rejected without a reason"
                for event in events:
                    assert stored[event.id] == event
                    assert attempt.query is not None
                    assert attempt.query.matches(event.type, event.tags), "a false conflict: no match"
                    known = attempt.known is None or not attempt.known.broader
                    assert event.id not in attempt.seen or not known, "a false conflict: seen before"
            case None:
                pass

    def _check_read(self, read: Read, stored: Mapping[str, Recorded]) -> None:
        """Check that a read has exactly the events up to its position, and all that were acknowledged before."""
        matching = {each.id for each in stored.values() if read.query.matches(each.type, each.tags)}
        assert {event.id for event in read.events} <= matching, "read what does not match"
        known = read.learned().seen & matching
        assert read.acknowledged & matching <= known, "an acknowledged event is missing"
        keys = [event.key for event in read.events]
        ordered = keys if read.last is None else keys[::-1]
        assert ordered == sorted(keys)
        assert len({event.id for event in read.events}) == len(keys), "read twice"
        if read.last is not None:
            wanted = [stored[event_id].key for event_id in (read.last & matching) - read.before]
            assert keys == sorted(wanted, reverse=True)[: len(keys)], "not the last ones"
        below = self.below(read.query, read.position)
        if read.broader:
            assert below <= known, "the position claims more than was read"
            return
        if read.after is not None:
            assert not read.after.seen & {event.id for event in read.events}, "read again"
            assert read.after.position <= read.position, "the position went backwards"
        assert below == known, "position and events differ"

    def below(self, query: Query, position: Position) -> Ids:
        """Return the matching events that a position includes."""
        stored, places = self.decided()
        fenced = fence_after(query, position, type_heads=self.world.type_heads)
        found: set[str] = set()
        for number, (item, tags) in enumerate(zip(query.items, fenced.tags, strict=True)):
            reached = [set(places.get(tag, [])[: position.seen[tag].count]) for tag in tags]
            ids = set.intersection(*reached) if number in fenced.together else set.union(*reached)
            found |= {each for each in ids if item.matches(stored[each].type, stored[each].tags)}
        return frozenset(found)

    def decided(self) -> tuple[Mapping[str, Recorded], Mapping[str, Sequence[str]]]:
        """Return every event by its id, and the ids of each tag's events by index, including hidden ones."""
        decided = self.world.tables.decided
        stored = {
            each["eventId"]["S"]: read_event(each)
            for each in decided
            if "eventId" in each and "payload" in each
        }
        places: dict[str, list[str]] = {}
        for item in decided:
            if "tagIndex" in item:
                places.setdefault(tag_of(item), []).append(item["eventId"]["S"])
        return stored, places


def check_tables(world: World) -> None:
    """Check that entries, heads and change records all contain what was committed, in that order."""
    order = world.events()
    expected: dict[str, list[Recorded]] = {}
    for event in order:
        plain = Event(type=event.type, data=event.data, tags=event.tags)
        for tag in tags_of(plain, type_heads=world.type_heads):
            expected.setdefault(tag, []).append(event)
    assert len(order) == len(list(world.tables.items("events"))), "an event that no transaction wrote"
    assert world.heads().keys() == expected.keys(), "a tag lacks its head"
    for tag, events in expected.items():
        check_tag(world, tag, events)
    for tag, spans in world.spans().items():
        told = [event_id for _, ids in spans for event_id in ids]
        assert told == [event.id for event in expected[tag]], f"tag {tag}: the feed is told something else"
        assert all(n == len(ids) for n, ids in spans), f"tag {tag}: a head counts wrongly"


def check_tag(world: World, tag: str, events: Iterable[Recorded]) -> None:
    """Check that indices have no gap, that ids increase, and that the head is at the end."""
    events = list(events)
    entries = [item for item in world.entries() if item["pk"]["S"] == f"TAG#{tag}"]
    assert [int(item["tagIndex"]["N"]) for item in entries] == list(range(len(events))), f"tag {tag}: a gap"
    ids = [item["sortableUniqueId"]["S"] for item in entries]
    assert ids == sorted(set(ids)), f"tag {tag}: sortable ids do not increase"
    assert [item["eventId"]["S"] for item in entries] == [event.id for event in events], f"tag {tag}: order"
    assert ids == [event.place for event in events]
    reached = world.heads()[tag].reached
    assert (reached.count, reached.last) == (len(events), ids[-1]), f"tag {tag}: its head is elsewhere"
