"""How far groups were behind whenever the console looked: nothing else keeps that, where there is no CloudWatch."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from threading import Lock
from typing import Final

LOOKS: Final = 150
"""That are kept of a group: five minutes of looks every two seconds."""


@dataclass(frozen=True, slots=True)
class Lags:
    """Looks at groups, the latest of each."""

    _looks: dict[str, deque[tuple[float, int]]] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)

    def groups(self) -> list[str]:
        """Groups that were looked at."""
        with self._lock:
            return list(self._looks)

    def add(self, group: str, seconds: float, behind: int) -> list[tuple[float, int]]:
        """Add a look, at a time since 1970; all that are kept of the group."""
        with self._lock:
            looks = self._looks.setdefault(group, deque(maxlen=LOOKS))
            looks.append((seconds, behind))
            return list(looks)
