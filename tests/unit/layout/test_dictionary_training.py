"""A dictionary says how many holders' events are written, and nothing that fewer than five of them say."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from epochal.care.training import ROOM, SAID_BY, SHARED_BY, Example, content_of, example_of, train
from epochal.codec.bodies import BROTLI, DIRECT, EMPTY, Encoded, encode, encode_claim
from epochal.layout.pages.frames import pack_events
from epochal.layout.streams import EncodedEvent
from epochal.model.events import Claim, format_ticks, parse_time

NOW = parse_time("2026-11-22T08:00:00Z")


def event(data: Any, **fields: Any) -> EncodedEvent:
    body = Encoded(DIRECT, data if isinstance(data, bytes) else json.dumps(data).encode())
    return EncodedEvent(**{"type": "Ordered", "data": body, "timestamp": format_ticks(NOW), **fields})


def examples(*events: tuple[str, EncodedEvent]) -> list[Example]:
    return [found for stream, each in events if (found := example_of(stream, each))]


def order(number: int, **fields: Any) -> EncodedEvent:
    note = f"deliver before noon please {number * 7919 % 9973}"
    return event({"order": number, "currency": "EUR", "country": "Germany", "note": note, **fields})


ORDERS = [(f"Order-{k}", order(k)) for k in range(60)]


def content(*events: tuple[str, EncodedEvent]) -> bytes:
    found = train(examples(*events))
    assert found is not None
    return found.content


def test_an_event_takes_half_of_what_it_takes_without() -> None:
    dictionary = train(examples(*ORDERS))
    new = order(999_999)
    plain, packed = (pack_events([new], NOW, dictionary=each) for each in (None, dictionary))
    assert len(packed.data) < len(plain.data) / 2


def test_it_is_the_same_whenever_it_is_trained_on_the_same() -> None:
    assert content(*ORDERS) == content(*ORDERS)


@pytest.mark.parametrize("streams", [SAID_BY - 1, SAID_BY])
def test_a_word_that_ten_holders_have_may_be_in_it_and_one_that_nine_have_never_is(streams: int) -> None:
    told = [
        (f"Order-{k}", order(k, wrapping="sailcloth" if k < streams else "plain paper")) for k in range(60)
    ]
    often = [(f"Order-{k % streams}", order(k, wrapping="sailcloth")) for k in range(60, 120)]
    assert (b"sailcloth" in content(*told, *often)) == (streams >= SAID_BY)


@pytest.mark.slow
@pytest.mark.parametrize("streams", [100, 400])
def test_of_many_streams_one_in_twenty_says_a_word_that_is_in_it(streams: int) -> None:
    """What ten of a thousand customers say tells of them, and crowds out what saves more."""
    told = [
        (f"Order-{k}", order(k, wrapping="sailcloth" if k < 15 else "plain paper")) for k in range(streams)
    ]
    often = [(f"Order-{k % 15}", order(k, wrapping="sailcloth")) for k in range(streams, 2 * streams)]
    assert (b"sailcloth" in content(*told, *often)) == (streams <= 15 * 20)


NAMED = {
    "nowhere": [],
    "in a stream's name": [("Order-sailcloth-99", order(99))],
    "in a map": [
        (f"Order-{k}", order(k, hats={"sailcloth" if k < 2 else "abcdef"[k % 6 :] * 3: 1})) for k in range(60)
    ],
}


@pytest.mark.parametrize("where", NAMED)
def test_a_word_that_is_a_name_in_one_place_is_in_it_from_no_other(where: str) -> None:
    told = [(f"Order-{k}", order(k, wrapping=("sailcloth", "plain paper")[k % 2])) for k in range(60)]
    assert (b"sailcloth" in content(*told, *NAMED[where])) == (where == "nowhere")


def test_what_one_stream_says_a_thousand_times_is_not_in_it() -> None:
    mine = [("Order-7", order(7, wrapping="sailcloth", bell=4915112345678)) for _ in range(200)]
    found = content(*ORDERS, *mine)
    assert b"sailcloth" not in found
    assert b"4915112345678" not in found


def test_words_that_many_have_stand_together_only_where_five_holders_have_them_together() -> None:
    told = [(f"Order-{k}", order(k, cloth=("red silk", "red braid")[k % 2])) for k in range(80)]
    told += [(f"Order-{k}", order(k, cloth="silk braid")) for k in range(80, 80 + SHARED_BY - 1)]
    found = content(*told)
    assert b"silk" in found
    assert b"braid" in found
    assert b"silk braid" not in found


def test_names_of_members_are_held_to_the_same_rule() -> None:
    members = [(f"Order-{k}", order(k, **{f"paidbyperson{chr(97 + k % 26) * 4}": True})) for k in range(60)]
    assert not re.search(rb"paidbyperson", content(*members))


VALUES = st.recursive(
    st.one_of(
        st.sampled_from(["Berlin", "Hamburg", "open", "closed", "EUR"]),
        st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), max_size=12),
        st.integers(0, 10**9),
        st.floats(allow_nan=False, allow_infinity=False),
        st.booleans(),
        st.none(),
    ),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abcde"), inner, max_size=3),
    max_leaves=6,
)


@pytest.mark.slow
@settings(max_examples=25)
@given(bodies=st.lists(st.tuples(st.integers(0, 9), VALUES), min_size=20, max_size=60))
def test_no_word_and_no_number_of_fewer_than_five_streams_is_in_it(bodies: list[tuple[int, Any]]) -> None:
    told = [(f"S-{stream}", event({"status": "shipped", "value": value})) for stream, value in bodies]
    given = examples(*told)
    said, _ = content_of(given, {})  # statistics beside it look like numbers now and then
    by: defaultdict[bytes, set[str]] = defaultdict(set)
    for each in given:
        for piece in each.told.tokens:  # what is about a type, or a body, may be a letter
            for token in TOKEN.findall(piece.text):
                by[token].add(each.stream)
    inside = set(TOKEN.findall(said))
    assert not inside.intersection(token for token, streams in by.items() if len(streams) < SHARED_BY)
    assert not inside.intersection({b"Berlin", b"Hamburg"}), "however many have them"
    assert not [token for token in inside if token.isdigit()]


TOKEN = re.compile(rb"[A-Za-z_\x80-\xff]{2,}|[0-9]{2,}")
"""Of one character, a token may be about a length."""


SEALED = b'{"$sealed":1,"subject":"ann","nonce":"AAAAAAAAAAAAAAAA","body":"c2VjcmV0"}'


@pytest.mark.parametrize(
    "data",
    [
        Encoded(DIRECT, SEALED),
        Encoded(DIRECT, b'{"customer":' + SEALED + b"}"),
        Encoded(DIRECT, b'[[{"deep":' + SEALED + b"}]]"),
        encode(SEALED),
        Encoded(DIRECT, b"no JSON at all"),
        Encoded(DIRECT, b"\xff\xfe"),
        Encoded(BROTLI, b"no brotli"),
        Encoded(99, b"{}"),
        encode_claim(Claim(key="bodies/ab", sha256="ab", size=500_000)),
    ],
    ids=[
        *("sealed", "sealed inside", "sealed deep inside", "sealed and compressed", "text", "bytes"),
        *("corrupt", "of later versions", "in the bucket"),
    ],
)
def test_what_is_sealed_or_no_json_is_never_trained_on(data: Encoded) -> None:
    assert example_of("Order-1", event({"a": 1})._replace(data=data)) is None
    bare, without = (example_of("Order-1", event({"a": 1}, meta=each)) for each in (data, EMPTY))
    assert bare == without


def test_a_body_that_is_compressed_by_itself_is_trained_on_as_it_was_given() -> None:
    long = {"note": "again and " * 600}
    packed = event(long)._replace(data=encode(json.dumps(long).encode()))
    assert packed.data.encoding == BROTLI
    assert example_of("Order-1", packed) == example_of("Order-1", event(long))


def test_ids_and_times_are_not_trained_on() -> None:
    told = event({"a": 1}, correlation_id="visit-7", causation_id="click-3", timestamp="2013-01-01T00:00:00Z")
    assert example_of("Order-1", told) == example_of("Order-1", event({"a": 1}))


def test_nothing_in_common_is_no_dictionary() -> None:
    assert train([]) is None
    alone = [(f"S-{k}", event({chr(97 + k) * 9: 1})._replace(type=chr(65 + k) * 9)) for k in range(26)]
    assert train(examples(*alone[:4])) is None


@pytest.mark.slow
def test_it_fits_a_read_unit_whatever_it_is_trained_on() -> None:
    words = [f"word{chr(97 + k % 26)}{chr(97 + k // 26)}" for k in range(600)]
    told = [
        (f"S-{k}", event({"text": " ".join(words[(k * j) % 600] for j in range(60))})) for k in range(1, 200)
    ]
    found = content(*told)
    assert 2_000 < len(found) <= ROOM
