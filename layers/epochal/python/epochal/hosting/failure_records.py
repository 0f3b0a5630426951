"""Records failed runs of a reaction's function or process, so that the status of its group shows why it makes no
progress.

    a run raises, or is blocked by a stream     at its end
    a handler is at work near the timeout       shortly before Lambda ends the function
    the reaction cannot be loaded               at each wake-up

A record that cannot be written is reported, and changes nothing for the run.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from epochal.dynamo.loggable_errors import describe_chain, describe_failed_load
from epochal.index.failed_runs import CANNOT_LOAD, FailedRun, digest_of, end_failed_run, record_failed_run
from epochal.index.group_state import GroupState, Unit
from epochal.index.groups import group_stream, load
from epochal.lazy_dataclasses import dataclass, replace
from epochal.model.moments import format_ticks, from_unix_nanoseconds
from epochal.reactions.failures import Failure
from epochal.reactions.group_member import Member
from epochal.store.driver import Driver, Patience

PATIENCE: Final = Patience(seconds=1.0, retries=1)
"""Retries of the write of a record. There is little time near the timeout, and the next run writes its own record."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureRecords:
    """Writes the failed runs of a group's members to the index table.

    Attributes:
        member: the member of the group whose runs are recorded.
        keeps_words: whether the words of a handler's errors are kept, which may quote events, or only their kinds.
        on_unrecorded: function that is called with the kinds of the error if a record cannot be written.
    """

    member: Member
    keeps_words: bool
    on_unrecorded: Callable[[str], object]

    def record_error(self, unit: Unit, error: Exception, due: float | None) -> None:
        """Record a run that raised an error.

        Args:
            due: seconds until the next run; None where the process ends.
        """
        self._record(unit, describe_chain(error), due)

    def record_failed_load(self, unit: Unit, error: Exception, due: float) -> None:
        """Record a run for which the reaction could not be loaded. The next run is `due` in so many seconds."""
        self._record(unit, f"{CANNOT_LOAD}{describe_failed_load(error)}", due)

    def record_blocked(self, unit: Unit, failure: Failure, due: float | None) -> None:
        """Record a run that did not get past a stream.

        Args:
            due: seconds until the next run; None where the process ends.
        """
        cause = failure.cause if self.keeps_words else failure.cause.partition(":")[0]
        self._record(unit, cause, due, failure.stream, failure.index)

    def record_end(self, unit: Unit) -> None:
        """Record that the process ends, so that no next run is expected after one that failed."""
        member = self.member
        try:
            self._driver.run(end_failed_run(member.table, member.reaction.name, unit))
        except Exception as error:  # noqa: BLE001  a process that is told to end does so
            self.on_unrecorded(describe_chain(error))

    def record_standstill(self, unit: Unit, due: float) -> None:
        """Record a run that had no time to handle anything. The next run is `due` in so many seconds."""
        self._record(unit, "the run handled nothing in its time", due)

    def record_timeout(self, partition: int, stream: str, index: int, *, timeout: float, due: float) -> None:
        """Record a run that Lambda is about to end while a stream is being handled.

        Args:
            timeout: of the function, in seconds.
            due: seconds until the next run.
        """
        reaction = self.member.reaction
        unit = Unit(partition, reaction.sharing.share_of(stream))
        cause = f"timed out after {timeout:,.0f} s in handler {reaction.handler_name}"
        self._record(unit, cause, due, stream, index)

    def _record(
        self, unit: Unit, cause: str, due: float | None, stream: str = "", index: int | None = None
    ) -> None:
        """Write a failed run to the index table, or report that it cannot be written."""
        member = self.member
        group, table = member.reaction.name, member.table
        try:
            state = self._driver.run(load(table, group_stream(unit.partition, group))).state
            now = member.now()
            last = format_ticks(from_unix_nanoseconds(now))
            expected = "" if due is None else format_ticks(from_unix_nanoseconds(now + round(due * 10**9)))
            failed = FailedRun(
                member=unit.share,
                cause=cause,
                since=last,
                last=last,
                due=expected,
                stream=stream,
                index=index,
                state=digest_of(state or GroupState(), unit.share),
            )
            self._driver.run(record_failed_run(table, group, unit.partition, failed))
        except Exception as error:  # noqa: BLE001  the run has failed already, and its own error counts
            self.on_unrecorded(describe_chain(error))

    @property
    def _driver(self) -> Driver:
        return replace(self.member.driver, patience=PATIENCE)
