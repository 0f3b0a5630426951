import sys
from dataclasses import replace
from typing import get_args

import pytest

from bench.calving import play
from bench.corpus import Kind, Workload
from bench.local import SPECS, local_at
from bench.replay import BOUND, LONG, Long, read
from epochal.contrib.equinox import memory_tips
from epochal.contrib.equinox.port import TIPS
from epochal.pages.items import STREAMS
from epochal.testing.stores import memory_streams, memory_tables


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="memory is told by /proc")
@pytest.mark.parametrize("events", [2_000, pytest.param(100_000, marks=pytest.mark.proof)])
@pytest.mark.parametrize("laid", ["pages", pytest.param("tips", marks=pytest.mark.proof)])
def test_a_long_stream_is_read_completely_and_in_order_within_64_mb_above_idle(ddbl, laid, events):
    long = Long(layout=laid, events=events)
    with local_at(ddbl, SPECS[laid]) as local:
        local.fill(long.items())
        took = read(ddbl, local, long, "library")

    assert took.events == events
    assert took.complete
    assert took.above_idle <= BOUND == 64 * 1024 * 1024


def test_a_read_that_lacks_an_event_or_has_another_is_not_complete(ddbl):
    long = Long(events=20)
    with local_at(ddbl, SPECS[long.layout]) as local:
        local.fill(long.items())
        assert not read(ddbl, local, Long(events=21), "library").complete
        assert not read(ddbl, local, Long(events=20, size=301), "library").complete


def test_the_long_stream_is_calved_as_the_library_calves_it():
    tables = memory_tables()
    play(memory_tips(tables), Workload(size=300, length=20))
    calves = [(item["i"], item["n"]) for item in tables.items(TIPS.kind) if "etag" not in item]

    assert [(item["i"], item["n"]) for item in Long(layout="tips", events=20).items()][:-1] == calves
    assert len(calves) == 9


@pytest.mark.parametrize("kind", get_args(Kind))
def test_the_long_stream_has_the_pages_that_the_library_makes(kind):
    (long,) = [each for each in LONG if each.layout == "pages" and each.kind == kind]
    tables = memory_tables()
    play(memory_streams(tables), Workload(size=long.size, kind=kind, length=30))
    pages = [(item["i"], item["n"]) for item in tables.items(STREAMS.kind)]

    assert [(item["i"], item["n"]) for item in replace(long, events=30).items()] == pages
