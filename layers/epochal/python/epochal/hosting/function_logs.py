"""Logs of a reaction's function: its logger, and the line about a handler that failed."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from epochal.dynamo.loggable_errors import describe_chain
from epochal.errors import brought_by
from epochal.index.parking_causes import MAX_CAUSE
from epochal.reactions.traces import code_location, trace_of

if TYPE_CHECKING:
    from aws_lambda_powertools import Logger

    from epochal.reactions.failures import Attempt


def log_attempt(logger: Logger, handler: str, attempt: Attempt) -> None:
    """Log a call of a handler that failed: stream, event, attempt and trace, without the event's values.

    The words of a handler's errors may quote an event, and a log outlives it: the line has them where the level is
    DEBUG, and `parked` has them for as long as the stream waits.
    """
    fields = {
        "attempt": attempt.number,
        "handler": handler,
        "partition": attempt.partition,
        "stream": attempt.stream,
        "index": attempt.index,
        "type": attempt.type,
        "events": attempt.events,
        "error": describe_chain(attempt.error),
        "place": code_location(attempt.error),
        "trace": trace_of(attempt.error),
    }
    if logger.log_level <= logging.DEBUG:
        fields["cause"] = attempt.words[:MAX_CAUSE]
    logger.warning("a handler failed", extra=fields)


def logger_of(service: str) -> Logger:
    """Create a function's logger; powertools is imported only here, since most of the library does without it."""
    with brought_by("lambda", "functions", "aws_lambda_powertools"):
        from aws_lambda_powertools import Logger  # noqa: PLC0415
    return Logger(service=service)
