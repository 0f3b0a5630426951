"""Secrets of Secrets Manager, kept for a while: what a function reads in order to prove who it is.

    KEPT_SECONDS       a value is read again after them, or when it was refused somewhere
    OVERLAP_SECONDS    for so long after a rotation the value before it counts as well

Values are text. A current value of bytes is refused. One before it is left out: it was refused while it was current, so
nobody relies on it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Final

from epochal.dynamo.aws_errors import translate_errors
from epochal.errors import InvalidInput, InvalidRequest

KEPT_SECONDS: Final = 300
OVERLAP_SECONDS: Final = 86_400

_CURRENT: Final = "AWSCURRENT"
_MISSING: Final = "ResourceNotFoundException"


class Secret:
    """One secret, by its ARN or name."""

    def __init__(self, client: Any, name: str, *, clock: Callable[[], float] = time.time) -> None:
        self._client = client
        self._name = name
        self._clock = clock
        self._values: tuple[str, ...] = ()
        self._read_at = 0.0

    def values(self) -> tuple[str, ...]:
        """The value, and behind it the one that it took the place of, if that was lately.

        Raises:
            Refused: it must not be read.
            Unavailable: Secrets Manager does not answer.
            InvalidRequest: there is no such secret.
            InvalidInput: the current one is no text.
        """
        values = self._values  # another thread may have it forgotten meanwhile
        if not values or self._clock() - self._read_at >= KEPT_SECONDS:
            values = self._read()
            self._values, self._read_at = values, self._clock()
        return values

    def forget(self) -> None:
        """Read it again next time."""
        self._values = ()

    def _read(self) -> tuple[str, ...]:
        current = self._version(_CURRENT)
        if "SecretString" not in current:
            raise InvalidInput(f"secret {self._name}, version {_CURRENT}", "must be text, not bytes")
        value = str(current["SecretString"])
        if self._clock() - current["CreatedDate"].timestamp() >= OVERLAP_SECONDS:
            return (value,)
        try:
            previous = self._version("AWSPREVIOUS")
        except InvalidRequest as error:
            if error.code != _MISSING:
                raise
            return (value,)
        return (value, str(previous["SecretString"])) if "SecretString" in previous else (value,)

    def _version(self, stage: str) -> Any:
        with translate_errors("secretsmanager:GetSecretValue"):
            return self._client.get_secret_value(SecretId=self._name, VersionStage=stage)
