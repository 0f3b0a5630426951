"""Errors of Epochal's as those that the library's applications catch."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from eventsourcing.persistence import (
    DatabaseError,
    DataError,
    IntegrityError,
    InternalError,
    OperationalError,
    PersistenceError,
    ProgrammingError,
)

from epochal.errors import (
    ConflictError,
    CorruptData,
    EpochalError,
    InvalidInput,
    Misconfigured,
    MissingBucket,
    MissingTable,
    OutcomeUndetermined,
    Refused,
    Unavailable,
    WrongTable,
)

_TWINS: Final[tuple[tuple[type[EpochalError], type[PersistenceError]], ...]] = (
    (ConflictError, IntegrityError),
    (WrongTable, ProgrammingError),
    (InvalidInput, DataError),
    (MissingTable, ProgrammingError),
    (MissingBucket, ProgrammingError),
    (Misconfigured, ProgrammingError),
    (Refused, OperationalError),
    (Unavailable, OperationalError),
    (OutcomeUndetermined, OperationalError),
    (CorruptData, InternalError),
)
"""The first that fits."""


@contextmanager
def as_the_library_has_them() -> Iterator[None]:
    """Errors raised within the block, as the library names them; Epochal's own is the cause."""
    try:
        yield
    except EpochalError as error:
        twin = next((twin for kind, twin in _TWINS if isinstance(error, kind)), DatabaseError)
        raise twin(str(error)) from error
