"""The page of comparisons: Epochal's figures are recomputed, and the plot is drawn from its table."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path

import pytest

from bench import plots
from bench.bill import DEPLOYED
from epochal.model.events import Event, Unfold
from epochal.model.expected_version import NO_STREAM, ExpectedVersion
from epochal.model.outcomes import Appended
from epochal.plan.values import Units
from epochal.store.streams import Streams
from epochal.testing.stores import memory_streams

DOCS = Path(__file__).resolve().parents[2] / "docs"
TEXT = (DOCS / "compared.md").read_text("utf-8")
LIMITS = (DOCS / "guide" / "tour.md").read_text("utf-8")


@pytest.mark.parametrize("name", plots.PLOTS)
def test_a_plot_is_drawn_from_its_table(name: str) -> None:
    drawn = (DOCS / "plots" / name).read_text("utf-8")
    assert drawn == plots.plot(name), "python -m bench.plots draws it anew"


def test_a_bar_is_as_long_as_its_figure() -> None:
    bars = (("us", "1.0"), ("them", "4"), ("others", "crashes"))
    shown = plots.drawn("", [plots.Panel("Appends", bars)])
    us, them, others = (float(long) for long in re.findall(r'<rect .* width="([\d.]+)"', shown))
    assert (us * 4, others) == (pytest.approx(them), 0)


def test_the_bills_have_a_panel_for_each_pace_in_the_order_of_the_steps() -> None:
    panels = plots.bills((DOCS / "reference" / "cost.md").read_text("utf-8"))
    steady, trickle = (panel.bars[0] for panel in panels)
    assert (steady[0], trickle[0]) == (DEPLOYED.name, DEPLOYED.name)
    assert [len(panel.bars) for panel in panels] == [5, 5]
    readme = " ".join((DOCS.parent / "README.md").read_text("utf-8").split())
    said = f"cost {steady[1]} dollars at a hundred a second, and {trickle[1]} at a million a month"
    assert said in readme


def test_the_readme_says_what_a_reaction_adds_as_the_table_has_it() -> None:
    cost = (DOCS / "reference" / "cost.md").read_text("utf-8")
    alone, reacting = (
        [float(cell) for cell in re.findall(r"[\d.]+(?= \|)", line)[-2:]]
        for line in cost.splitlines()
        if line.startswith(("| 15 streams ", "| one reaction, which does nothing"))
    )
    steady, trickle = (then - before for before, then in zip(alone, reacting, strict=True))
    readme = " ".join((DOCS.parent / "README.md").read_text("utf-8").split())
    assert f"a reaction adds {steady:.2f} and {trickle:.2f}." in readme


Workload = Callable[[Streams, random.Random], int]


def _event(luck: random.Random, size: int = 300) -> Event:
    return Event(type="Happened", data=luck.randbytes(size))


def _append(
    streams: Streams, stream: str, events: list[Event], expected: ExpectedVersion, **more: object
) -> Appended:
    outcome = streams.append(stream, events, expected=expected, **more)  # type: ignore[arg-type]
    assert isinstance(outcome, Appended)
    return outcome


def short_streams(streams: Streams, luck: random.Random, size: int = 300) -> int:
    """10 times load and append, of 40 streams: 200 cost the same an event."""
    for number in range(40):
        for _ in range(10):
            found = streams.load(f"Short-{number}")
            _append(
                streams, f"Short-{number}", [_event(luck, size)], NO_STREAM if found is None else found.token
            )
    return 400


def one_stream(streams: Streams, luck: random.Random, *, snapshot: bool = False) -> int:
    """1,000 appends, each on the token of the one before."""
    expected: ExpectedVersion = NO_STREAM
    for _ in range(1_000):
        unfolds = [Unfold(type="Snapshot", data=luck.randbytes(1_000))] if snapshot else None
        expected = _append(streams, "One-0", [_event(luck)], expected, unfolds=unfolds).token
    return 1_000


def batches(streams: Streams, luck: random.Random) -> int:
    """100 appends of 10 events."""
    expected: ExpectedVersion = NO_STREAM
    for _ in range(100):
        expected = _append(streams, "Batch-0", [_event(luck) for _ in range(10)], expected).token
    return 1_000


@cache
def _cost(workload: Workload) -> Units:
    """Units of one event of a workload, by AWS's billing rules."""
    streams = memory_streams()
    events = workload(streams, random.Random(7))
    spent = streams.driver.meter.units
    return Units(read=spent.read / events, write=spent.write / events)


def _said(row: str) -> float:
    """Epochal's figure in a row of the table of costs."""
    line = next(line for line in TEXT.splitlines() if line.startswith(f"| {row}"))
    return float(line.split("|")[2].replace(",", ""))


@pytest.mark.parametrize(
    ("row", "workload", "kind"),
    [
        ("short streams, load and append: write units", short_streams, "write"),
        ("… read units", short_streams, "read"),
        ("one stream of 1,000 events, loaded now and then: write units", one_stream, "write"),
        ("… with a 1 KB snapshot each time", partial(one_stream, snapshot=True), "write"),
        ("batches of 10: write units", batches, "write"),
    ],
)
@pytest.mark.slow
def test_the_costs_in_it_are_what_the_library_costs(row: str, workload: Workload, kind: str) -> None:
    assert round(getattr(_cost(workload), kind), 1) == _said(row)


@pytest.mark.slow
def test_what_it_says_of_events_of_a_kilobyte_is_so() -> None:
    small, large = _cost(short_streams), _cost(partial(short_streams, size=1_000))
    sentence = r"1 KB that does not compress costs (\d+\.\d+) write units, one of 300 bytes costs (\d+\.\d+)"
    (said,) = re.findall(sentence, " ".join(LIMITS.split()))
    assert (str(round(large.write, 1)), str(round(small.write, 1))) == said


@pytest.mark.slow
def test_a_replay_returns_every_event_of_a_stream_beyond_the_size_of_a_query() -> None:
    streams, luck = memory_streams(), random.Random(7)
    expected: ExpectedVersion = NO_STREAM
    for _ in range(500):
        expected = _append(streams, "Long-0", [_event(luck, 1_000) for _ in range(10)], expected).token
    assert sum(1 for _ in streams.read("Long-0")) == _said("replay of 5,000 events of 1 KB returns") == 5_000
