"""Keys of subjects in memory, and a forget log. Needs the extra `subjects`."""

from __future__ import annotations

from epochal.layout.subjects import FORGET_LOG, SUBJECT_KEYS
from epochal.store.driver import Driver, Meter
from epochal.store.subjects import Subjects
from epochal.testing.keys import MemoryWrapping
from epochal.testing.memory import MemoryTables


def memory_subjects(
    tables: MemoryTables | None = None, *, table: str = SUBJECT_KEYS.kind, log: str = "", keep: float = 0.0
) -> Subjects:
    """Keys of subjects, of which no process keeps any unless told. `log` is the table of a forget log, if any."""
    tables = tables or MemoryTables({spec.kind: spec for spec in (SUBJECT_KEYS, FORGET_LOG)})
    driver = Driver(execute=tables.execute, meter=Meter())
    return Subjects(driver=driver, table=table, wrapping=MemoryWrapping(), log=log, keep=keep)
