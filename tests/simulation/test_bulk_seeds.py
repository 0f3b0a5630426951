"""Many appends in one call, by seed: processes whose calls meet on one stream, under faults and deaths, with keys that
others use too. Each append is made once or not at all, as its answer says, where it was expected, and in its order.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, pairwise

from epochal.errors import InvalidInput, Unavailable
from epochal.model.events import Event
from epochal.model.expected_version import ANY, NO_STREAM, STREAM_EXISTS, AtVersion, ExpectedVersion
from epochal.model.outcomes import Appended, Conflict, Undetermined
from epochal.model.tokens import Token
from epochal.store.bulk import Answer, Bulk, BulkAppend
from epochal.store.streams import Streams
from tests.simulation.expectations import check_conflict
from tests.simulation.histories import played
from tests.simulation.page_items import PAGE_ITEMS
from tests.simulation.seeds import ranges
from tests.simulation.stream_simulation import OneStream, tables_of

SIZE, COUNT = 150, 32


@dataclass(slots=True)
class Asked:
    """An append of a call, and its answer; None where its process died. `made`: its key had been answered before."""

    append: BulkAppend
    name: bytes
    made: bool = False
    answer: Answer | None = None


@dataclass(slots=True)
class Bulks(OneStream):
    """Processes that make several appends in each call; each append has a name, which is what its events say."""

    calls: list[list[Asked]] = field(default_factory=list)
    places: dict[bytes, list[int]] = field(default_factory=dict)

    def act(self, luck: random.Random, store: Streams) -> None:
        match luck.choice(("bulk",) * 8 + ("one", "prune", "delete")):
            case "bulk":
                self._call(luck, store, luck.randint(2, 5))
            case "one":
                self._call(luck, store, 1)
            case "prune":
                store.prune(self.stream, luck.randint(0, 9))
            case _:
                store.try_delete(self.stream, leave_open=luck.random() < 0.9)

    def _call(self, luck: random.Random, store: Streams, count: int) -> None:
        state = store.load(self.stream) if luck.random() < 0.3 else None
        call = [self._asked(luck, None if state is None else state.token) for _ in range(count)]
        for number, asked in enumerate(call):
            asked.name = asked.name or f"{len(self.calls)}.{number}".encode()
        self.calls.append(call)
        many = [self._named(asked) for asked in call]
        for asked, answer in zip(call, Bulk(store, at_once=1, seconds=10_000).append(many), strict=True):
            asked.answer = answer

    def _asked(self, luck: random.Random, token: Token | None) -> Asked:
        key = luck.choice((None, None, "k", "l", "m"))
        version = 0 if token is None else token.version
        expected: ExpectedVersion = luck.choice(
            (
                ANY,
                ANY,
                ANY,
                NO_STREAM,
                STREAM_EXISTS,
                AtVersion(version + luck.randint(0, 3)),
                token or NO_STREAM,
            )
        )
        append = BulkAppend(
            stream=self.stream,
            events=[Event(type="E")] * (1 if key else luck.randint(1, 2)),
            unfolds=[] if key is None and luck.random() < 0.1 else None,
            expected=expected,
            idempotency_key=key,
        )
        answered = (each for call in self.calls for each in call if isinstance(each.answer, Appended))
        made = key is not None and any(each.append.idempotency_key == key for each in answered)
        return Asked(append=append, name=(key or "").encode(), made=made)

    def _named(self, asked: Asked) -> BulkAppend:
        events = [Event(type=each.type, data=asked.name) for each in asked.append.events]
        return replace(asked.append, events=events)

    def check(self) -> None:
        self.world.audit()
        written: dict[int, bytes] = {}
        for seen in chain.from_iterable(map(self.kind.events, self.world.images())):
            written[seen.index] = seen.content.data.data  # type: ignore[attr-defined]
        for index, name in sorted(written.items()):
            self.places.setdefault(name, []).append(index)
        for call in self.calls:
            for asked in call:
                self._judge_one(asked)
            self._check_order(call)

    def _judge_one(self, asked: Asked) -> None:
        found, count = self.places.get(asked.name, []), len(asked.append.events)
        assert len(found) in (0, count), f"{asked.name!r} was made {len(found)} times over"
        keyed = asked.append.idempotency_key is not None
        match asked.answer:
            case Appended(first=first, version=version):
                assert found == list(range(first, version)), f"{asked.name!r} is at {found}, not {first}"
                if not keyed:
                    self._check_followed(asked.append.expected, first)
            case Conflict() as conflict:
                check_conflict(asked.append.expected, conflict)
                assert not asked.made, "a repeated key is in conflict"
                assert keyed or not found, f"{asked.name!r}: a conflict, and it is at {found}"
            case Undetermined(first=first):
                assert self.world.low() > first, "undetermined, yet the evidence is there"
            case Unavailable(maybe_applied=False) | InvalidInput():
                assert keyed or not found, f"{asked.name!r}: an error, and it is at {found}"
            case None | Unavailable():
                pass
            case other:
                raise AssertionError(other)

    def _check_followed(self, expected: ExpectedVersion, first: int) -> None:
        if expected is NO_STREAM:
            assert first == 0, "made where there was a stream"
        elif expected is STREAM_EXISTS:
            assert first > 0, "made where there was none"
        elif isinstance(expected, AtVersion | Token):
            assert first == expected.version, f"made at {first}, though {expected} was expected"

    def _check_order(self, call: Sequence[Asked]) -> None:
        firsts = [
            asked.answer.first
            for asked in call
            if isinstance(asked.answer, Appended) and not asked.answer.replayed
            if not asked.append.idempotency_key
        ]
        assert all(earlier < later for earlier, later in pairwise(firsts)), f"out of order: {firsts}"


def replay(seed: int) -> Bulks:
    """Play a seed and check what came of it; a failure names it."""
    return played(Bulks(seed, tables_of(PAGE_ITEMS), kind=PAGE_ITEMS))


@ranges(SIZE, COUNT)
def test_each_append_of_a_call_is_made_once_or_not_at_all_as_it_is_told(seeds: range) -> None:
    for seed in seeds:
        replay(seed)
