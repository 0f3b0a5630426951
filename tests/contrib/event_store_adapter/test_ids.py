from __future__ import annotations

import pytest

from epochal.contrib.event_store_adapter.hashes import times_31
from epochal.contrib.event_store_adapter.ids import AggregateId, AggregateTypes, aggregate_id
from epochal.contrib.event_store_adapter.items import KeyResolver
from epochal.errors import InvalidInput


def test_keys_are_those_of_the_original_libraries() -> None:
    # Computed with event-store-adapter-js 2.2.94's DefaultKeyResolver.
    assert times_31("user-account-01H42K4ABWQ5V2XQEP3A48VE0Z") == 3318036953
    assert KeyResolver(shards=64).key(aggregate_id("user-account", "01H42K4ABWQ5V2XQEP3A48VE0Z"), 12) == {
        "pkey": {"S": "user-account-25"},
        "skey": {"S": "user-account-01H42K4ABWQ5V2XQEP3A48VE0Z-12"},
    }


def test_characters_beyond_the_basic_plane_hash_as_two_units() -> None:
    assert times_31("\U0001f600") == (31 * 0xD83D + 0xDE00) & 0xFFFFFFFF


def test_a_type_may_hold_a_dash() -> None:
    assert str(AggregateTypes(["user-account"]).id("user-account", "1")) == "user-account-1"


def test_types_that_would_share_ids_are_refused() -> None:
    with pytest.raises(InvalidInput, match="'user-account' begins with 'user' followed by -"):
        AggregateTypes(["user", "user-account"])


def test_types_that_merely_begin_alike_are_fine() -> None:
    assert "users" in AggregateTypes(["user", "users"])


def test_an_unregistered_type_is_refused() -> None:
    with pytest.raises(InvalidInput, match="type: 'order' is not registered"):
        AggregateTypes(["user"]).id("order", "1")


@pytest.mark.parametrize(
    ("kind", "value", "field"),
    [
        ("", "1", "type"),
        ("user", "", "value"),
        ("user", "a/b", "value"),
        ("us er", "1", "type"),
        ("user", "x" * 512, "value"),
        ("user", "é", "value"),
        ("user", "a#b", "value"),
    ],
)
def test_malformed_ids_name_the_part(kind: str, value: str, field: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        aggregate_id(kind, value)
    assert caught.value.field == field


def test_a_declared_type_is_no_beginning_of_the_name_of_another() -> None:
    types = AggregateTypes(["user", "cart-item"])
    assert types.read("username-1") == AggregateId(type="username", value="1")
    assert types.read("cart-items-1") == AggregateId(type="cart", value="items-1")
    types.check(AggregateId(type="username", value="1"))
