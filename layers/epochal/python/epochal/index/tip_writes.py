"""The writes of an append as plans, and the token that each leaves behind. Pure arithmetic on FORMATS §1."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from epochal.index.calf_costs import Growth
from epochal.index.checkpoints import calf_key, tip_key
from epochal.index.tip import StoredSpan, Tip, event_bytes, events_attributes, unfolds_size, write_unfold
from epochal.index.wire_batch import WireBatch
from epochal.lazy_dataclasses import replace
from epochal.model.tokens import Token
from epochal.plan.conditions import Absent, All, AnyOf, Condition, equals
from epochal.plan.ops import Extend, Put, Set, Update
from epochal.plan.values import AttributeValue, attribute_size, item_size, number, sequence, text

_OPEN = AnyOf((Absent("z"), equals("z", number(0))))
"""Condition that the Tip is no tombstone, since a load of a deleted stream returns a tombstone's etag, too."""

_EMPTY_LISTS = attribute_size("e", sequence(())) + attribute_size("c", sequence(()))


def token_of(known_head: Tip | Token) -> Token:
    """Return a Tip or token as a token, which has the figures that the calving rule needs."""
    return known_head.token() if isinstance(known_head, Tip) else known_head


def unfolds_of(batch: WireBatch, version: int) -> tuple[AttributeValue, ...] | None:
    """Encode the batch's unfolds as made from `version`."""
    if batch.unfolds is None:
        return None
    return tuple(write_unfold(replace(unfold, version=version)) for unfold in batch.unfolds)


def growth_of(batch: WireBatch, known_head: Tip | Token) -> Growth:
    """Return what a batch adds to the Tip in bytes and events, with the sizes of unfolds and name."""
    unfolds = unfolds_of(batch, known_head.version + batch.count)
    return Growth(
        growth=batch.size - _EMPTY_LISTS,
        events=batch.count,
        unfolds=token_of(known_head).unfolds if unfolds is None else unfolds_size(unfolds),
        name=len(batch.stream),
    )


def create_tip(table: str, batch: WireBatch) -> tuple[Put, Token]:
    """Build the first write of a stream, refused if it exists, and the token that it leaves."""
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


def extend_tip(table: str, batch: WireBatch, known_head: Tip | Token) -> tuple[Update, Token]:
    """Build the update that appends to the Tip's events, and the token that it leaves."""
    changes = [Extend(name, value) for name, value in events_attributes(batch.span).items()]
    return _update(table, batch, known_head, token_of(known_head), changes)


def restart_tip(table: str, batch: WireBatch, tip: Tip) -> tuple[Update, Token]:
    """Build the update that leaves only new events in the Tip after calving, and its token."""
    events = events_attributes(batch.span)
    changes = [Set(name, value) for name, value in events.items()]
    calved = tip.calved + event_bytes(tip.span)
    changes.append(Set("b", number(calved)))
    before = tip.token()
    size = before.size - before.carried + _calved_size(calved) - _calved_size(tip.calved)
    emptied = replace(before, size=size, carried=0, events=0, appends=0)
    return _update(table, batch, tip, emptied, changes, removes=() if events else ("e", "c"))


def _calved_size(calved: int) -> int:
    """Return the bytes that the count of calved bytes takes in an item."""
    return attribute_size("b", number(calved)) if calved else 0


def put_calf(table: str, stream: str, span: StoredSpan) -> Put:
    """Build the write of a calf with a Tip's events, refused if there is one at its base."""
    item = {**calf_key(stream, span.base), "n": number(span.next), **events_attributes(span)}
    return Put(table=table, item=item, condition=Absent("i"))


def retry_etag(etag: str, tip: Tip | None) -> str:
    """Derive the etag for another try after a refusal by this Tip.

    The last try may have been applied unnoticed. If both tries left the same etag, a token of one would pass for a
    token of the other, and indices would be assigned twice.
    """
    over = "" if tip is None else f"{tip.version} {tip.etag}"
    return hashlib.sha256(f"{etag} {over}".encode()).hexdigest()[:32]


def unchanged_condition(etag: str | None, version: int) -> Condition:
    """Build the condition that a Tip is still the known one, by etag and version.

    Without an etag (a foreign item) its version must do. With one the version is checked too, because indices are given
    out from it, and a token may be forged.
    """
    same_etag = Absent("etag") if etag is None else equals("etag", text(etag))
    return All((same_etag, equals("n", number(version))))


def _update(
    table: str,
    batch: WireBatch,
    known_head: Tip | Token,
    before: Token,
    changes: Sequence[Set | Extend],
    *,
    removes: tuple[str, ...] = (),
) -> tuple[Update, Token]:
    """Build an update of the known Tip, and the token that it leaves.

    `before` has the figures to which the new events are added.
    """
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
        condition=All((unchanged_condition(known_head.etag, known_head.version), _OPEN)),
    )
    return update, _token(batch, before, before.unfolds if unfolds is None else unfolds_size(unfolds))


def _token(batch: WireBatch, before: Token, unfolds: int) -> Token:
    """Compute the token after adding a batch to a Tip with these figures."""
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
