"""The function of a reaction: what wakes it, and what it answers.

    messages of its queue           partitions have moved: it runs them, and answers which messages must come again
    its schedule                    it wakes every partition, in case a wake-up was lost
    an operator's command           about parked streams (`hosting.commands`)

When its stack is deployed, a function of ours wakes it (`hosting.first_wakeups`).

Time ends before the function's own does, so that a handler's last call can return and be saved.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from epochal.hosting.commands import operate
from epochal.hosting.deadline import SPARED, Alarm, Deadline, OnTimeout, in_timer, place
from epochal.hosting.failure_records import FailureRecords
from epochal.hosting.leases import Beat, Beats, Leases, in_thread, pause_after
from epochal.hosting.metrics import Metrics
from epochal.hosting.wakeup_queue import Queue, WakeUpCall, read_wake_ups, scheduled_wake_ups
from epochal.hosting.wakeups import Standstill, WakeUp, Woken, handle_wake_ups
from epochal.index.checkpoints import Checkpoint
from epochal.index.group_state import GroupState, Unit
from epochal.index.parking_causes import MAX_CAUSE
from epochal.layout.registry import source_of
from epochal.lazy_dataclasses import dataclass
from epochal.reactions.definition import Delivery
from epochal.reactions.failures import Failure
from epochal.reactions.filter_coverage import unmet_filters
from epochal.reactions.parking import Parking
from epochal.reactions.reactor import Reactor, RunResult

if TYPE_CHECKING:
    from aws_lambda_powertools import Logger
    from aws_lambda_powertools.utilities.typing import LambdaContext


WATCH_SECONDS: Final = 6.0
"""Seconds after which a group whose state has not changed is taken for not running: a run saves its progress every five
seconds."""


def warn_of_no_record(logger: Logger, error: str) -> None:
    """Log that a failed run could not be recorded, with the kinds of the error."""
    logger.warning("a failed run could not be recorded", error=error)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReactionFunction:
    """The function of a reaction: answers the events that Lambda hands it.

    Attributes:
        reactor: reactor that runs the reaction.
        queue: the queue whose messages wake the reaction.
        logger: log of the function.
        metrics: metrics of the function.
        now: the clock, in seconds since 1970.
        beats: renews the lease on messages while they are handled.
        alarm: calls a function shortly before the function's timeout.
    """

    reactor: Reactor
    queue: Queue
    logger: Logger
    metrics: Metrics
    now: Callable[[], float] = time.time
    beats: Beats = in_thread
    alarm: Alarm = in_timer

    def handle(self, event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
        """Handle one event, messages of the queue, an operator's command or the schedule; return the answer."""

        def remaining_seconds() -> float:
            return context.get_remaining_time_in_millis() / 1000

        def remaining() -> float:
            return remaining_seconds() * (1 - SPARED)

        if "Records" in event:
            leases = Leases(
                client=self.queue.client, url=self.queue.url, logger=self.logger, beats=self.beats
            )
            with self._deadline(remaining_seconds(), self._record_timeout(remaining_seconds())) as deadline:
                return leases.hold(
                    event["Records"], remaining_seconds, partial(self._wake, event, remaining, deadline)
                )
        if "command" in event:
            with self._deadline(remaining_seconds()) as deadline:
                return operate(Parking(reactor=self.reactor, around=deadline.call), event, remaining())
        self._warn_of_unmet_filters()
        return {"woken": self._wake_all()}

    def _record_timeout(self, timeout: float) -> OnTimeout:
        """Return a function that records which delivery was being handled shortly before the timeout."""

        def record(delivery: Delivery, due: float) -> None:
            index = place(delivery)["index"]
            self._failures.record_timeout(
                delivery.partition, delivery.stream, index, timeout=timeout, due=due
            )

        return record

    @property
    def _failures(self) -> FailureRecords:
        return FailureRecords(
            member=self.reactor.member,
            keeps_words=self.logger.log_level <= logging.DEBUG,  # the log has them, too
            on_unrecorded=partial(warn_of_no_record, self.logger),
        )

    def _deadline(self, seconds: float, on_timeout: OnTimeout = lambda _delivery, _due: None) -> Deadline:
        """Return the deadline of this invocation, which logs what is being handled shortly before it."""
        member = self.reactor.member
        return Deadline(
            member.reaction.handler_name,
            seconds,
            logger=self.logger,
            clock=member.driver.clock,
            alarm=self.alarm,
            on_timeout=on_timeout,
        )

    def _wake(
        self, event: dict[str, Any], remaining: Callable[[], float], deadline: Deadline, beat: Beat
    ) -> dict[str, Any]:
        """Run the partitions that messages name, wake their other members; return which messages failed."""

        def call(handle: Callable[[Delivery], object], delivery: Delivery) -> None:
            beat.wait()
            deadline.call(handle, delivery)

        def run(
            unit: Unit, seconds: float, careful: bool
        ) -> RunResult:  # the shape that `handle_wake_ups` calls
            """Run a partition or share, and return the result; record a run that raised or got nowhere."""
            partition, share = unit
            messages = [wake_up for wake_up in assigned if wake_up.unit == unit]
            due = pause_after(max(message.receives for message in messages))
            try:
                ran = self.reactor.run(
                    partition,
                    share=share,
                    seconds=seconds,
                    careful=careful,
                    tell=self._report_lag,
                    around=call,
                )
            except Exception as error:
                self._failures.record_error(unit, error, due)
                raise
            if ran.blocked is not None:
                self._failures.record_blocked(unit, ran.blocked, due)
            elif ran.stands_still and ran.checkpoint < max(message.position for message in messages):
                self._failures.record_standstill(unit, due)
            return ran

        wake_ups = [wake_up for wake_up in read_wake_ups(event["Records"]) if self._reads(wake_up.partition)]
        self._wake_members(wake_ups)
        members = self.reactor.member.reaction.members
        assigned = [wake_up for wake_up in wake_ups if wake_up.unit.share < members]
        assigned = self._without_running(assigned, remaining)
        woken = handle_wake_ups(assigned, remaining, run, self._again)
        self._emit(woken)
        return {"batchItemFailures": [{"itemIdentifier": message} for message in woken.failed]}

    def _without_running(self, wake_ups: list[WakeUp], remaining: Callable[[], float]) -> list[WakeUp]:
        """Wait to see which partitions run elsewhere; return wake-ups without those sent aside for them.

        That run reads the changed state itself, and two runs would do everything twice.
        """
        aside = {wake_up.partition for wake_up in wake_ups if wake_up.aside}
        if not aside:
            return wake_ups
        member = self.reactor.member
        before = {partition: member.load(partition).state for partition in aside}
        member.driver.sleep(min(WATCH_SECONDS, remaining() / 4))
        running = {partition for partition in aside if member.load(partition).state != before[partition]}
        return [wake_up for wake_up in wake_ups if not (wake_up.aside and wake_up.partition in running)]

    def _wake_members(self, wake_ups: list[WakeUp]) -> None:
        """Send wake-ups to other members of woken partitions that are behind: notices wake only the first.

        A wake-up may have been sent when the group had more members. Whoever has the streams of that share now is woken
        by a message of its own: those of one share come one after another, so no two functions run one member.
        """
        member = self.reactor.member
        sharing = member.reaction.sharing
        shrunk = {wake_up.partition for wake_up in wake_ups if wake_up.unit.share >= sharing.members}
        latest = {
            wake_up.partition: wake_up
            for wake_up in sorted(wake_ups, key=lambda wake_up: wake_up.position)
            if wake_up.unit.share >= sharing.members or (wake_up.concerns_all_members and sharing.members > 1)
        }
        for partition, last in latest.items():
            state = member.load(partition).state or GroupState()
            late = (
                unit
                for unit in sharing.units(partition)
                if (unit.share or partition in shrunk)
                and sharing.checkpoint(state, unit.share) < last.position
            )
            self.queue.send(WakeUpCall(unit=unit, position=last.position, occasion=last.id) for unit in late)

    def _again(self, unit: Unit, position: Checkpoint, standing: Standstill) -> None:
        """Send a wake-up to the function itself, for a catch-up that takes longer than one invocation.

        A failed message would do so as well, but would count towards its last delivery.
        """
        occasion = f"at-{int(standing.at)}-{self.now():.3f}"
        self.queue.send([WakeUpCall(unit=unit, position=position, occasion=occasion, standing=standing)])

    def _wake_all(self) -> int:
        """Send a wake-up for every partition that the reaction reads, and return how many were sent."""
        tails = self.reactor.member.reader.partitions()
        return self.queue.send(
            scheduled_wake_ups((tail for tail in tails if self._reads(tail.partition)), self.now())
        )

    def _reads(self, partition: int) -> bool:
        """Whether the reaction reads the source of a partition."""
        return source_of(partition) in self.reactor.member.reaction.sources

    def _emit(self, woken: Woken) -> None:
        """Log what was parked, blocked or stuck in an invocation, and count it in the metrics."""
        for (partition, _), ran in woken.runs.items():
            for failure in ran.parked:
                self.logger.error(
                    "parked a stream", attempts=failure.attempts, **self._place(partition, failure)
                )
            if ran.blocked is not None:
                self.logger.error("blocked", **self._place(partition, ran.blocked))
        for (partition, _), standing in woken.stuck.items():
            self.logger.error(
                "a catch-up makes no progress",
                partition=partition,
                checkpoint=str(standing.at),
                hops=standing.hops,
            )
        runs = woken.runs.values()
        if behind := [ran.behind for ran in runs if ran.behind is not None]:
            self._report_lag(max(behind))
        parked = sum(len(ran.parked) for ran in runs)
        blocked = sum(ran.blocked is not None for ran in runs) + len(woken.stuck)
        self.metrics.add(
            counts={
                "Reaction.handled": sum(ran.events for ran in runs),
                "Reaction.parked": parked,
                "Reaction.blocked": blocked,
            },
            urgent=parked + blocked > 0,
        )

    def _place(self, partition: int, failure: Failure) -> dict[str, Any]:
        """Return the log fields of a failure; the error's words only at the level DEBUG."""
        fields = {
            "partition": partition,
            "stream": failure.stream,
            "index": failure.index,
            "kind": failure.cause.partition(":")[0],
        }
        if self.logger.log_level <= logging.DEBUG:
            fields["cause"] = failure.cause[:MAX_CAUSE]
        return fields

    def _report_lag(self, seconds: float) -> None:
        """Emit the metric of how many seconds the reaction is behind, during a catch-up too.

        Each run of a catch-up replaces the message whose age the queue would show.
        """
        self.metrics.add(times={"Reaction.behind": seconds * 1000})

    def _warn_of_unmet_filters(self) -> None:
        """Log and count the categories and types in filters that no event has had since the group began.

        They may be misspelt.
        """
        names = unmet_filters(self.reactor.member)
        if names:
            self.logger.warning(
                "no event has had these categories or types", names=list(map(" ".join, names))
            )
        self.metrics.add(counts={"Reaction.unmet": len(names)}, urgent=True)
