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
    """A secret in Secrets Manager, by its ARN or name, whose value is cached for `KEPT_SECONDS`."""

    def __init__(self, client: Any, name: str, *, clock: Callable[[], float] = time.time) -> None:
        self._client = client
        self._name = name
        self._clock = clock
        self._values: tuple[str, ...] = ()
        self._read_at = 0.0

    def values(self) -> tuple[str, ...]:
        """Return the secret's value, cached for minutes, and the previous one if it was rotated within a day.

        Raises:
            Refused: the credentials do not allow reading the secret.
            Unavailable: Secrets Manager does not answer.
            InvalidRequest: there is no such secret.
            InvalidInput: the current value is not text.
        """
        values = self._values  # another thread may call `forget` meanwhile
        if not values or self._clock() - self._read_at >= KEPT_SECONDS:
            values = self._read()
            self._values, self._read_at = values, self._clock()
        return values

    def forget(self) -> None:
        """Discard the cached values, so that the next call reads the secret again."""
        self._values = ()

    def _read(self) -> tuple[str, ...]:
        """Read the current value from Secrets Manager, and the previous one if that was current within a day.

        Raises:
            InvalidInput: the current value is not text.
        """
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
        """Read the version of the secret that has a stage label, such as `AWSCURRENT`."""
        with translate_errors("secretsmanager:GetSecretValue"):
            return self._client.get_secret_value(SecretId=self._name, VersionStage=stage)
