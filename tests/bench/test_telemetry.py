from dataclasses import replace

import pytest

from bench.telemetry import CASES, LATENCY, Took, telemetry


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.size} {case.kind}")
def test_a_thousand_events_a_second_on_one_stream_take_no_more_than_promised(case):
    assert case.allows(telemetry(case.size, case.kind, events=500))


def test_a_bound_that_is_missed_is_told():
    case = replace(CASES[0], write=0.3, requests=0.21)
    kept = Took(write=0.3, read=0.0, requests=0.21, slowest=3 * LATENCY)

    assert case.allows(kept)
    assert not case.allows(replace(kept, write=0.31))
    assert not case.allows(replace(kept, requests=0.22))
    assert not case.allows(replace(kept, slowest=4 * LATENCY))
