"""The model of one tag that many writers append under: what the documentation says of it."""

import pytest

from bench.hot_tag import PHASES, WRITERS, model


@pytest.mark.parametrize("phases", PHASES)
@pytest.mark.parametrize("writers", WRITERS)
def test_a_tag_takes_some_forty_to_seventy_appends_a_second_however_many_write(writers, phases):
    modelled = model(writers, phases, seconds=20)

    assert 40 <= modelled.appends <= 75
    assert modelled.attempts <= 4


def test_a_head_of_several_kilobytes_takes_fewer():
    few, many = (model(16, PHASES[0], kilobytes, seconds=20).appends for kilobytes in (8, 1))

    assert few < 0.7 * many


def test_a_seed_has_one_outcome():
    assert model(8, 0.01, seconds=5, seed=7) == model(8, 0.01, seconds=5, seed=7)
