"""When a page is full: what its next append would cost here, against what an append costs over a page's life.

Every append is charged by the whole page, so each byte that a page carries taxes the appends after it. A page that is
left costs too: its item and the unfolds in it stay, and count for nothing. The writer reckons with appends of the
page's average size, each with unfolds as large as now. `_rate` is the least average cost of an append over a page's
life: a page begun, so many appends on it, and what is left behind. An append costs more the more the page carries, so
where the next one here would cost more than the rate, all after it would, and the page is full.

Large unfolds that stay are the exception: the next page names this one instead, and is as small as any.

A first append is taken for what the others will be. A pure function of a `Token`, so that a writer that holds only a
token can decide without reading. Any answer is safe; measured against the offline optimum by `bench/fullness.py`.
"""

from __future__ import annotations

from typing import Final

from epochal.model.versions import Token
from epochal.plan.limits import ITEM_BYTES
from epochal.plan.values import attribute_size, number, write_units

ROOM: Final = 8 * 1024
"""Kept free below the item limit for counters, and for what sizes in a token may be off by."""

KEPT_MONTHS: Final = 3
"""How long what is left behind is reckoned to be stored. For ever would be dearer than any write; but pages can be
pruned, and what is spent later weighs less."""

_UNITS_PER_BYTE: Final = KEPT_MONTHS * 0.38 / 1024
"""A KB costs as much in a month as 0.38 write units, on demand and by any region's prices: $0.25 per GB against $0.625
per million."""

_ITEM: Final = 100
"""Bytes that an item is charged for besides its own, where storage is paid for."""

_MARK: Final = attribute_size("x", number(1))

_CAUTION: Final = 0.5
"""How much of the difference between appends the next one is taken to be larger by. Where sizes stray the rule is
careful, because one more unit costs more than one more page; more care than this costs more than it saves."""

REFER_FROM: Final = 768
"""Unfolds of so many bytes stay on a full page, which later ones name. On each page they would cost every append a unit
more for each KB; where they are elsewhere, a load reads one page more, which is a fifth of a unit for 4 KB."""

_NAMED: Final = 16
"""Bytes of unfolds that a page has less of where it only names another."""

_LEAST: Final = 20
"""No frame takes less. A token comes from outside and may say anything; this bounds how long one is reckoned with."""


def is_full(left: Token, before: Token | None = None, joined: int = 0, *, kept: bool = False) -> bool:
    """Whether a page, as a write leaves it, is to be left by the next.

    Args:
        before: of the page that the write found last, this one or the one before it.
        joined: bytes of the write, if it was several appends that met: those who meet next are taken to be as many.
        kept: the write has left the unfolds as they were, which the next is taken to do, too.
    """
    if left.size >= ITEM_BYTES - ROOM:
        return True
    usual = max(_LEAST, joined or left.carried / max(1, left.appends))
    # To say that it is full takes bytes of its own, which now and then are the ones that cost another unit.
    mark = write_units(left.size + _MARK) - write_units(left.size)
    caution = 0 if joined else _CAUTION * _spread(left, before)
    further = write_units(int(left.size + usual + caution) + _MARK)
    # Where only a name was of the unfolds before, these will stay as those have.
    stay = kept or (before is not None and 0 < before.unfolds < _NAMED)
    return further - _rate(left, usual, kept=stay) > mark


def fits(page: Token, growth: int) -> bool:
    """Whether a page takes so many bytes more. Where it does, closing it first would be no cheaper."""
    return page.size + growth <= ITEM_BYTES - ROOM


def _spread(left: Token, before: Token | None) -> float:
    """By how much the latest append differs in size from those before it."""
    if before is None or not before.appends or left.version == before.version:
        return 0
    extended = left.appends > before.appends
    latest = left.carried - before.carried if extended else left.carried
    return abs(latest - before.carried / before.appends)


def _rate(left: Token, usual: float, *, kept: bool) -> float:
    """The least average units of an append over a page's life, for appends of `usual` bytes each."""
    bare = max(0, left.size - left.carried)
    if kept and left.unfolds >= REFER_FROM:  # the next page would only name this one
        bare = max(0, bare - left.unfolds)
    spent = (bare + _ITEM) * _UNITS_PER_BYTE
    best, carried, appends = float("inf"), 0.0, 0
    while carried < ITEM_BYTES:
        carried += usual
        appends += 1
        units = write_units(int(bare + carried))
        if units > best:  # and so will be all that follow
            break
        spent += units
        best = min(best, spent / appends)
    return best
