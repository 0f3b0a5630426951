"""What cannot be a span or a target is refused at once, by its own name."""

from __future__ import annotations

from typing import Any

import pytest

from epochal.contrib.processes import process
from epochal.deciders.codecs import json_codec
from epochal.errors import InvalidInput
from epochal.testing.feeds import MemoryStore


@pytest.mark.parametrize("days", [-1, 1e20, 2_000])
def test_time_that_cannot_go_by_is_named_as_the_test_has_it(days: float) -> None:
    with pytest.raises(InvalidInput) as refused:
        MemoryStore().advance(days=days)
    assert (refused.value.field, str(refused.value)[:9]) == ("advance", "advance: ")


async def call(_message: object, _key: str) -> None:
    """Nothing awaits it."""


def test_a_function_that_nothing_awaits_is_refused_as_a_target_when_the_process_is_made() -> None:
    class Rules:
        def evolve(self, _event: object) -> Rules:
            return self

        def react(self, _event: object) -> list[Any]:
            return []

    with pytest.raises(InvalidInput, match=r"targets\['letters'\]: must be a plain function"):
        process(name="p", categories=["C"], codec=json_codec(), targets={"letters": call})(Rules)
