"""Keys of subjects in memory. Needs the extra `subjects`."""

from __future__ import annotations

from epochal.layout.subjects import SUBJECT_KEYS
from epochal.store.driver import Driver, Meter
from epochal.store.subjects import Subjects
from epochal.testing.keys import MemoryWrapping
from epochal.testing.memory import MemoryTables


def memory_subjects(tables: MemoryTables | None = None, *, keep: float = 0.0) -> Subjects:
    """Keys of subjects, of which no process keeps any unless told."""
    tables = tables or MemoryTables({SUBJECT_KEYS.kind: SUBJECT_KEYS})
    driver = Driver(execute=tables.execute, meter=Meter())
    return Subjects(driver=driver, table=SUBJECT_KEYS.kind, wrapping=MemoryWrapping(), keep=keep)
