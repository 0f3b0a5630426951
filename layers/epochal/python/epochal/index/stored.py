"""The index is an ordinary store of tips (DESIGN §5.7): all that it, and whoever looks after it, takes from there.

A name is resolved when it is first asked for, so a function that only looks at an item loads nothing that writes one.
"""

# ruff: noqa: PLC0414  mypy reads "as" as the giving on of a name

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from epochal.layout.tips.append import append as append
    from epochal.layout.tips.append import append_on as append_on
    from epochal.layout.tips.batch import Known as Known
    from epochal.layout.tips.batch import Rejected as Rejected
    from epochal.layout.tips.batch import Written as Written
    from epochal.layout.tips.batch import batch_of as batch_of
    from epochal.layout.tips.calving import ByCost as ByCost
    from epochal.layout.tips.heads import WHERE as WHERE
    from epochal.layout.tips.items import TIP as TIP
    from epochal.layout.tips.items import StoredEvent as StoredEvent
    from epochal.layout.tips.items import StoredSpan as StoredSpan
    from epochal.layout.tips.items import StoredUnfold as StoredUnfold
    from epochal.layout.tips.items import Tip as Tip
    from epochal.layout.tips.items import calf_key as calf_key
    from epochal.layout.tips.items import event_bytes as event_bytes
    from epochal.layout.tips.items import is_tip as is_tip
    from epochal.layout.tips.items import read_data as read_data
    from epochal.layout.tips.items import read_event as read_event
    from epochal.layout.tips.items import read_unfold as read_unfold
    from epochal.layout.tips.items import tip_key as tip_key
    from epochal.layout.tips.key_records import KeyRecord as KeyRecord
    from epochal.layout.tips.once import append_once as append_once
    from epochal.layout.tips.reading import Cursor as Cursor
    from epochal.layout.tips.reading import advance as advance
    from epochal.layout.tips.reading import load_tip as load_tip
    from epochal.layout.tips.reading import stand as stand

_FROM: Final = {
    "ByCost": "calving",
    "Cursor": "reading",
    "KeyRecord": "key_records",
    "Known": "batch",
    "Rejected": "batch",
    "StoredEvent": "items",
    "StoredSpan": "items",
    "StoredUnfold": "items",
    "TIP": "items",
    "Tip": "items",
    "WHERE": "heads",
    "Written": "batch",
    "advance": "reading",
    "append": "append",
    "append_on": "append",
    "append_once": "once",
    "batch_of": "batch",
    "calf_key": "items",
    "event_bytes": "items",
    "is_tip": "items",
    "load_tip": "reading",
    "read_data": "items",
    "read_event": "items",
    "read_unfold": "items",
    "stand": "reading",
    "tip_key": "items",
}


def __getattr__(name: str) -> Any:
    if name not in _FROM:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"epochal.layout.tips.{_FROM[name]}"), name)
