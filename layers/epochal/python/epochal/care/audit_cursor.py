"""Where the auditor stands in each source's table, so that it goes on there the next time. FORMATS §4.

A pass is one scan of a table from its beginning to its end. A cursor only saves work: if it is lost or set back, some
heads are looked at again.
"""

from __future__ import annotations

from epochal.index.checkpoints import calf_key
from epochal.lazy_dataclasses import dataclass
from epochal.plan.ops import Found, Get, Put, Steps
from epochal.plan.values import Key, mapping, number, read_number, read_text, text


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditCursor:
    """How far a pass over a source's table has come.

    Attributes:
        after: the last key that was scanned; None before the first.
        began: when the pass began, ISO 8601.
        heads: number of heads looked at in the pass.
        ended: when the pass before it ended, ISO 8601; empty where there was none.
    """

    after: Key | None = None
    began: str = ""
    heads: int = 0
    ended: str = ""


def cursor_name(base: int) -> str:
    """Partition key of the cursor of the source whose first partition is `base`."""
    return f"$Audit-{base}"


def read_cursor(table: str, base: int) -> Steps[AuditCursor]:
    """Read a source's audit cursor, empty if there is none; `base` is the source's first partition."""
    reply: Found = yield Get(table=table, key=calf_key(cursor_name(base), 0))
    item = reply.item
    if item is None:
        return AuditCursor()
    return AuditCursor(
        after=item["k"]["M"] if "k" in item else None,
        began=read_text(item, "t") or "",
        heads=read_number(item, "n") or 0,
        ended=read_text(item, "x") or "",
    )


def write_cursor(table: str, base: int, cursor: AuditCursor) -> Steps[None]:
    """Write how far the auditor has scanned a source's table; of two auditors, the last write wins."""
    item = {**calf_key(cursor_name(base), 0), "n": number(cursor.heads)}
    for name, value in (("t", cursor.began), ("x", cursor.ended)):
        if value:
            item[name] = text(value)
    if cursor.after is not None:
        item["k"] = mapping(cursor.after)
    yield Put(table=table, item=item)
