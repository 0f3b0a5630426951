"""Timers as they are deployed: the function that fires them, and how wake-ups reach it.

    messages of its queue      timers are due: fires them; answers which messages must come again
    its schedule               fires what is due by now, in case a wake-up was lost

A wake-up of what is due soon is a message that the queue keeps back; of what is due later, a schedule sends it, which
is gone once it has.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from epochal.contrib.timers.engine import Engine, engine_of
from epochal.contrib.timers.protocol import Sent, Wake, Worked, read_wake_up
from epochal.dynamo.aws_errors import translate_errors
from epochal.dynamo.interpreter import open_deployment
from epochal.dynamo.lazy_clients import lazily
from epochal.dynamo.loggable_errors import describe_chain
from epochal.errors import EpochalError, InvalidInput, InvalidRequest
from epochal.feed.notices import send_in_batches
from epochal.hosting.deadline import SPARED
from epochal.hosting.function_logs import logger_of
from epochal.hosting.leases import Beat, Leases
from epochal.hosting.light_sqs import light_sqs_client
from epochal.hosting.metrics import Metrics, metrics_of
from epochal.lazy_dataclasses import dataclass, field, replace
from epochal.model.moments import format_ticks
from epochal.model.stream_names import TIMER_SET
from epochal.settings import Settings, service_name
from epochal.store.driver import SIDE_BY_SIDE, ahead

if TYPE_CHECKING:
    from aws_lambda_powertools import Logger
    from aws_lambda_powertools.utilities.typing import LambdaContext
    from mypy_boto3_sqs.client import SQSClient
    from mypy_boto3_sqs.type_defs import SendMessageBatchRequestEntryTypeDef

    from epochal.hosting.function import Handler


@dataclass(frozen=True, slots=True, kw_only=True)
class TimerQueue:
    """Sends wake-ups of timers, with clients of SQS and of EventBridge Scheduler.

    Attributes:
        sqs: an SQS client, for wake-ups that are near.
        scheduler: an EventBridge Scheduler client, for wake-ups that are far.
        settings: settings that name the queue, and the group, target and role of schedules.
        made: names of schedules that exist already: a million timers of one minute need 16.
    """

    sqs: SQSClient
    scheduler: Any
    settings: Settings
    made: set[str] = field(default_factory=set)

    def __call__(self, wake_ups: Sent) -> None:
        """Send wake-ups: near ones as delayed messages, far ones as schedules that do not exist yet.

        Raises:
            Unavailable, Refused: one was not accepted. All of them may be sent again.
        """

        def request(batch: list[tuple[Wake, int]]) -> Any:
            """Send one batch of wake-ups, each with its delay in seconds, to the queue."""
            entries: list[SendMessageBatchRequestEntryTypeDef] = [
                {"Id": str(number), "MessageBody": wake.body, "DelaySeconds": seconds}
                for number, (wake, seconds) in enumerate(batch)
            ]
            with translate_errors("SendMessageBatch"):
                return self.sqs.send_message_batch(QueueUrl=self.settings.timers_queue, Entries=entries)

        send_in_batches("the queue", wake_ups.near, request)
        new = [slot for slot in wake_ups.far if slot.name not in self.made]
        if len(self.made) > MADE:
            self.made.clear()
        self.made.update(ahead(self._schedule, new, SIDE_BY_SIDE))

    def _schedule(self, slot: Wake) -> str:
        """Create the one-time schedule of a slot's wake-up, unless it exists; return its name.

        A schedule of this name is for the same slot, and cannot have fired yet: a slot that is near gets messages
        instead.
        """
        group, queue, role = self.settings.timers_schedules
        try:
            with translate_errors("CreateSchedule"):
                self.scheduler.create_schedule(
                    Name=slot.name,
                    GroupName=group,
                    ScheduleExpression=f"at({format_ticks(slot.since)[:_SECOND]})",
                    ScheduleExpressionTimezone="UTC",
                    FlexibleTimeWindow={"Mode": "OFF"},
                    ActionAfterCompletion="DELETE",
                    Target={"Arn": queue, "RoleArn": role, "Input": slot.body},
                )
        except InvalidRequest as error:
            if error.code != "ConflictException":
                raise
        return slot.name


MADE: Final = 10_000
"""Number of schedule names that a process remembers: a week of them, with one slot each minute."""

_SECOND: Final = len("2026-12-07T09:30:00")


def queue_of(settings: Settings) -> TimerQueue:
    """Make the sender of wake-ups from a function's settings.

    Its requests are retried. A request that is sent twice only causes one more wake-up.
    """
    return TimerQueue(sqs=lazily(light_sqs_client), scheduler=lazily(_scheduler_client), settings=settings)


def _scheduler_client() -> Any:
    """Create a client of EventBridge Scheduler."""
    from epochal.dynamo.clients import service_client  # noqa: PLC0415  only timers that are far off need it

    return service_client("scheduler", retried=True)


def read_function_settings(client: Any, function: str) -> Settings:
    """Return the settings of a deployed function, read from its environment variables in Lambda.

    Args:
        client: a Lambda client.
        function: name of the function.

    Raises:
        Refused: the credentials do not allow the request.
        InvalidRequest: there is no such function.
        Unavailable: throttling, an outage, or no answer in time.
    """
    with translate_errors("GetFunctionConfiguration"):
        configuration = client.get_function_configuration(FunctionName=function)
    return Settings.from_environment(configuration.get("Environment", {}).get("Variables", {}))


def engine_deployed(settings: Settings) -> Engine:
    """Make the engine of the deployment that a function's settings describe."""
    deployment = open_deployment(settings, at_once=SIDE_BY_SIDE)
    return engine_of(deployment, settings.timers_table, queue_of(settings))


def deployed_arming(environment: Mapping[str, str] = os.environ) -> Handler:
    """Make the Lambda handler of the reaction that arms timers and sends their wake-ups."""
    from epochal.hosting.function import lambda_handler  # noqa: PLC0415  the function that fires timers is no reaction

    engine = engine_deployed(Settings.from_environment(environment))
    logger = lazily(partial(logger_of, service_name(environment, "timers")))
    engine = replace(engine, send=partial(sent_or_swept, engine.send, logger))
    # No event may have set a timer yet, so the type may still be unknown.
    return lambda_handler(engine.reaction(early=frozenset({TIMER_SET})), environment)


def sent_or_swept(send: Callable[[Sent], object], logger: Logger, wake_ups: Sent) -> None:
    """Send wake-ups with `send`; log a warning if that fails, and leave the timers to the next sweep.

    Their timers are in the table by then. If this raised, their stream would be parked, and its later timers would be
    kept out of the table.
    """
    try:
        send(wake_ups)
    except EpochalError as error:
        logger.warning(
            "wake-ups of timers were not sent: the timers will be fired late, by a sweep",
            error=describe_chain(error),
        )


def deployed_timers(environment: Mapping[str, str] = os.environ) -> Handler:
    """Make the Lambda handler of the function that fires timers, from its environment variables."""
    service, settings = service_name(environment, "timers"), Settings.from_environment(environment)
    logger = lazily(partial(logger_of, service))  # most invocations log nothing
    return TimersFunction(
        engine=engine_deployed(settings),
        logger=logger,
        metrics=metrics_of(service, environment),
        leases=Leases(client=lazily(light_sqs_client), url=settings.timers_queue, logger=logger),
    ).handle


@dataclass(frozen=True, slots=True, kw_only=True)
class TimersFunction:
    """The Lambda function that fires timers.

    Attributes:
        engine: the engine that fires them.
        leases: leases on messages while they are handled.
    """

    engine: Engine
    logger: Logger
    metrics: Metrics
    leases: Leases

    def handle(self, event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
        """Fire the timers of wake-ups and return the failed messages, or sweep and return how many fired.

        Returns:
            The batch's failed messages as Lambda expects them, or the number of timers that the sweep fired.
        """

        def left() -> float:
            """Return the seconds left until the invocation times out."""
            return context.get_remaining_time_in_millis() / 1000

        seconds = left() * (1 - SPARED)
        if "Records" in event:
            records = event["Records"]
            return self.leases.hold(records, left, partial(self._woken, records, seconds))
        swept = Worked()
        try:
            self.engine.sweep(seconds, worked=swept)
        finally:  # an outage in the middle has its counts
            self._tell(swept, swept=swept.fired)
        return {"fired": swept.fired}

    def _woken(self, records: Sequence[dict[str, Any]], seconds: float, _: Beat) -> dict[str, Any]:
        """Fire the timers of a batch of wake-up messages; return the failed messages as Lambda expects them.

        A message that is no wake-up is logged, and fails.
        """
        wake_ups, failed = dict[str, Wake](), list[str]()
        for record in records:
            try:
                wake_ups[record["messageId"]] = read_wake_up(record["body"])
            except InvalidInput as error:
                self.logger.warning("a message is not a wake-up of timers", error=describe_chain(error))
                failed.append(record["messageId"])
        worked = Worked()
        try:
            self.engine.work([*wake_ups.values()], seconds, worked=worked)
        finally:
            self._tell(worked)
        failed += [id_ for id_, wake_up in wake_ups.items() if wake_up in worked.failed]
        return {"batchItemFailures": [{"itemIdentifier": id_} for id_ in failed]}

    def _tell(self, worked: Worked, swept: int = 0) -> None:
        """Log the timers that could not be fired, and add the metrics of a run.

        Args:
            swept: number of timers that a sweep fired.
        """
        for timer, error in worked.failures:
            fields: dict[str, Any] = {
                "due": format_ticks(timer.due),
                "stream": timer.stream,
                "tags": timer.tags,
                "error": describe_chain(error),
            }
            self.logger.error("timers cannot be fired", extra=fields)
        stuck = len(worked.failures)
        self.metrics.add(
            times={"Timers.late": worked.late * 1000} if worked.fired else {},
            counts={"Timers.fired": worked.fired, "Timers.swept": swept, "Timers.stuck": stuck},
            notes={"Timers.gone": worked.gone, "Timers.refused": worked.refused},
            urgent=swept + stuck > 0,
        )
