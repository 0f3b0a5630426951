"""Text that cannot be stored is refused where it is given, whatever it is for."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from epochal.contrib.equinox import memory_tips
from epochal.contrib.sekiban.items import TaggedEvent
from epochal.errors import InvalidInput
from epochal.model.events import Event
from epochal.model.tags import QueryItem
from epochal.testing.stores import memory_tables
from tests.contrib.sekiban.world import World

HALF = "\ud800"
"""Of a surrogate pair: Python holds it, UTF-8 does not."""


def tagged(**given: str) -> Callable[[], object]:
    return lambda: World().store().append([Event(type="Opened", data=b"{}", tags=("course:1",), **given)])


def sekiban(user: str) -> Callable[[], object]:
    return lambda: (
        World().store().append([TaggedEvent(type="Opened", tags=("course:1",), executed_user=user)])
    )


def keyed(key: str) -> object:
    return memory_tips(memory_tables()).append("A-1", [Event(type="Opened")], idempotency_key=key)


@pytest.mark.parametrize(
    ("call", "field"),
    [
        (tagged(causation_id=HALF), "events[0].causation_id"),
        (tagged(correlation_id=HALF), "events[0].correlation_id"),
        (sekiban("u" * 1025), "events[0].executed_user"),
        (lambda: QueryItem(tags=frozenset({HALF})), "tags"),
        (lambda: QueryItem(types=frozenset({"T" * 2001})), "types"),
        (lambda: keyed(HALF), "idempotency_key"),
        (lambda: keyed("k" * 4097), "idempotency_key"),
    ],
)
def test_text_that_cannot_be_stored_is_refused_by_its_name(call: Callable[[], object], field: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        call()
    assert refused.value.field == field
