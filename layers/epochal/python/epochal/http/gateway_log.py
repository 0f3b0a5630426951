"""The log of a function of the API, whose logger is imported with the first line."""

from __future__ import annotations

import logging
import os
from functools import cached_property
from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    from aws_lambda_powertools import Logger


LEVEL: Final = "POWERTOOLS_LOG_LEVEL"
"""Environment variable with the least level of log lines that are written; INFO where it is not set."""

Level = Literal["debug", "info", "error"]

_LEVELS: Final = logging.getLevelNamesMapping()


class Log:
    """The log of a function.

    Powertools' logger is imported with the first line that is written: most processes never write one.
    """

    def __init__(self, service: str) -> None:
        self._service = service
        self._least = _LEVELS.get(os.environ.get(LEVEL, "").upper(), logging.INFO)

    def write(self, level: Level, message: str, correlation_id: str, **fields: object) -> None:
        """Write a log line about a request, unless its level is below the least level that is logged."""
        if _LEVELS[level.upper()] >= self._least:
            self._logger.set_correlation_id(correlation_id)
            getattr(self._logger, level)(message, extra=fields, stacklevel=3)

    @cached_property
    def _logger(self) -> Logger:
        """Powertools' logger of the service."""
        from aws_lambda_powertools import Logger  # noqa: PLC0415  see above

        return Logger(service=self._service)
