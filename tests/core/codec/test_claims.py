"""Which bodies leave an item: only as many as needed, the largest first."""

from __future__ import annotations

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from epochal.codec.bodies import BROTLI, Encoded, encode_claim
from epochal.codec.bucket_bodies import CLAIM_BYTES, claim_for, overflowing


@pytest.mark.parametrize(
    ("sizes", "budget", "expected"),
    [
        ((), 0, ()),
        ((100, 200), 300, ()),
        ((100, 1000), 600, (1,)),
        ((1000, 1000, 1000), 2500, (0,)),
        ((500, 3000, 400, 2000), 1500, (1, 3)),
        ((CLAIM_BYTES,) * 10, 100, ()),
        ((5000, 10), 0, (0,)),
    ],
)
def test_the_largest_leave_until_the_rest_fits(
    sizes: tuple[int, ...], budget: int, expected: tuple[int, ...]
) -> None:
    assert overflowing(sizes, budget) == expected


@given(st.lists(st.integers(0, 5000), max_size=20), st.integers(0, 20_000))
def test_no_body_leaves_in_vain_and_what_stays_fits_if_it_can(sizes: list[int], budget: int) -> None:
    moved = overflowing(sizes, budget)

    def left(without: tuple[int, ...]) -> int:
        return sum(CLAIM_BYTES if position in without else size for position, size in enumerate(sizes))

    assert all(sizes[position] > CLAIM_BYTES for position in moved)
    if any(size > CLAIM_BYTES for position, size in enumerate(sizes) if position not in moved):
        assert left(moved) <= budget
    if moved:
        smallest = min(moved, key=lambda position: sizes[position])
        assert left(tuple(position for position in moved if position != smallest)) > budget


def test_a_claim_check_of_ours_is_no_larger_than_was_reckoned() -> None:
    claim = claim_for(Encoded(BROTLI, b"x" * 999))

    assert len(encode_claim(claim).data) <= CLAIM_BYTES


def test_equal_contents_share_one_object_named_by_its_hash() -> None:
    body = Encoded(BROTLI, b"content")
    digest = hashlib.sha256(b"content").hexdigest()

    assert claim_for(body) == claim_for(body)
    assert (claim_for(body).key, claim_for(body).sha256) == (f"bodies/{digest}", digest)
    assert (claim_for(body).size, claim_for(body).encoding) == (7, BROTLI)
