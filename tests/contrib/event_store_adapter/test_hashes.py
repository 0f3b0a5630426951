"""Keys as each of event-store-adapter's libraries makes them, by vectors of the hashes' own authors, or by others'
implementations: of SipHash-1-3 Python has one, with a key of zeros where its seed is 0.
"""

from __future__ import annotations

import subprocess
import sys

import pytest

from epochal.contrib.event_store_adapter.hashes import HASHES, fnv_1a, hash_of, java_size, siphash_1_3
from epochal.contrib.event_store_adapter.ids import AggregateId, aggregate_id
from epochal.contrib.event_store_adapter.items import KeyResolver
from epochal.errors import InvalidInput

VALUE = "01H42K4ABWQ5V2XQEP3A48VE0Z"


def key(library: str, value: str = VALUE, shards: int = 64) -> str:
    keys = KeyResolver(shards=shards, hash=hash_of(library))
    found: str = keys.key(aggregate_id("account", value), 3)["pkey"]["S"]
    return found


def test_siphash_is_the_one_that_python_has() -> None:
    texts = [("x" * length).encode() + b"\xff" for length in range(1, 40)]
    script = (
        f"import sys; print(sys.hash_info.algorithm, *(hash(each) & (1 << 64) - 1 for each in {texts!r}))"
    )
    ran = subprocess.run(
        [sys.executable, "-c", script],
        env={"PYTHONHASHSEED": "0"},
        capture_output=True,
        text=True,
        check=True,
    )
    algorithm, *hashes = ran.stdout.split()
    assert algorithm == "siphash13"
    assert [siphash_1_3(each) for each in texts] == list(map(int, hashes))


def test_siphash_is_as_its_reference_implementation_has_it() -> None:
    assert siphash_1_3(b"") == 0xD1FBA762150C532C
    assert siphash_1_3(b"\0") == 0x68A914128E01E473


@pytest.mark.parametrize(
    ("text", "hashed"),
    [(b"", 0xCBF29CE484222325), (b"a", 0xAF63DC4C8601EC8C), (b"foobar", 0x85944171F73967E8)],
)
def test_fnv_1a_is_as_published(text: bytes, hashed: int) -> None:
    assert fnv_1a(text) == hashed


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("hello", 99_162_322),
        ("", 0),
        # Of a `hashCode` of -862545276 the size; of the least number there is none in 32 bits.
        ("Hello World", 862_545_276),
        ("polygenelubricants", -2_147_483_648),
    ],
)
def test_java_takes_the_size_of_a_hash(text: str, size: int) -> None:
    assert java_size(text) == size


def test_crc_32_is_as_published() -> None:
    assert HASHES["php"](aggregate_id("account", "123456789")) == 0xCBF43926


def test_what_is_left_of_a_number_below_zero_is_below_zero() -> None:
    assert key("java", "polygenelubricants", 64) == "account-0"
    assert key("java", "polygenelubricants", 10) == "account--8"


def test_all_but_our_own_hash_the_value_alone() -> None:
    for library in ("rust", "go", "java", "php"):
        one, other = (AggregateId(type=kind, value=VALUE) for kind in ("account", "order"))
        assert HASHES[library](one) == HASHES[library](other)
    assert key("javascript") != key("java")


def test_dotnet_has_no_hash_to_share_and_others_are_named() -> None:
    with pytest.raises(InvalidInput, match=r"keys: \.NET's own hash differs in every process"):
        hash_of("dotnet")
    with pytest.raises(InvalidInput, match="keys: must be one of javascript, rust, go, java, php"):
        hash_of("ruby")
    assert hash_of(len_of)(aggregate_id("a", "b")) == 3


def len_of(aggregate: AggregateId) -> int:
    return len(str(aggregate))
