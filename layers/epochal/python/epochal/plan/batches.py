"""Items by key, however many they are: request after request, each for as many as it may ask for."""

from __future__ import annotations

from collections.abc import Iterable

from epochal.plan.limits import BATCH_KEYS, TRANSACTION_ITEMS
from epochal.plan.ops import BatchGet, Steps, TransactGet
from epochal.plan.values import Item, Key


def get_all(table: str, keys: Iterable[Key]) -> Steps[list[Item]]:
    """Those of the items that are there, in no order. No key may come twice."""
    wanted, found = tuple(keys), list[Item]()
    for start in range(0, len(wanted), BATCH_KEYS):
        found += (yield BatchGet(table=table, keys=wanted[start : start + BATCH_KEYS])).items
    return found


def settled(places: Iterable[tuple[str, Key]]) -> Steps[None]:
    """Reads that wait for what is under way on these items, each by table and key; none may come twice."""
    wanted = tuple(places)
    for start in range(0, len(wanted), TRANSACTION_ITEMS):
        yield TransactGet(keys=wanted[start : start + TRANSACTION_ITEMS])
