import random
from itertools import pairwise, product

import pytest

from bench.calving import STREAM
from bench.fullness import (
    BARE,
    BOUNDS,
    FRAME,
    SIZES,
    Stream,
    by_rule,
    excess,
    extended,
    left_behind,
    optimum,
    streams,
)
from bench.pages import STREAMS, store
from epochal.model.events import Event, Unfold
from epochal.pages import fullness, writes
from epochal.plan.limits import ITEM_BYTES
from epochal.plan.values import write_units
from epochal.store.driver import Driver, Meter
from epochal.testing.memory import MemoryTables

SHORT = [
    Stream(size=300, shape="alike", length=9),
    Stream(size=500, shape="±50 %", length=9),
    Stream(size=300, shape="long tail", unfold=1000, length=8),
    Stream(size=200, shape="±30 %", unfold=5000, unfolding="first", length=8),
    Stream(size=900, shape="by turns", unfold=300, unfolding="tenth", length=8),
]


LONG = [
    Stream(size=300, shape="±50 %", length=200),
    Stream(size=700, shape="few large", length=200),
    Stream(size=400, shape="alike", unfold=3000, unfolding="tenth", length=200),
    Stream(size=300, shape="±30 %", unfold=500, length=200),
]
EVENT = 1 + (1 + 8) + 2
"""Bytes that an event takes besides its data: flags, type, length."""
UNFOLD = 1 + (1 + 1 + 2 + 8) + (1 + (1 + 5) + 2)
"""And unfolds of one: name, what stands before the content, flags, type, length."""


def cost(stream: Stream, begins: tuple[bool, ...]) -> float:
    """What a course costs, append by append."""
    spent, carried, before = 0.0, 0, 0
    for begin, (grown, after, replaces) in zip((True, *begins), stream.appends(), strict=True):
        if begin:
            spent += left_behind(carried, before, keeps_unfolds=not replaces) if carried else 0
            spent += write_units(BARE + grown + after)
            carried = grown
        else:
            spent += extended(carried, grown, before, after)
            carried += grown
        before = after
    return spent


@pytest.mark.parametrize("stream", SHORT, ids=str)
def test_the_optimum_is_the_cheapest_of_all_courses(stream):
    courses = [cost(stream, begins) for begins in product((True, False), repeat=stream.length - 1)]

    assert optimum(stream) == pytest.approx(min(courses))
    assert min(courses) < max(courses)


@pytest.mark.parametrize(
    "shape",
    [
        shape if shape in ("alike", "long tail") else pytest.param(shape, marks=pytest.mark.proof)
        for shape in BOUNDS
    ],
)
def test_pages_are_left_at_no_more_than_the_bound_above_the_optimum(shape):
    assert max(excess(stream) for stream in streams(shape, SIZES[::4])) <= BOUNDS[shape]


@pytest.mark.parametrize("size", SIZES)
def test_appends_that_are_alike_cost_no_write_unit_more_than_on_pages_of_their_own(size):
    """None can cost less: so without unfolds no rule is better."""
    stream = Stream(size=size, shape="alike")
    alone = sum(write_units(BARE + grown) for grown, _, _ in stream.appends())

    assert by_rule(stream).units == alone


@pytest.mark.parametrize("stream", LONG, ids=str)
def test_the_library_is_charged_what_the_arithmetic_says(stream, monkeypatch):
    """But for the digits of indices, which are fewer at first. Unfolds that stay move on, as the optimum's do."""
    for module in (writes, fullness):
        monkeypatch.setattr(module, "REFER_FROM", ITEM_BYTES)
    tables, rng = MemoryTables({"streams": STREAMS}), random.Random(1)
    streams = store(Driver(execute=tables.execute, meter=Meter()), "streams")
    for grown, unfolds, replaces in stream.appends():
        event = Event(type="Happened", data=rng.randbytes(grown - FRAME - EVENT))
        state = Unfold(type="State", data=rng.randbytes(unfolds - UNFOLD)) if unfolds else None
        streams.append(STREAM, [event], unfolds=[state] if state and replaces else None)

    assert streams.driver.meter.units.write == pytest.approx(by_rule(stream).units, rel=0.02)
    assert len(list(tables.items("streams"))) > 10


def test_a_rule_that_never_leaves_a_page_or_always_does_costs_several_times_as_much():
    small = Stream(size=300, shape="alike", unfold=20_000, unfolding="first")
    never, always = by_rule(small, lambda *_: False), by_rule(small, lambda *_: True)

    assert never.all > 1.5 * by_rule(small).all
    assert always.all > 1.5 * by_rule(small).all


def test_larger_unfolds_are_left_behind_more_seldom():
    pages = [
        by_rule(Stream(size=300, shape="alike", unfold=unfold)).all
        - by_rule(Stream(size=300, shape="alike", unfold=unfold)).units
        for unfold in (1000, 5000, 20_000)
    ]
    each = [left_behind(0, unfold, keeps_unfolds=False) for unfold in (1000, 5000, 20_000)]

    assert all(
        few < many for many, few in pairwise(spent / one for spent, one in zip(pages, each, strict=True))
    )
