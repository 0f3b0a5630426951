import pytest

from bench.members import MEMBERS, exact


@pytest.mark.parametrize("members", MEMBERS)
def test_what_an_event_takes_is_a_tenth_of_a_request_with_any_number_of_members(members):
    found = exact(members)
    assert 0 < found.requests <= 0.11
    assert found.read_units <= 0.11
    assert found.write_units <= 0.001 * (members + 1)
