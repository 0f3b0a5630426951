from __future__ import annotations

import json
import zlib

import brotli
import pytest
from hypothesis import given
from hypothesis import strategies as st

from epochal.codec import bodies
from epochal.codec.bodies import Encoded, decode, encode, encode_claim
from epochal.codec.claims import CLAIM_BYTES, claim_for, overflowing
from epochal.errors import CorruptData, UnknownEncoding
from epochal.model.events import Claim


@given(st.binary(max_size=2000) | st.binary(max_size=8).map(lambda piece: piece * 500))
def test_every_body_comes_back_as_it_was(body: bytes) -> None:
    assert decode(encode(body)) == body
    assert decode(encode(body, compress=False)) == body


def test_a_body_is_compressed_only_where_it_is_large_enough_and_gains() -> None:
    assert encode(b"a" * 47) == Encoded(0, b"a" * 47)
    assert encode(b"a" * 48).encoding == bodies.BROTLI
    incompressible = bytes(range(256))
    assert encode(incompressible) == Encoded(0, incompressible)


def test_what_other_libraries_deflated_is_read() -> None:
    packer = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    assert decode(Encoded(1, packer.compress(b"body") + packer.flush())) == b"body"


def test_a_claim_check_has_the_stored_form_and_comes_back() -> None:
    claim = Claim(key="bodies/ab", sha256="ab" * 32, size=7, encoding=2)
    encoded = encode_claim(claim)
    assert encoded.encoding == 64
    assert json.loads(encoded.data) == {"key": "bodies/ab", "sha256": "ab" * 32, "bytes": 7, "encoding": 2}
    assert decode(encoded) == claim
    assert b"encoding" not in encode_claim(Claim(key="k", sha256="ab", size=1)).data


@pytest.mark.parametrize("encoding", [3, 63, 65, 127, -1])
def test_an_unknown_encoding_is_an_error_that_names_it(encoding: int) -> None:
    with pytest.raises(UnknownEncoding, match=f"encoding {encoding}"):
        decode(Encoded(encoding, b""))


@pytest.mark.parametrize(
    "encoded",
    [
        Encoded(1, b"\xff\xff"),
        Encoded(1, b""),
        Encoded(2, b"not brotli at all"),
        Encoded(2, brotli.compress(b"x" * 1000)[:-2]),
        Encoded(64, b"{}"),
        Encoded(64, b"[1]"),
        Encoded(64, b"\xff"),
    ],
)
def test_bytes_that_are_not_what_the_encoding_says_are_corruption(encoded: Encoded) -> None:
    with pytest.raises(CorruptData):
        decode(encoded)


@pytest.mark.parametrize("encoding", [1, 2])
def test_a_body_that_inflates_without_end_is_stopped(monkeypatch: pytest.MonkeyPatch, encoding: int) -> None:
    monkeypatch.setattr(bodies, "MAX_DECODED", 100_000)
    packer = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    bomb = bytes(10_000_000)
    packed = brotli.compress(bomb) if encoding == 2 else packer.compress(bomb) + packer.flush()
    with pytest.raises(CorruptData, match="too large"):
        decode(Encoded(encoding, packed))


@given(st.lists(st.integers(0, 400_000), max_size=20), st.integers(10_000, 400_000))
def test_no_more_bodies_move_than_must_and_the_largest_do(sizes: list[int], budget: int) -> None:
    moved = overflowing(sizes, budget)
    left = sum(CLAIM_BYTES if k in moved else size for k, size in enumerate(sizes))
    kept = [size for k, size in enumerate(sizes) if k not in moved]
    if sum(sizes) <= budget:
        assert moved == ()
    assert left <= budget or max(kept, default=0) <= CLAIM_BYTES
    if moved:
        smallest = min(sizes[k] for k in moved)
        assert max(kept, default=0) <= smallest
        assert left + smallest - CLAIM_BYTES > budget


def test_equal_bodies_share_one_object() -> None:
    assert claim_for(encode(b"x" * 1000)) == claim_for(encode(b"x" * 1000))
    claim = claim_for(Encoded(0, b"abc"))
    assert claim.key == f"bodies/{claim.sha256}"
    assert len(encode_claim(claim_for(encode(b"x" * 1000))).data) <= CLAIM_BYTES
