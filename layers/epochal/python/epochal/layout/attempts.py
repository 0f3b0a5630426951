"""What a layout of streams can try with a batch under an idempotency key: steps that `once` and `unfolding` order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, Protocol

from epochal.layout.key_records import KeyedWrite, KeyRecord, Remembered
from epochal.layout.streams import H, H_co, Known, Result, Settled
from epochal.model.versions import Token
from epochal.plan.ops import Steps


@dataclass(frozen=True, slots=True, kw_only=True)
class UnfoldsRefused(Generic[H_co]):
    """Unfolds alone were not written.

    Attributes:
        head: reads what the head is by now.
        seen: what the record says.
        etag: that the write would have left; None where none was sent.
    """

    head: Steps[H_co | None]
    seen: Remembered | None
    etag: str | None


class Attempts(Protocol[H]):
    """One batch, known by a key, and all that can be tried with it."""

    @property
    def table(self) -> str:
        """Where it goes."""

    @property
    def batch(self) -> KeyedWrite:
        """What is appended."""

    def load(self) -> Steps[H | None]:
        """The head of its stream."""

    def append_on(self, known: Known[H], *, repeatable: bool) -> Steps[Result[H]]:
        """Append events on exactly what is known; `repeatable`: another process may have appended them later."""

    def settle(self, head: H, since: int, *, repeatable: bool) -> Steps[Settled | None]:
        """What a stream that is there says of an append that another process may have made from index `since` on."""

    def unfold_on(
        self, known: Known[H], record: KeyRecord, seen: Remembered | None
    ) -> Steps[Token | UnfoldsRefused[H]]:
        """Write unfolds alone on exactly what is known, together with the record, if that is still as `seen`."""

    def is_pruned(self, head: H, since: int) -> Steps[bool]:
        """Whether nobody can tell any more if events were appended under the key from index `since` on.

        Raises:
            InvalidInput: they were; unfolds alone are other contents.
        """
