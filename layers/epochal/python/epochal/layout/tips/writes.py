"""The writes of an append, as plans, and the token that each leaves behind. Pure arithmetic on FORMATS §1."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace

from epochal.layout.tips.batch import WireBatch
from epochal.layout.tips.calving import Append
from epochal.layout.tips.items import (
    StoredSpan,
    Tip,
    event_bytes,
    events_attributes,
    tip_key,
    unfolds_size,
    write_calf,
    write_unfold,
)
from epochal.model.versions import Token
from epochal.plan.ops import Absent, All, AnyOf, Condition, Extend, Put, Set, Update, equals
from epochal.plan.values import AttributeValue, attribute_size, item_size, number, sequence, text

_OPEN = AnyOf((Absent("z"), equals("z", number(0))))
"""No tombstone: those have an etag too, which a load of a deleted stream returns."""

_EMPTY_LISTS = attribute_size("e", sequence(())) + attribute_size("c", sequence(()))


def token_of(known: Tip | Token) -> Token:
    """The figures the calving rule needs."""
    return known.token() if isinstance(known, Tip) else known


def unfolds_of(batch: WireBatch, version: int) -> tuple[AttributeValue, ...] | None:
    """The batch's unfolds in wire form, made from `version`."""
    if batch.unfolds is None:
        return None
    return tuple(write_unfold(replace(unfold, version=version)) for unfold in batch.unfolds)


def growth_of(batch: WireBatch, known: Tip | Token) -> Append:
    """What the calving rule must know of a batch."""
    unfolds = unfolds_of(batch, known.version + batch.count)
    return Append(
        growth=batch.size - _EMPTY_LISTS,
        events=batch.count,
        unfolds=token_of(known).unfolds if unfolds is None else unfolds_size(unfolds),
        name=len(batch.stream),
    )


def create(table: str, batch: WireBatch) -> tuple[Put, Token]:
    """A stream's first write: the whole Tip, if there is none."""
    unfolds = unfolds_of(batch, batch.count) or ()
    item = {
        **tip_key(batch.stream),
        "n": number(batch.count),
        "a": number(batch.count),
        "etag": text(batch.etag_at(0)),
        **events_attributes(batch.span),
        **({"u": sequence(unfolds)} if unfolds else {}),
    }
    taken = unfolds_size(unfolds)
    bare = Token(version=0, size=item_size(item) - batch.size - taken)
    return Put(table=table, item=item, condition=Absent("i")), _token(batch, bare, taken)


def extend(table: str, batch: WireBatch, known: Tip | Token) -> tuple[Update, Token]:
    """Append to what the Tip carries, if it is still the one known."""
    changes = [Extend(name, value) for name, value in events_attributes(batch.span).items()]
    return _update(table, batch, known, token_of(known), changes)


def restart(table: str, batch: WireBatch, tip: Tip) -> tuple[Update, Token]:
    """Leave only the new events in the Tip, if any: what it carried is in calves."""
    events = events_attributes(batch.span)
    changes = [Set(name, value) for name, value in events.items()]
    calved = tip.calved + event_bytes(tip.span)
    changes.append(Set("b", number(calved)))
    before = tip.token()
    size = before.size - before.carried + _calved_size(calved) - _calved_size(tip.calved)
    emptied = replace(before, size=size, carried=0, events=0, appends=0)
    return _update(table, batch, tip, emptied, changes, removes=() if events else ("e", "c"))


def _calved_size(calved: int) -> int:
    return attribute_size("b", number(calved)) if calved else 0


def put_calf(table: str, stream: str, span: StoredSpan) -> Put:
    """A calf, if there is none at its base."""
    return Put(table=table, item=write_calf(stream, span), condition=Absent("i"))


def etag_over(etag: str, tip: Tip | None) -> str:
    """The etag for one more try, over the Tip that refused the last.

    The last may have been applied all the same, unnoticed. Were both to leave one etag, a token of the one would
    pass for a token of the other, and indices would be given out twice.
    """
    over = "" if tip is None else f"{tip.version} {tip.etag}"
    return hashlib.sha256(f"{etag} {over}".encode()).hexdigest()[:32]


def unchanged(etag: str | None, version: int) -> Condition:
    """That a Tip is still the one known. Without an etag (a foreign item) its version must do; with one it is asked for
    too, because indices are given out from it, and a token may be forged.
    """
    known = Absent("etag") if etag is None else equals("etag", text(etag))
    return All((known, equals("n", number(version))))


def _update(
    table: str,
    batch: WireBatch,
    known: Tip | Token,
    before: Token,
    changes: Sequence[Set | Extend],
    *,
    removes: tuple[str, ...] = (),
) -> tuple[Update, Token]:
    """An update of the Tip as it is `known`; `before` has the figures that the new events add to."""
    version = before.version + batch.count
    unfolds = unfolds_of(batch, version)
    counters = (
        Set("n", number(version)),
        Set("a", number(batch.count)),
        Set("etag", text(batch.etag_at(before.version))),
    )
    update = Update(
        table=table,
        key=tip_key(batch.stream),
        sets=(*counters, *changes, *((Set("u", sequence(unfolds)),) if unfolds else ())),
        removes=(*removes, "u") if unfolds == () else removes,
        condition=All((unchanged(known.etag, known.version), _OPEN)),
    )
    return update, _token(batch, before, before.unfolds if unfolds is None else unfolds_size(unfolds))


def _token(batch: WireBatch, before: Token, unfolds: int) -> Token:
    """The token after adding a batch to a Tip with these figures."""
    grown = batch.size - (_EMPTY_LISTS if before.events and batch.count else 0)
    return Token(
        version=before.version + batch.count,
        etag=batch.etag_at(before.version),
        size=before.size + grown + unfolds - before.unfolds,
        carried=before.carried + grown,
        unfolds=unfolds,
        events=before.events + batch.count,
        appends=before.appends + bool(batch.count),
    )
