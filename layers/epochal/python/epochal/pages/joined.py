"""Several appends to the end of one stream as one write, a frame each, and the outcome of each of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from epochal.layout.outcomes import conflict_at
from epochal.layout.streams import Known
from epochal.lazy_dataclasses import replace
from epochal.model.moments import Ticks
from epochal.model.outcomes import Appended, Conflict, Outcome, Undetermined
from epochal.model.tokens import Token
from epochal.pages.appending import own_outcome
from epochal.pages.attempts import head_from, write
from epochal.pages.batch import Packed
from epochal.pages.items import Page, state_of
from epochal.pages.writes import Planned
from epochal.plan.ops import Steps


def append_whole(table: str, whole: Packed, known_head: Known[Page]) -> Steps[Outcome]:
    """Append joined batches in one write on exactly the known last page; return outcome or conflict."""
    refused = yield from write(table, whole, known_head)
    if isinstance(refused, Planned):
        return refused.appended
    head = yield from head_from(table, whole.stream, refused.page)
    outcome = own_outcome(whole, refused)
    return conflict_at(head) if outcome is None else outcome


def outcomes_of_joined(batches: Sequence[Packed], outcome: Outcome) -> Iterator[Outcome]:
    """Yield the outcome of each joined batch, computed from the outcome of their common write."""
    if isinstance(outcome, Conflict):
        yield from (outcome for _ in batches)
        return
    next_index = outcome.first
    for later, batch in zip(range(len(batches) - 1, -1, -1), batches, strict=True):
        first, next_index = next_index, next_index + batch.count
        if isinstance(outcome, Undetermined):
            yield Undetermined(first=first)
        else:
            token = _overtaken(outcome.token, next_index, later) if later else outcome.token
            yield Appended(first=first, version=next_index, token=token, replayed=outcome.replayed)


def _overtaken(token: Token, version: int, later: int) -> Token:
    """Return the token of a joined append before `later` others; an append on it is in conflict."""
    state = state_of(token.etag or "")
    if state is None:
        return Token(version=version, etag=token.etag)
    return Token(version=version, etag=replace(state, full=False, time=Ticks(state.time - later)).etag())
