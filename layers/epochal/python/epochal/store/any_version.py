"""Appends to a stream at any version: those of one process take turns, and each starts where the last one ended.

Without turns, of all appends that read the end of the stream at the same time, one is applied and the others are
refused. Within a queue, the token that the last append returned stands for a read of the end: if it is still the end,
one request is enough. Otherwise another process has written meanwhile, and the append reads the end as it would alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from epochal.layout.streams import Batch
from epochal.model.expected_version import ExpectedVersion
from epochal.model.outcomes import Appended, Conflict, Outcome
from epochal.model.tokens import Token
from epochal.store.answers import complete
from epochal.store.driver import Driver
from epochal.store.queueing import QueuePlace

if TYPE_CHECKING:
    from epochal.store.streams import Streams


def append_in_turn(store: Streams, batch: Batch, expected: ExpectedVersion, key: str | None) -> Outcome:
    """Append a batch at any version once it is this call's turn; return the outcome with its capacity.

    Args:
        store: store of the stream.
        batch: the batch.
        expected: any version, or any version of a stream that exists.
        key: idempotency key; None for none.
    """
    driver, meter = store.driver.metered()
    with meter, QueuePlace(driver, (store.table, batch.stream)) as place:
        token: Token | None = place.note(store.table, batch.stream)
        place.write()
        began = driver.clock()
        outcome = None
        # A key, and ids, are looked for in the stream before the append; so are unfolds alone after a lost response.
        if (
            token is not None
            and key is None
            and batch.events
            and not any(event.label for event in batch.events)
        ):
            outcome = _append_at(store, driver, batch, token)
        if outcome is None:
            outcome = driver.run(store.layout.append(store.table, batch, expected, key))
        if isinstance(outcome, Appended):
            place.leave_note(outcome.token, store.table, batch.stream)
    return complete(outcome, meter.capacity, began=began)


def _append_at(store: Streams, driver: Driver, batch: Batch, token: Token) -> Outcome | None:
    """Append a batch at the token of the last append; return None if the stream has changed since."""
    outcome = driver.run(store.layout.append_on(store.table, batch, token))
    return None if isinstance(outcome, Conflict) else outcome
