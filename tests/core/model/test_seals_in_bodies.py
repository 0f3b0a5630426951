"""Whether a body holds anything sealed: parking and showing events ask that before they write a word down."""

from __future__ import annotations

import json
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Callable
from functools import reduce

import pytest
from hypothesis import given
from hypothesis import strategies as st

from epochal.model.bodies import Claim
from epochal.model.plain_json import holds_seal

SEALED = b'{"$sealed":1,"subject":"ada@example.com","nonce":"AAECAwQFBgcICQoL","body":"c2VjcmV0IHdvcmRz"}'


@pytest.mark.parametrize(
    "body",
    [
        SEALED,
        json.dumps({"x": SEALED.decode()}).encode(),
        SEALED.replace(b"$", b"\\u0024"),
        json.dumps({"x": SEALED.replace(b"$", b"\\u0024").decode()}).encode(),
        json.dumps({"x": SEALED.replace(b"sea", b"\\u005cu0073ea").decode()}).encode(),
        b64encode(SEALED),
        b64encode(SEALED).rstrip(b"="),
        urlsafe_b64encode(SEALED),
        b64encode(b64encode(SEALED)),
        b'{"data_base64":"%s"}' % b64encode(SEALED),
        b"key " + b64encode(SEALED),
        SEALED.hex().encode(),
        SEALED.decode().encode("utf-16-le"),
        b"\xff\x00" + SEALED,
    ],
)
def test_a_body_holds_a_seal_wherever_that_stands_in_it(body: bytes) -> None:
    assert holds_seal(body)


def as_utf_16(content: bytes) -> bytes:
    return content.decode("latin-1").encode("utf-16")


def as_json_text(content: bytes) -> bytes:
    return json.dumps({"of": content.decode("latin-1")}).encode()


def as_pairs_of_digits(content: bytes) -> bytes:
    return content.hex(" ").encode()


def as_list_of_numbers(content: bytes) -> bytes:
    return json.dumps([*content]).encode()


@pytest.mark.parametrize(
    "wraps",
    [
        (as_utf_16, as_json_text),
        (as_utf_16, as_json_text, as_pairs_of_digits),
        (as_utf_16, as_json_text, as_list_of_numbers),
        (as_utf_16, as_json_text, as_json_text, b64encode),
        (as_utf_16, as_json_text, as_utf_16),
        (as_utf_16, as_json_text, as_utf_16, as_json_text),
        (as_utf_16, as_json_text, as_utf_16, as_json_text, b64encode, as_utf_16, as_json_text),
    ],
    ids=lambda wraps: " ".join(wrap.__name__ for wrap in wraps),
)
def test_a_seal_is_found_in_utf_16_that_is_escaped_as_json(
    wraps: tuple[Callable[[bytes], bytes], ...],
) -> None:
    """JSON escapes each zero of UTF-16: they are there once the escapes are undone, and not before."""
    assert holds_seal(reduce(lambda content, wrap: wrap(content), wraps, SEALED))


def test_a_body_in_the_bucket_counts_as_sealed() -> None:
    assert holds_seal(Claim(key="bodies/a", sha256="a", size=1))


@given(st.integers(0, 3), st.integers(0, 3))
def test_base64_is_read_wherever_it_begins_and_ends(before: int, after: int) -> None:
    assert holds_seal(b"x" * before + b64encode(SEALED).rstrip(b"=") + b"x" * after)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b'{"price":"$1","of":"\\u0041da","note":"sealed with $ and wax"}',
        b'{"id":"0192f0c1-5a5e-7cc3-9f0a-1b2c3d4e5f60","path":"C:\\\\orders\\\\new"}',
        b64encode(b'{"note":"an ordinary body, with nothing that is sealed in it"}'),
        bytes(range(256)) * 20,
        b"x" * 100_000,
        b"[" + b"1," * 50_000 + b"1]",
    ],
)
def test_an_ordinary_body_holds_none(body: bytes) -> None:
    assert not holds_seal(body)


@pytest.mark.parametrize(
    "body", [b"\\u005c" + b"u005c" * 1_000, b"%25" + b"25" * 1_000], ids=["of JSON", "of addresses"]
)
def test_a_body_with_more_escapes_of_escapes_than_any_writer_leaves_counts_as_sealed(body: bytes) -> None:
    """To search all of them would take a time that grows with the square of its size."""
    assert holds_seal(body)
