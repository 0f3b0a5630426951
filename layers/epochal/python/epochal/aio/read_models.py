"""Read models, awaited."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from epochal.aio.bridge import run
from epochal.aio.writes import finished

if TYPE_CHECKING:
    from epochal.reactions.reaction import Delivery
    from epochal.reactions.read_models import Fold, ReadModel, ReadModels


@dataclass(frozen=True, slots=True)
class AsyncReadModel:
    """One generation of a read model: each method is that of `ReadModel`, awaited, and raises what it does.

    A write that is cancelled goes on to its end, and `cancelled_write` tells its outcome.
    """

    model: ReadModel

    async def apply(self, delivery: Delivery, fold: Fold) -> int:
        """`ReadModel.apply`. `fold` is a plain function: what its `documents` wait for is awaited all the same."""
        return await finished(run(self.model.apply, delivery, fold))

    async def get(self, key: str, default: Any = None) -> Any:
        """`ReadModel.get`."""
        return await run(self.model.get, key, default)

    async def place(self, stream: str) -> int | None:
        """`ReadModel.place`."""
        return await run(self.model.place, stream)

    async def wait_for(self, stream: str, version: int, *, seconds: float = 10.0) -> bool:
        """`ReadModel.wait_for`."""
        return await run(self.model.wait_for, stream, version, seconds=seconds)


@dataclass(frozen=True, slots=True)
class AsyncReadModels:
    """The read models of a table, for asynchronous programs.

    Attributes:
        store: of an `AsyncPlace`, or in memory.
    """

    store: ReadModels

    def open(self, name: str, generation: int) -> AsyncReadModel:
        """`ReadModels.open`, which asks for nothing: it is not awaited."""
        return AsyncReadModel(self.store.open(name, generation))

    async def live(self, name: str) -> AsyncReadModel:
        """`ReadModels.live`."""
        return AsyncReadModel(await run(self.store.live, name))

    async def swap(self, name: str, generation: int) -> AsyncReadModel:
        """`ReadModels.swap`."""
        return AsyncReadModel(await finished(run(self.store.swap, name, generation)))
