import pytest

from bench.append_cpu import compared


@pytest.mark.proof
def test_an_append_by_token_takes_less_cpu_than_boto3_updating_the_same_bytes():
    """0.9 in `make bench`, which is run on a machine that does nothing else."""
    assert 1 / compared(rounds=7).ratio("light", "bare") < 1
