"""Leases on the messages of a running function, so that what it leaves undone comes again soon.

SQS hides a message that was received for the visibility timeout of its queue, which AWS wants to be at least the
timeout of the function: a minute, or a quarter of an hour. Lambda does not make it visible sooner if the function
fails, and in a FIFO queue its whole message group waits. So the function itself sets how long its messages are hidden:

    it begins            for `LEASE_SECONDS`, before anything of a user's is called
    it runs              again for so long, every `RENEW_SECONDS`, from a thread of its own
    near its timeout     until a moment after it, when Lambda has ended it
    it fails             for a few seconds, twice as many after each failure
    it dies              nothing more: the lease runs out

The messages of one invocation have one lease. Where SQS does not take a renewal, the visibility timeout of the queue
holds; the log says so.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from epochal.dynamo.loggable_errors import describe_chain
from epochal.feed.notices import send_in_batches
from epochal.lazy_dataclasses import dataclass

if TYPE_CHECKING:
    from aws_lambda_powertools import Logger

LEASE_SECONDS: Final = 45
"""Seconds for which a process that dies keeps its messages at most. Lambda polls and starts another process within the
rest of a minute."""

RENEW_SECONDS: Final = 15
"""Seconds between renewals of a lease, so that two of three may fail."""

GRACE_SECONDS: Final = 3
"""Seconds after the timeout of a function, by when Lambda has ended it."""

MAX_RECEIVES: Final = 240
"""Deliveries after which a message is set aside. It is delivered at most every 30 seconds while something fails, so
this takes two hours at least, and an outage of an hour sets nothing aside."""

WAIT_SECONDS: Final = 10.0
"""Longest wait for a renewal in progress, in seconds."""


def hidden_seconds(timeout: float) -> int:
    """Return the visibility timeout of a wake-up queue, for a function with this timeout, in seconds.

    It is the least that AWS accepts, since a function sets itself how long its messages are hidden. It also holds
    while Lambda has no process to spare for the messages.
    """
    return max(int(timeout), LEASE_SECONDS)


def pause_after(receives: int) -> int:
    """Return the seconds until a failed message is delivered again, after so many deliveries."""
    return min(1 << receives, LEASE_SECONDS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Beat:
    """A running series of renewals.

    Attributes:
        wait: waits until the first renewal has been tried.
        stop: ends the series, and waits for a renewal under way.
    """

    wait: Callable[[], object]
    stop: Callable[[], object]


Beats = Callable[[Callable[[], object]], Beat]
"""Renews at once, and every `RENEW_SECONDS`, until it is stopped."""


def in_thread(renew: Callable[[], object]) -> Beat:
    """Call `renew` in a thread, at once and every `RENEW_SECONDS`; return what waits for it and stops it."""
    tried, over = threading.Event(), threading.Event()

    def run() -> None:
        while not over.is_set():
            renew()
            tried.set()
            over.wait(RENEW_SECONDS)

    thread = threading.Thread(target=run, name="lease", daemon=True)
    thread.start()

    def stop() -> None:
        over.set()
        thread.join(WAIT_SECONDS)

    return Beat(wait=partial(tried.wait, WAIT_SECONDS), stop=stop)


@dataclass(frozen=True, slots=True, kw_only=True)
class Leases:
    """Leases on the messages of one queue.

    Attributes:
        client: an SQS client.
        url: URL of the queue.
        logger: gets a line where a lease cannot be renewed, or messages failed.
        beats: starts a series of renewals.
    """

    client: Any
    url: str
    logger: Logger
    beats: Beats = in_thread

    def hold(
        self,
        records: Sequence[Mapping[str, Any]],
        remaining: Callable[[], float],
        work: Callable[[Beat], dict[str, Any]],
    ) -> dict[str, Any]:
        """Hold a lease on messages while `work` runs, and return its answer; messages that failed come again.

        Where `work` raises, all messages come again after a pause.

        Args:
            remaining: seconds until Lambda ends the function.
            work: waits for the lease before it calls what may take the process with it.
        """
        failed: Collection[str] = {record["messageId"] for record in records}
        beat = self.beats(partial(self._renew, records, remaining))
        try:
            answer = work(beat)
            failed = {failure["itemIdentifier"] for failure in answer["batchItemFailures"]}
        finally:
            beat.stop()
            self.put_back([record for record in records if record["messageId"] in failed])
        return answer

    def _renew(self, records: Sequence[Mapping[str, Any]], remaining: Callable[[], float]) -> None:
        """Hide the messages for another lease, but not for longer than the function can run."""
        if (remaining_seconds := remaining()) > 0:
            seconds = min(LEASE_SECONDS, int(remaining_seconds) + GRACE_SECONDS)
            self._hide([(record, seconds) for record in records])

    def put_back(self, records: Sequence[Mapping[str, Any]]) -> None:
        """Let messages come again after a pause, which is longer after each failure."""
        if not records:
            return
        pauses = [(record, pause_after(_receives(record))) for record in records]
        self.logger.warning(
            "wake-ups failed and will be retried",
            messages=len(records),
            receives=max(map(_receives, records)),
            seconds=max(seconds for _, seconds in pauses),
        )
        self._hide(pauses)

    def _hide(self, pauses: Sequence[tuple[Mapping[str, Any], int]]) -> None:
        """Hide each message for its number of seconds; if SQS refuses, log that they wait for longer."""
        entries = [
            {"Id": str(number), "ReceiptHandle": record["receiptHandle"], "VisibilityTimeout": seconds}
            for number, (record, seconds) in enumerate(pauses)
        ]

        def request(batch: list[dict[str, Any]]) -> Any:
            return self.client.change_message_visibility_batch(QueueUrl=self.url, Entries=batch)

        try:
            send_in_batches("the queue", entries, request)
        except Exception as error:  # noqa: BLE001  without a lease the work goes on
            self.logger.warning(
                "a lease on wake-ups was not renewed: if this run dies, they wait for the queue's visibility timeout",
                error=describe_chain(error),
            )


def _receives(record: Mapping[str, Any]) -> int:
    return int(record["attributes"].get("ApproximateReceiveCount", "1"))
