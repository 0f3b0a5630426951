from bench.exporting import MEMORY, compared


def test_an_export_makes_the_recorded_requests_and_no_others_and_has_every_event(ddbl):
    found = compared(ddbl, 500, rounds=1)
    export, requests = found.took("export"), found.took("requests")

    assert export.events == 500
    assert (export.requests, export.read_units) == (requests.requests, requests.read_units)
    assert 0 < export.peak < MEMORY
