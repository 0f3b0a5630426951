"""A function whose reaction cannot be loaded: a module is missing, or raises while it is imported.

Lambda would end the process before it takes a lease on its wake-ups (`hosting.leases`), and each would wait for the
visibility timeout of its queue. So the function starts all the same, and fails in each run: its wake-ups come again
after a pause, as after other failures. Each run tries to load the reaction again, since what failed may only have been
out of reach. A run that cannot load it is recorded, so that the status of the group shows why it makes no progress.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from epochal.dynamo.loggable_errors import describe_chain
from epochal.hosting.failure_records import FailureRecords
from epochal.hosting.leases import Leases, pause_after
from epochal.hosting.reaction_function import warn_of_no_record
from epochal.hosting.wakeup_queue import read_wake_ups
from epochal.lazy_dataclasses import dataclass

if TYPE_CHECKING:
    from aws_lambda_powertools.utilities.typing import LambdaContext

    from epochal.hosting.function import Handler


@dataclass(slots=True, kw_only=True)
class FailedLoad:
    """Stands in for the handler of a function that could not be loaded.

    Attributes:
        load: loads the handler, or raises.
        leases: leases on the messages of the function's queue.
        open_records: opens the records of failed runs of the group.
        handler: what was loaded; None until then.
    """

    load: Callable[[], Handler]
    leases: Leases
    open_records: Callable[[], FailureRecords]
    handler: Handler | None = None

    def handle(self, event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
        """Load the handler and answer an event with it; if that fails, put messages back, record it, raise."""
        if self.handler is None:
            try:
                self.handler = self.load()
            except Exception as error:
                messages = event.get("Records", ())
                self.leases.put_back(messages)
                self._record(error, messages)
                raise
        return self.handler(event, context)

    def _record(self, error: Exception, messages: Sequence[dict[str, Any]]) -> None:
        """Record the failed load for each partition, or share of it, that the queue's messages are about."""
        receives = {wake_up.unit: wake_up.receives for wake_up in read_wake_ups(messages)}
        if not receives:
            return
        try:
            records = self.open_records()
        except Exception as refusal:  # noqa: BLE001  the run has failed already, and its own error counts
            warn_of_no_record(self.leases.logger, describe_chain(refusal))
            return
        for unit, count in receives.items():
            records.record_failed_load(unit, error, pause_after(count))
