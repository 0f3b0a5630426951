"""When a page is full: if its next append would cost more than an average append on a new page.

DynamoDB charges every append for the whole page, so each byte on a page makes later appends dearer. A new page costs
something, too: the item of the old page and the unfolds in it stay, without further use. The rule assumes that later
appends have the average size of the page's appends, and leave unfolds as large as now. `_rate` is the least average
cost of an append over a page's life: of its appends, and of storing what is left behind. An append costs more the more
the page contains. So if the next append to this page would cost more than the rate, all later ones would too, and the
page is full.

Large unfolds that stay are an exception: the next page refers to this one for them, and so begins small.

The first append of a page stands for those that follow. The rule is a pure function of a `Token`, so that a writer with
only a token can decide without a read. Any answer is safe; `bench/fullness.py` compares the rule with the optimum.
"""

from __future__ import annotations

from typing import Final

from epochal.model.tokens import Token
from epochal.plan.limits import ITEM_BYTES
from epochal.plan.values import attribute_size, number, write_units

ROOM: Final = 8 * 1024
"""Bytes kept free below the item limit, for counters and for the error of the sizes in a token."""

KEPT_MONTHS: Final = 3
"""Months of storage that count for a page that another has followed. Counting it for ever would outweigh any write; but
pages can be pruned, and later costs weigh less."""

_UNITS_PER_BYTE: Final = KEPT_MONTHS * 0.38 / 1024
"""Write units that storing a byte costs. A KB costs as much in a month as 0.38 write units, on demand and in every
region: $0.25 per GB against $0.625 per million units."""

_ITEM: Final = 100
"""Bytes that DynamoDB adds to each item when it charges for storage."""

_MARK: Final = attribute_size("x", number(1))

_CAUTION: Final = 0.5
"""Share of the difference between appends that is added to the expected size of the next one. If sizes vary, the rule
is careful, because one more unit costs more than one more page; a larger share costs more than it saves."""

REFER_FROM: Final = 768
"""Bytes of unfolds from which later pages refer to a full page for them. On each page they would cost every append a
unit more for each KB; on another page they cost each load one more read, a fifth of a unit for 4 KB."""

_NAMED: Final = 16
"""A reference to unfolds on another page takes fewer bytes than this; unfolds themselves take more."""

_LEAST: Final = 20
"""Least bytes of a frame. A token may come from outside with any numbers; this limits the steps of the computation."""


def is_full(
    token: Token, before: Token | None = None, joined: int = 0, *, keeps_unfolds: bool = False
) -> bool:
    """Return whether the next append should begin a new page rather than extend this one.

    Args:
        token: token of the page after a write.
        before: token of the last page before that write: of the same page, or of the one before it.
        joined: bytes of the write if it joined several appends, as the next write is expected to; otherwise 0.
        keeps_unfolds: whether the write kept the stored unfolds, as the next write is expected to.
    """
    if token.size >= ITEM_BYTES - ROOM:
        return True
    usual = max(_LEAST, joined or token.carried / max(1, token.appends))
    # The mark of a full page takes bytes, too, which sometimes cost another unit.
    mark = write_units(token.size + _MARK) - write_units(token.size)
    caution = 0 if joined else _CAUTION * _spread(token, before)
    further = write_units(int(token.size + usual + caution) + _MARK)
    # If the page before had only a reference, its unfolds were kept, and these will be, too.
    stay = keeps_unfolds or (before is not None and 0 < before.unfolds < _NAMED)
    return further - _rate(token, usual, keeps_unfolds=stay) > mark


def fits(page: Token, growth: int) -> bool:
    """Whether a page has room for `growth` further bytes."""
    return page.size + growth <= ITEM_BYTES - ROOM


def _spread(token: Token, before: Token | None) -> float:
    """Return the difference in bytes between the latest append and the average of those before it."""
    if before is None or not before.appends or token.version == before.version:
        return 0
    extended = token.appends > before.appends
    latest = token.carried - before.carried if extended else token.carried
    return abs(latest - before.carried / before.appends)


def _rate(token: Token, usual: float, *, keeps_unfolds: bool) -> float:
    """Compute the least average write units of an append over a page's life, at `usual` bytes each."""
    bare = max(0, token.size - token.carried)
    if keeps_unfolds and token.unfolds >= REFER_FROM:  # the next page would only refer to this one
        bare = max(0, bare - token.unfolds)
    spent = (bare + _ITEM) * _UNITS_PER_BYTE
    best, carried, appends = float("inf"), 0.0, 0
    while carried < ITEM_BYTES:
        carried += usual
        appends += 1
        units = write_units(int(bare + carried))
        if units > best:  # and later appends cost more still
            break
        spent += units
        best = min(best, spent / appends)
    return best
