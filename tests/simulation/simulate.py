"""Every simulation over as many seeds as you like: `make simulate SEEDS=100000`.

Each kind of world gets its share of the histories, the dear ones less. A world that fails is not played further than
it takes to find a short example: the seed is printed with the command that plays it again, and with its story, which
tells who asked for what, in the order of turns.

    make simulate SEEDS=20000                     that many histories, from seed 0 on
    make simulate SEEDS=20000 FIRST=5000          the same number, of seeds that nobody has tried
    make simulate WORLD=aggregates SEED=105       one history, told

Nothing but the seed decides what happens, so histories are the same on every machine.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial

from tests.simulation import (
    aggregate_simulation,
    dcb_simulation,
    index_world,
    reaction_world,
    stream_simulation,
    system_checks,
    tag_simulation,
    test_dcb_importing,
)
from tests.simulation.stories import telling

LOOK = 300
"""Seeds tried after one that fails, in search of a shorter story."""

STORY = 60
"""Lines of a story that are shown: its end, since what is wrong is found late."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A kind of world.

    Attributes:
        play: live one seed's history and judge it; raises where a promise is broken.
        share: of all histories, in hundredths.
    """

    name: str
    about: str
    play: Callable[[int], object]
    share: int


KINDS = (
    Kind(
        name="streams",
        about="appends, keys, calves, prunes, deletions, reads",
        play=stream_simulation.replay,
        share=40,
    ),
    Kind(
        name="aggregates",
        about="locks, snapshots, replays, another library",
        play=aggregate_simulation.replay,
        share=20,
    ),
    Kind(
        name="tagged-events",
        about="conditions, positions, repeated appends, clocks",
        play=dcb_simulation.replay,
        share=8,
    ),
    Kind(
        name="tagged-pages",
        about="the same in pages, which fill",
        play=tag_simulation.replay,
        share=8,
    ),
    Kind(
        name="imports",
        about="a history imported beside writers, killed",
        play=test_dcb_importing.play,
        share=1,
    ),
    *(
        Kind(
            name=f"index-of-{layout}",
            about="indexers that overlap and die, readers",
            play=partial(index_world.run, layout=layout),
            share=5,
        )
        for layout in ("tips", "journal", "dcb")
    ),
    Kind(name="reactions", about="reactors, parking, an operator", play=reaction_world.run, share=4),
    Kind(
        name="everything",
        about="writers of all layouts, the feed, two groups",
        play=system_checks.play,
        share=4,
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Violated:
    """A seed that breaks a promise, with the story of how."""

    seed: int
    why: str
    story: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """Results of one kind of world."""

    kind: Kind
    histories: int
    seconds: float
    violated: Violated | None = None

    def row(self) -> str:
        rate = self.histories / self.seconds * 60 if self.seconds else 0
        result = "no violation" if self.violated is None else f"VIOLATED by seed {self.violated.seed}"
        return f"{self.kind.name:18}{self.histories:>10,}{rate:>12,.0f}   {result}"


HEADING = f"{'world':18}{'histories':>10}{'per minute':>12}   result"


def tell(kind: Kind, seed: int) -> Violated | None:
    """Play a seed and record its story; return None if every promise holds."""
    with telling() as story:
        try:
            kind.play(seed)
        except Exception as error:  # noqa: BLE001  whatever it is, it is shown
            return Violated(seed=seed, why=str(error), story=tuple(story))
    return None


def play(kind: Kind, seeds: range, say: Callable[[str], None]) -> Tally:
    """Play seeds until one fails, then a few more to find a short story."""
    began, told = time.process_time(), time.monotonic()
    for count, seed in enumerate(seeds, start=1):
        try:
            kind.play(seed)
        except Exception as error:  # noqa: BLE001  whatever it is, it is told
            seconds = time.process_time() - began
            once = Violated(seed=seed, why=f"it failed once, and not when played again: {error}", story=())
            return Tally(kind=kind, histories=count, seconds=seconds, violated=shortest(kind, seed) or once)
        if time.monotonic() - told > 5:
            told = time.monotonic()
            say(f"{kind.name}: {count:,} of {len(seeds):,}")
    return Tally(kind=kind, histories=len(seeds), seconds=time.process_time() - began)


def shortest(kind: Kind, first: int) -> Violated | None:
    """Return the failing seed with the shortest story, from `first` on."""
    told = (tell(kind, seed) for seed in range(first, first + LOOK))
    found = [violated for violated in told if violated is not None]
    return min(found, key=lambda each: len(each.story) or len(each.why), default=None)


def shown(kind: Kind, violated: Violated) -> Iterable[str]:
    """Yield the command that repeats a failure, what is wrong, and the end of the story."""
    yield f"\n{kind.name}, seed {violated.seed}; to see it again: make simulate WORLD={kind.name} SEED={violated.seed}"
    left_out = len(violated.story) - STORY
    if left_out > 0:
        yield f"  … {left_out} requests before these"
    yield from (f"  {line}" for line in violated.story[-STORY:])
    yield violated.why


def main(arguments: Sequence[str]) -> int:
    """Run the command, and return 1 if a promise was broken."""
    asked = _parser().parse_args(arguments)
    kinds = [kind for kind in KINDS if asked.world in ("", kind.name)]
    if asked.seed is not None:
        return _one(kinds, asked.seed)
    shares = sum(kind.share for kind in kinds)
    tallies = []
    _say(HEADING)
    for kind in kinds:
        histories = max(1, asked.seeds * kind.share // shares)
        seeds = range(asked.first, asked.first + histories)
        tallies.append(play(kind, seeds, _progress))
        _say(tallies[-1].row())
    histories, seconds = sum(each.histories for each in tallies), sum(each.seconds for each in tallies)
    _say(f"{'all':18}{histories:>10,}{histories / seconds * 60:>12,.0f}   of one core")
    violations = [(each.kind, each.violated) for each in tallies if each.violated is not None]
    for kind, violated in violations:
        _say(*shown(kind, violated))
    return 1 if violations else 0


def _one(kinds: Sequence[Kind], seed: int) -> int:
    broken = 0
    for kind in kinds:
        violated = tell(kind, seed)
        broken += violated is not None
        if violated is None:
            _say(f"{kind.name}, seed {seed}: every promise holds")
        else:
            _say(*shown(kind, violated))
    return 1 if broken else 0


def _say(*lines: str) -> None:
    sys.stdout.write("\n".join(lines) + "\n")
    sys.stdout.flush()


def _progress(line: str) -> None:
    sys.stderr.write(f"  {line}\n")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="make simulate", description="Simulated histories, by seed.")
    parser.add_argument(
        "--seeds", type=int, default=10_000, help="how many histories, of all worlds together"
    )
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--seed", type=int, default=None, help="only this one, and its story where it fails")
    parser.add_argument("--world", default="", choices=["", *(kind.name for kind in KINDS)])
    return parser


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)
