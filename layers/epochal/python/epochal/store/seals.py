"""Tokens as they go outside, and as they come back: with seals, where they are of pages (`layout.pages.seals`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from epochal.errors import EpochalError
from epochal.layout.pages import seals
from epochal.lazy_dataclasses import dataclass
from epochal.model.events import Ticks, from_unix_nanoseconds
from epochal.model.versions import Token
from epochal.plan.ops import Steps
from epochal.store.driver import Driver

if TYPE_CHECKING:
    from epochal.store.streams import Streams

PATIENCE: Final = 1.0
"""Seconds that the key is waited for. Without it the next append reads once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seals:
    """Those of a table, within one request. A token that is not of a page stays as it is, and costs nothing.

    Attributes:
        fresh: gives random bytes, for the key of a table that has none; None for who may not write.
    """

    driver: Driver
    table: str
    now: Ticks
    fresh: Callable[[int], bytes] | None = None

    @classmethod
    def of(cls, store: Streams, *, writes: bool) -> Seals:
        """Those of a store's table; `writes` where this may put a key."""
        now = from_unix_nanoseconds(store.now())
        return cls(driver=store.driver, table=store.table, now=now, fresh=store.fresh if writes else None)

    def sealed(self, stream: str, token: Token) -> Token:
        """The token with its seal; without, where the key cannot be had: what was appended is appended."""
        return self._run(seals.sealed(self.table, stream, token, self.now, self.fresh)) or token

    def believed(self, stream: str, token: Token) -> Token:
        """The token as one of this process, if its seal is right."""
        return self._run(seals.believed(self.table, stream, token, self.now)) or token

    def _run(self, steps: Steps[Token]) -> Token | None:
        try:
            return self.driver.within(PATIENCE).run(steps)
        except EpochalError:
            return None
