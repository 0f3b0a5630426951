"""Several appends to the end of one stream as one write, a frame each, and the result of each of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from epochal.layout.streams import Known, Rejected, Result, Unknown, Written
from epochal.lazy_dataclasses import replace
from epochal.model.moments import Ticks
from epochal.model.versions import Token
from epochal.pages.appending import own_result
from epochal.pages.batch import Packed
from epochal.pages.items import Page, state_of
from epochal.pages.writes import Planned, head_from, write
from epochal.plan.ops import Steps


def append_whole(table: str, whole: Packed, known: Known[Page]) -> Steps[Result[Page]]:
    """Append joined batches on exactly the known last page; else reject all with the last page."""
    refused = yield from write(table, whole, known)
    if isinstance(refused, Planned):
        return refused.written
    head = yield from head_from(table, whole.stream, refused.page)
    result = own_result(whole, refused)
    return Rejected(head=head) if result is None else result


def results_of_joined(batches: Sequence[Packed], result: Result[Page]) -> Iterator[Result[Page]]:
    """Yield the result of each joined batch, computed from the result of their common write."""
    if isinstance(result, Rejected):
        yield from (result for _ in batches)
        return
    next_index = result.first
    for later, batch in zip(range(len(batches) - 1, -1, -1), batches, strict=True):
        first, next_index = next_index, next_index + batch.count
        if isinstance(result, Unknown):
            yield Unknown(first=first)
        else:
            token = _overtaken(result.token, next_index, later) if later else result.token
            yield Written(first=first, version=next_index, token=token, replayed=result.replayed)


def _overtaken(token: Token, version: int, later: int) -> Token:
    """Return the token of a joined append before `later` others; an append on it is in conflict."""
    state = state_of(token.etag or "")
    if state is None:
        return Token(version=version, etag=token.etag)
    return Token(version=version, etag=replace(state, full=False, time=Ticks(state.time - later)).etag())
