"""Versions of events: functions that bring what an older program wrote to the form of today.

An event's version is the member `$v` of its JSON object. It is 1 where there is none, so events that were stored before
there were versions have one, and one that never changed pays nothing. A type's current version is the highest that its
upcasters lead to. Nothing stored is changed: an event is upcast whenever it is read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from epochal.model.events import VERSION

Change = Callable[[dict[str, Any]], dict[str, Any]]
"""Takes an event's object of one version, and answers it as of a later one."""


@dataclass(frozen=True, slots=True)
class Upcast:
    """One step: events of a type from one version to a later one. Calling it calls the function, as tests do."""

    type: str
    version: int
    to: int
    change: Change

    def __call__(self, event: dict[str, Any]) -> dict[str, Any]:
        """The event's JSON object in the later version; the one that is given may be changed."""
        return self.change(event)


def upcast(type: str, version: int, /, *, to: int) -> Callable[[Change], Upcast]:  # noqa: A002  as events say it
    """Decorate a function from an event's JSON object in `version` to the same event in version `to`.

    Decimal numbers are given as `Decimal`. `json_codec(…, upcasts=[…])` takes what comes of it.

    Raises:
        TypeError: `version` is below 1, or `to` is not above it.
    """
    if not 1 <= version < to:
        raise TypeError(f"{type}: an upcast leads from a version of at least 1 to a later one")
    return lambda change: Upcast(type, version, to, change)


@dataclass(frozen=True, slots=True)
class Versions:
    """All versions of one type.

    Attributes:
        steps: by the version that they start from.
    """

    type: str
    steps: Mapping[int, Upcast]

    @property
    def current(self) -> int:
        """The version that is written."""
        return max((step.to for step in self.steps.values()), default=1)

    def mark(self, value: Any) -> Any:
        """The object to store: with its version `$v`, unless that is the first."""
        return {VERSION: self.current, **value} if self.steps else value

    def unmark(self, value: Any) -> Any:
        """An object as its version of today has it; raises `ValueError` for a version that is not known."""
        if not isinstance(value, dict):
            return value
        version = value.pop(VERSION, 1)
        if type(version) is not int or (version != self.current and version not in self.steps):
            raise ValueError(f"version {version!r} is none of 1 to {self.current}, which this program knows")
        while version != self.current:
            step = self.steps[version]
            value, version = _changed(step, value), step.to
        return value


def _changed(step: Upcast, value: dict[str, Any]) -> dict[str, Any]:
    try:
        return step(value)
    except (LookupError, TypeError, AttributeError) as error:
        raise ValueError(f"its upcast from version {step.version} failed: {error!r}") from error


def versions_of(upcasts: Iterable[Upcast], types: Iterable[str]) -> dict[str, Versions]:
    """The versions of each type; raises `TypeError` for gaps, two steps from one version, and types not among these."""
    steps: dict[str, dict[int, Upcast]] = {each: {} for each in types}
    for each in upcasts:
        if each.type not in steps:
            raise TypeError(f"an upcast is of type {each.type}, which is not registered with the codec")
        if steps[each.type].setdefault(each.version, each) is not each:
            raise TypeError(f"{each.type}: two upcasts start from version {each.version}")
    found = {name: Versions(name, known) for name, known in steps.items()}
    for versions in found.values():
        gap = next((each for each in range(1, versions.current) if each not in versions.steps), None)
        if gap is not None:
            raise TypeError(
                f"{versions.type}: no upcast starts from version {gap}; {versions.current} is current"
            )
    return found
