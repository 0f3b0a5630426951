"""A read model of a class is typed by it, in the ordinary form and the awaited one."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import assert_type

from epochal.aio import AsyncReadModel, AsyncReadModels
from epochal.read_models import ReadModel
from epochal.testing import MemoryStore


@dataclass(frozen=True)
class Total:
    pieces: int


def test_documents_have_the_class_that_the_model_was_opened_with() -> None:
    model = MemoryStore().read_models.open("totals", 1, of=Total)
    assert_type(model, ReadModel[Total])
    assert_type(model.get("a"), Total | None)
    assert_type(model.get("a", Total(0)), Total)
    assert model.get("a", Total(0)).pieces == 0
    assert ReadModel[Total].__origin__ is ReadModel  # type: ignore[attr-defined]


def test_the_awaited_form_is_typed_likewise() -> None:
    async def live() -> None:
        models = AsyncReadModels(MemoryStore().read_models)
        model = models.open("totals", 1, of=Total)
        assert_type(model, AsyncReadModel[Total])
        assert_type(await model.get("a", Total(3)), Total)
        assert (await (await models.live("totals", of=Total)).get("a", Total(3))).pieces == 3

    asyncio.run(live())
