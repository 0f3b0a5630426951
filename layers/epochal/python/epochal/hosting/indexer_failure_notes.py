"""Records that a process of the indexer writes when it fails, and removes when it has passed the failed batch.

Lambda repeats a batch until it passes. The process that failed recognises the batch by its first record, and then
removes the records of the failure. Another process does not: these records are out of date once the index has moved on
(`index.indexer_failures`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from epochal.dynamo.loggable_errors import describe_chain
from epochal.errors import EpochalError, Unavailable
from epochal.feed.indexer import Indexer, Report
from epochal.feed.stream_records import numbers_of, table_of
from epochal.index.indexer_failures import forget_failures, record_failures
from epochal.lazy_dataclasses import dataclass, field, replace
from epochal.store.driver import Driver, Patience

AGAIN: Final = 60 * 10**9
"""Nanoseconds after which a lasting failure is recorded again, which takes two requests."""

PATIENCE: Final = Patience(seconds=2.0, retries=2)
"""Retries of the write of a record. Lambda repeats the batch anyway, so it does not wait long for the record."""


@dataclass(slots=True, kw_only=True)
class FailureNotes:
    """Records the failures of one process of the indexer, and removes the records when it has passed the batch.

    Attributes:
        indexer: the indexer whose failures are recorded.
    """

    indexer: Indexer
    _first: dict[str, str] = field(default_factory=dict)
    _written: dict[str, int] = field(default_factory=dict)

    def raised(self, error: Exception, records: Sequence[dict[str, Any]]) -> None:
        """Record that a batch raised an error; the caller raises the same error afterwards."""
        first = numbers_of(records[:1])
        tables = {table_of(str(record.get("eventSourceARN", ""))) for record in records[:1]}
        every = [source.name for source in self.indexer.sources]
        # A Kinesis stream has the changes of all tables.
        name_of_note = [source.name for source in self.indexer.sources if source.table in tables] or every
        with suppress(Exception):
            self._record(dict.fromkeys(name_of_note, (first[0], error)))

    def settle(self, report: Report, records: Sequence[dict[str, Any]]) -> None:
        """Record what failed of a batch, and remove the records of what has passed.

        Raises:
            EpochalError: records failed, and the failure may not be recorded. Lambda counts this error, and shows it
                as the state of the mapping.
        """
        handled = set(numbers_of(records)).difference(report.failed)
        passed = [
            source
            for source, first in self._first.items()
            if first in handled and source not in report.failing
        ]
        with suppress(EpochalError):
            self._forget(passed)
        try:
            self._record(report.failing)
        except Unavailable:
            pass  # the batch is repeated, and noted then
        except EpochalError as refused:
            raise next(iter(report.failing.values()))[1] from refused

    def _record(self, failing: Mapping[str, tuple[str, Exception]]) -> None:
        """Record the failures of sources, unless each was recorded a short while ago."""
        now = self.indexer.now()
        self._first.update({source: first for source, (first, _) in failing.items() if source in self._first})
        due = {
            source: failure
            for source, failure in failing.items()
            if source not in self._written or now >= self._written[source] + AGAIN
        }
        if not due:
            return
        causes = {source: describe_chain(error) for source, (_, error) in due.items()}
        self._driver.run(record_failures(self.indexer.index_table, causes, self.indexer.ids()))
        for source, (first, _) in due.items():
            self._first[source] = first
            self._written[source] = now

    def _forget(self, sources: Collection[str]) -> None:
        """Remove the recorded failures of sources."""
        if not sources:
            return
        self._driver.run(forget_failures(self.indexer.index_table, sources, self.indexer.ids()))
        for source in sources:
            del self._first[source], self._written[source]

    @property
    def _driver(self) -> Driver:
        return replace(self.indexer.driver, patience=PATIENCE)
