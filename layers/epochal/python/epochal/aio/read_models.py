"""Read models, awaited."""

from __future__ import annotations

from dataclasses import dataclass

from epochal.aio.bridge import run
from epochal.aio.methods import reads, writes
from epochal.aio.writes import finished
from epochal.reactions.read_models import ReadModel, ReadModels


@dataclass(frozen=True, slots=True)
class AsyncReadModel:
    """One generation of a read model: each method is that of `ReadModel`, awaited, and raises what it does.

    A write that is cancelled goes on to its end, and `cancelled_write` tells its outcome.
    """

    model: ReadModel

    apply = writes(ReadModel.apply, of="model")
    """`fold` is a plain function: what its `documents` wait for is awaited all the same."""

    get = reads(ReadModel.get, of="model")
    place = reads(ReadModel.place, of="model")
    wait_for = reads(ReadModel.wait_for, of="model")


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
