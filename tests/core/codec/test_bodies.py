"""Bodies under every encoding, whatever is stored: decoded to what was encoded, or refused by name."""

from __future__ import annotations

import json
import tracemalloc
import zlib

import brotli
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from epochal.codec.bodies import (
    BROTLI,
    CLAIM,
    DEFLATE,
    DIRECT,
    MAX_DECODED,
    Encoded,
    decode,
    encode,
    encode_claim,
)
from epochal.errors import CorruptData, UnknownEncoding
from epochal.model.bodies import Claim

JSON = json.dumps({"flight": 1545, "origin": "EWR", "dest": "IAH", "carrier": "UA", "delay": 2}).encode()
A_CLAIM = Claim(key="bodies/" + "ab" * 32, sha256="ab" * 32, size=5_000_000, encoding=2)


def deflated(body: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return packer.compress(body) + packer.flush()


def test_a_body_of_one_block_takes_no_decompressor_where_its_limit_has_room_for_any(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    largest = Encoded(BROTLI, brotli.compress(b"x" * 65_536, quality=5))
    with pytest.raises(CorruptData, match="too large"):
        decode(largest, 100)
    monkeypatch.delattr(brotli, "Decompressor")
    assert decode(largest, 65_536) == b"x" * 65_536
    for broken in (largest.data[:-1], largest.data + b"x"):
        with pytest.raises(CorruptData, match="not brotli"):
            decode(Encoded(BROTLI, broken))


@given(st.binary(max_size=300) | st.text(max_size=200).map(str.encode))
@pytest.mark.slow
def test_every_body_survives(body: bytes) -> None:
    assert decode(encode(body)) == body
    assert decode(encode(body, compress=False)) == body
    assert decode(Encoded(DEFLATE, deflated(body))) == body


PARTS = st.lists(
    st.binary(max_size=400) | st.just(b"\x00\x00\xff\xff" * 9) | st.just(JSON * 9), min_size=1, max_size=4
)
FLUSHES = st.sampled_from((zlib.Z_SYNC_FLUSH, zlib.Z_FULL_FLUSH))


def flushed(parts: list[bytes], level: int, mode: int) -> bytes:
    """As FsCodec before 3.0 wrote it: flushed, not finished."""
    packer = zlib.compressobj(level, wbits=-zlib.MAX_WBITS)
    return b"".join(packer.compress(part) + packer.flush(mode) for part in parts)


@given(parts=PARTS, level=st.integers(0, 9), mode=FLUSHES)
def test_a_deflated_body_that_ends_with_a_flush_instead_of_a_last_block_is_whole(
    parts: list[bytes], level: int, mode: int
) -> None:
    assert decode(Encoded(DEFLATE, flushed(parts, level, mode))) == b"".join(parts)


@given(body=st.binary(min_size=1, max_size=2_000), level=st.integers(0, 9), mode=FLUSHES, data=st.data())
def test_a_flushed_body_that_is_cut_off_within_a_block_is_corrupt(
    body: bytes, level: int, mode: int, data: st.DataObject
) -> None:
    assume(not body.endswith(b"\x00\x00\xff\xff"))
    whole = flushed([body], level, mode)
    cut = data.draw(st.integers(0, len(whole) - 1))

    with pytest.raises(CorruptData, match="cut off"):
        decode(Encoded(DEFLATE, whole[:cut]))


def test_bytes_of_a_stored_block_that_look_like_a_flush_do_not_end_a_body() -> None:
    stored = flushed([b"\x00\x00\xff\xff" * 100], 0, zlib.Z_SYNC_FLUSH)

    for cut in range(9, len(stored) - 5, 4):
        assert stored[:cut].endswith(b"\x00\x00\xff\xff")
        with pytest.raises(CorruptData, match="cut off"):
            decode(Encoded(DEFLATE, stored[:cut]))


def test_a_flushed_body_is_inflated_no_further_than_any_other() -> None:
    packed = flushed([bytes(100_000)], 9, zlib.Z_SYNC_FLUSH)
    assert decode(Encoded(DEFLATE, packed), limit=100_000) == bytes(100_000)

    for limit in (1, 50_000, 99_999):
        with pytest.raises(CorruptData, match="too large"):
            decode(Encoded(DEFLATE, packed), limit)


@given(st.binary(max_size=300) | st.text(max_size=200).map(str.encode))
@pytest.mark.slow
def test_compression_is_only_used_where_it_gains_more_than_4_bytes_on_at_least_48(body: bytes) -> None:
    encoding, data = encode(body)

    if encoding == BROTLI:
        assert len(body) >= 48
        assert len(data) < len(body) - 4
    else:
        assert (encoding, data) == (DIRECT, body)


@pytest.mark.parametrize(("size", "encoding"), [(0, DIRECT), (47, DIRECT), (48, BROTLI), (10_000, BROTLI)])
def test_the_least_body_that_is_compressed_has_48_bytes(size: int, encoding: int) -> None:
    assert encode(b"a" * size).encoding == encoding


def test_without_compression_everything_is_direct() -> None:
    assert encode(b"a" * 10_000, compress=False) == Encoded(DIRECT, b"a" * 10_000)


@pytest.mark.parametrize("encoding", [3, 63, 65, 127, 128, -1, 2**40])
def test_an_unknown_encoding_is_named_never_passed_through(encoding: int) -> None:
    with pytest.raises(UnknownEncoding, match=str(encoding)) as unknown:
        decode(Encoded(encoding, b"x"))

    assert unknown.value.encoding == encoding


BROKEN = {
    "not brotli": Encoded(BROTLI, b"\xff\xff\xff\xff"),
    "brotli cut off": Encoded(BROTLI, brotli.compress(JSON * 50)[:-3]),
    "brotli and more": Encoded(BROTLI, brotli.compress(JSON) + b"junk"),
    "empty brotli": Encoded(BROTLI, b""),
    "not deflate": Encoded(DEFLATE, b"\xff\xff\xff\xff"),
    "deflate cut off": Encoded(DEFLATE, deflated(JSON * 50)[:-3]),
    "empty deflate": Encoded(DEFLATE, b""),
    "zlib's frame around it": Encoded(DEFLATE, zlib.compress(JSON)),
    "no claim": Encoded(CLAIM, b"not json"),
    "a claim that is a list": Encoded(CLAIM, b"[]"),
    "a claim without a key": Encoded(CLAIM, b'{"sha256":"ab","bytes":1}'),
    "a claim in other types": Encoded(CLAIM, b'{"key":1,"sha256":"ab","bytes":1}'),
    "a claim whose size is text": Encoded(CLAIM, b'{"key":"k","sha256":"ab","bytes":"1"}'),
    "a claim whose size is true": Encoded(CLAIM, b'{"key":"k","sha256":"ab","bytes":true}'),
    "a claim that is no UTF-8": Encoded(CLAIM, b"\xff"),
}


@pytest.mark.parametrize("stored", BROKEN.values(), ids=BROKEN)
def test_bytes_that_are_not_what_their_encoding_says_are_corrupt(stored: Encoded) -> None:
    with pytest.raises(CorruptData):
        decode(stored)


@given(encoding=st.sampled_from((DEFLATE, BROTLI, CLAIM)), data=st.binary(max_size=60))
def test_no_bytes_whatever_raise_anything_else(encoding: int, data: bytes) -> None:
    try:
        decoded = decode(Encoded(encoding, data))
    except CorruptData:
        return
    assert isinstance(decoded, bytes | Claim)


@pytest.mark.parametrize("encoding", [DEFLATE, BROTLI])
def test_a_bomb_is_refused_before_it_has_gone_off(encoding: int) -> None:
    """At a smaller limit, so that the test is quick; a few hundred bytes hold 64 MB."""
    limit = 1024 * 1024
    plain = bytes(64 * limit)
    packed = brotli.compress(plain, quality=1) if encoding == BROTLI else deflated(plain)
    del plain
    tracemalloc.start()

    with pytest.raises(CorruptData, match="too large"):
        decode(Encoded(encoding, packed), limit)

    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 8 * limit


def test_the_largest_body_that_is_read_back_is_256_mb() -> None:
    assert MAX_DECODED == 256 * 1024 * 1024


@pytest.mark.parametrize("encoding", [0, 1, 2])
def test_a_claim_survives_its_text(encoding: int) -> None:
    claim = Claim(key=A_CLAIM.key, sha256=A_CLAIM.sha256, size=A_CLAIM.size, encoding=encoding)

    stored = encode_claim(claim)

    assert stored.encoding == CLAIM
    assert decode(stored) == claim
    fields = json.loads(stored.data)
    assert fields == {"key": claim.key, "sha256": claim.sha256, "bytes": claim.size} | (
        {"encoding": encoding} if encoding else {}
    )


def test_a_claim_of_another_writer_may_name_no_encoding_and_more_fields() -> None:
    stored = Encoded(CLAIM, b'{ "bytes": 5, "key": "k", "sha256": "ab", "later": {} }')

    assert decode(stored) == Claim(key="k", sha256="ab", size=5)


@pytest.mark.parametrize(
    ("changed", "fault"),
    [
        ({"encoding": 3}, UnknownEncoding),
        ({"encoding": -1}, UnknownEncoding),
        ({"encoding": CLAIM}, CorruptData),
        ({"bytes": -1}, CorruptData),
        ({"key": ""}, CorruptData),
        ({"key": "k" * 1025}, CorruptData),
        ({"key": "\ud800"}, CorruptData),
        ({"sha256": "\udfff"}, CorruptData),
    ],
    ids=repr,
)
def test_a_claim_that_no_bucket_can_answer_is_corrupt_before_anybody_asks(
    changed: dict[str, object], fault: type[CorruptData]
) -> None:
    stored = Encoded(CLAIM, json.dumps({"key": "k", "sha256": "ab", "bytes": 5, **changed}).encode())

    with pytest.raises(CorruptData) as raised:
        decode(stored)
    assert type(raised.value) is fault
