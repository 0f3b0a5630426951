"""Appends to several streams at once, and decisions that depend on further streams, as one commit (`commit`)."""

from __future__ import annotations

from collections.abc import Sequence

from epochal.layout.outcomes import combine_outcomes, conflict_at
from epochal.layout.streams import Also, Known
from epochal.lazy_dataclasses import replace
from epochal.model.expected_version import ExpectedVersion
from epochal.model.moments import Ticks
from epochal.model.outcomes import Appended, Conflict, Outcome
from epochal.pages.batch import Packed
from epochal.pages.commit import moved_heads, run_commit
from epochal.pages.items import Page
from epochal.pages.keyed_appends import PageAttempts, append_once
from epochal.pages.several_key import SeveralKey
from epochal.pages.streams_part import StreamsPart, exactly
from epochal.plan.ops import Steps

StreamRead = tuple[str, Known[Page]]
"""Name of a stream, and what is known of its last page."""


def append_all(
    table: str, appends: Sequence[tuple[Packed, ExpectedVersion]], key: str | None = None, also: Also = ()
) -> Steps[Outcome]:
    """Append to several streams, all or nothing; return one outcome with the outcome of each stream.

    The batches are of one append: their stamps differ by time alone.

    Args:
        key: idempotency key of the append; None for none.
        also: writes to the program's own tables in the same transaction.

    Raises:
        TooLarge: the events of a stream do not fit an item, or all of them a transaction.
        InvalidInput: a stream is full; the key was used for other contents.
    """
    if key is not None and len(appends) == 1:
        ((batch, expected),) = appends
        return _of_one(batch.stream, (yield from append_once(table, batch, expected, key, also)))
    once = None if key is None else SeveralKey.of_append([batch for batch, _ in appends], key)
    part = StreamsPart.of(table, appends, key=once)
    outcome = (yield from run_commit(replace(part.commit, also=also), part)).outcome
    if isinstance(outcome, Conflict) and outcome.streams and all(batch.ids for batch, _ in appends):
        from epochal.pages import identified  # noqa: PLC0415  a function starts without it

        return (yield from identified.find_all(table, appends)) or outcome
    return outcome


def _of_one(stream: str, outcome: Outcome) -> Outcome:
    """Return the outcome of an append to one stream as that of an append to several."""
    is_unmet = isinstance(outcome, Conflict) and outcome.unmet
    return outcome if is_unmet else combine_outcomes({stream: outcome})


def append_all_on(
    table: str,
    appends: Sequence[tuple[Packed, Known[Page]]],
    read_heads: Sequence[StreamRead],
    key: str | None = None,
    also: Also = (),
) -> Steps[Outcome]:
    """Append, all or nothing, if these streams and those in `read_heads` are unchanged; return the outcome.

    If there are no appends, only this is checked. Under a key the outcome may be that of an earlier call; it includes
    the streams that were only read. A single keyed batch is appended as `layout.once` requires.
    """
    if not appends:
        moved = yield from moved_heads(table, dict(read_heads))
        conflicts = {stream: conflict_at(moved[stream]) for stream, _ in read_heads if stream in moved}
        return Conflict(streams=conflicts) if conflicts else Appended()
    if len(appends) == 1 and appends[0][0].keyed:
        ((batch, known_head),) = appends
        attempts = PageAttempts(table=table, batch=batch, also=also)
        return _of_one(batch.stream, (yield from attempts.append_on(known_head, repeatable=True)))
    heads = {batch.stream: known_head for batch, known_head in appends}
    names = [*heads, *(stream for stream, _ in read_heads)]
    once = None if key is None else SeveralKey.of(names, key, appends[0][0].now)
    part = StreamsPart.of(
        table, [(batch, exactly(known_head)) for batch, known_head in appends], dict(read_heads), once
    )
    commit = replace(part.commit, known_heads={**part.read_heads, **heads}, also=also)
    return (yield from run_commit(commit, part)).outcome


def decided_all(table: str, streams: Sequence[str], key: str, now: Ticks) -> Steps[Outcome | None]:
    """Return the outcome of an earlier decision on these streams under the key; None if there is none."""
    return SeveralKey.of(streams, key, now).load_outcome(table, ())
