"""Functions that run on a schedule, and are not repeated: the next run makes up for one that failed.

Two services may repeat a run. EventBridge repeats what it could not deliver to Lambda. Lambda repeats an asynchronous
invocation that raised an error twice, and keeps one that was throttled for up to six hours, unless its configuration
says otherwise.
"""

from __future__ import annotations

from typing import Final

from aws_cdk import Duration
from aws_cdk import aws_events as events
from aws_cdk import aws_lambda as lambda_
from aws_cdk.aws_events_targets import LambdaFunction
from constructs import Construct

OLDEST: Final = Duration.hours(6)
"""The longest time for which Lambda keeps an asynchronous invocation."""


def run_on_schedule(scope: Construct, id_: str, function: lambda_.Function, every: Duration) -> None:
    """Schedule a function at an interval; a run that fails, or begins too late, is not repeated.

    Args:
        every: interval between runs, a minute at least.
    """
    rule = events.Rule(scope, id_, schedule=events.Schedule.rate(every))
    rule.add_target(LambdaFunction(function, retry_attempts=0))
    oldest = every if every.to_seconds() < OLDEST.to_seconds() else OLDEST
    function.configure_async_invoke(retry_attempts=0, max_event_age=oldest)
