import pytest

from bench.catching_up import Load, with_data, without_data


@pytest.mark.parametrize("events", [200, pytest.param(2_000, marks=pytest.mark.proof)])
def test_every_way_sees_every_event_and_the_library_asks_for_little_more_than_bare_boto3(ddbl, events):
    found = without_data(ddbl, Load(events=events, appends=10), rounds=1)
    bare, spans, items = (found.took(way) for way in ("bare", "spans", "items"))

    assert bare.events == spans.events == items.events >= events
    assert items.requests <= 4 * bare.requests
    assert items.read_units <= bare.read_units + 12
    assert events == 200 or found.ratio("items", "bare") > 0.1, "told of a run long enough"


def test_with_data_the_library_makes_the_recorded_requests_and_no_others(ddbl):
    found = with_data(ddbl, Load(events=100, appends=10), rounds=1)
    library, requests = found.took("library"), found.took("requests")

    assert library.events >= 100
    assert (library.requests, library.read_units) == (requests.requests, requests.read_units)
