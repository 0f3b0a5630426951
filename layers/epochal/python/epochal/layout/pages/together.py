"""Several appends to the end of one stream as one write, a frame each, and what each of them is told."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from epochal.layout.expectations import UNREAD
from epochal.layout.pages.append import append
from epochal.layout.pages.batch import Packed, joined
from epochal.layout.pages.etags import state_of
from epochal.layout.pages.items import Page
from epochal.layout.streams import Rejected, Result, Unknown, Written
from epochal.model.times import Ticks
from epochal.model.versions import ANY, Token
from epochal.plan.ops import Steps


def append_together(
    table: str, batches: Sequence[Packed], start: Token | None
) -> Steps[tuple[Result[Page], ...]]:
    """Append all of them in their order, or none, whatever the stream's version is. Raises as `append` does."""
    result = yield from append(table, joined(batches), ANY, UNREAD if start is None else start)
    return tuple(_told(batches, result))


def _told(batches: Sequence[Packed], result: Result[Page]) -> Iterator[Result[Page]]:
    if isinstance(result, Rejected):
        yield from (result for _ in batches)
        return
    at = result.first
    for later, batch in zip(range(len(batches) - 1, -1, -1), batches, strict=True):
        first, at = at, at + batch.count
        if isinstance(result, Unknown):
            yield Unknown(first=first)
        else:
            token = _overtaken(result.token, at, later) if later else result.token
            yield Written(first=first, version=at, token=token, replayed=result.replayed)


def _overtaken(token: Token, version: int, later: int) -> Token:
    """Of what an append would have left, had not so many others come with it: one on it is in conflict."""
    state = state_of(token.etag or "")
    if state is None:
        return Token(version=version, etag=token.etag)
    return Token(version=version, etag=replace(state, full=False, time=Ticks(state.time - later)).etag())
