import pytest

from bench.reacting import compare


@pytest.mark.parametrize("events", [200, pytest.param(1_500, marks=pytest.mark.proof)])
def test_a_reaction_handles_what_bare_boto3_does_for_hardly_more_requests_and_units(ddbl, events):
    found = compare(ddbl, events, 10, rounds=1)
    bare, reaction = found.took("bare"), found.took("reaction")

    assert reaction.seen == bare.seen
    assert reaction.events >= events
    # Beside the same reads: the group's state once, and a look at the index for where it ends.
    assert bare.requests <= reaction.requests <= bare.requests + 6
    assert bare.read_units <= reaction.read_units <= bare.read_units + 4
    assert reaction.write_units == bare.write_units + 1
    assert events == 200 or found.ratio("reaction", "bare") > 0.2, "told of a run long enough"
