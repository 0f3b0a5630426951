"""Versions of events: functions that convert what an older program wrote into today's form.

An event's version is the member `$v` of its JSON object, and 1 without that member. So events that were stored before
their type had versions are of version 1, and a type that has never changed stores nothing more. A type's current
version is the highest that its upcasters lead to. Stored events are not changed: an event is upcast at every read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from epochal.deciders.mismatch import Mismatch
from epochal.lazy_dataclasses import dataclass
from epochal.model.body_marks import VERSION

Change = Callable[[dict[str, Any]], dict[str, Any]]
"""A function that converts an event's JSON object of one version into that of a later one."""


@dataclass(frozen=True, slots=True)
class Upcast:
    """One step that converts events of a type from one version to a later one.

    Calling it calls the function, as tests do.

    Attributes:
        type: type of the events.
        version: version of the events that the step converts, from 1.
        to: version that the events have after the step, above `version`.
        change: function that converts an event's JSON object.
    """

    type: str
    version: int
    to: int
    change: Change

    def __call__(self, event: dict[str, Any]) -> dict[str, Any]:
        """Convert an event's JSON object to the later version; the given object may be changed."""
        return self.change(event)


def upcast(type: str, version: int, /, *, to: int) -> Callable[[Change], Upcast]:  # noqa: A002  as events say it
    """Turn a function into an upcast of an event type from `version` to version `to` (decorator).

    The function takes an event's JSON object, in which decimal numbers are `Decimal`. `json_codec(…, upcasts=[…])`
    takes the result.

    Args:
        type: type of the events.
        version: version of the events that the function converts, from 1.
        to: version of the events that it returns, above `version`.

    Raises:
        TypeError: `version` is below 1, or `to` is not above it.
    """
    if not 1 <= version < to:
        raise TypeError(f"{type}: an upcast must lead from version 1 or later to a later version")
    return lambda change: Upcast(type, version, to, change)


@dataclass(frozen=True, slots=True)
class Versions:
    """All versions of one event type.

    Attributes:
        type: the event type.
        steps: upcasts by the version that they start from.
    """

    type: str
    steps: Mapping[int, Upcast]

    @property
    def current(self) -> int:
        """The version that is written."""
        return max((step.to for step in self.steps.values()), default=1)

    def mark(self, value: Any) -> Any:
        """Return the object to store, with its version in `$v` if above 1; raise `Mismatch` if it has a `$v`.

        Raises:
            Mismatch: it has a member of that name, which would be read as the version.
        """
        if isinstance(value, dict) and VERSION in value:
            raise Mismatch(f"must not have the member {VERSION}, which is reserved for the version")
        return {VERSION: self.current, **value} if self.steps else value

    def unmark(self, value: Any) -> Any:
        """Bring a stored object to the current version; raise `ValueError` if its version is unknown."""
        if not isinstance(value, dict):
            return value
        version = value.pop(VERSION, 1)
        if type(version) is not int or (version != self.current and version not in self.steps):
            raise ValueError(f"unknown version {version!r}: this program knows 1 to {self.current}")
        while version != self.current:
            step = self.steps[version]
            value, version = _apply(step, value), step.to
        return value


def _apply(step: Upcast, value: dict[str, Any]) -> dict[str, Any]:
    """Apply an upcast; raise `ValueError` if it fails on the object."""
    try:
        return step(value)
    except (LookupError, TypeError, AttributeError) as error:
        raise ValueError(f"its upcast from version {step.version} failed: {error!r}") from error


def versions_of(upcasts: Iterable[Upcast], types: Iterable[str]) -> dict[str, Versions]:
    """Return the versions of each type; raise `TypeError` for gaps, duplicate steps and unknown types."""
    steps: dict[str, dict[int, Upcast]] = {kind: {} for kind in types}
    for step in upcasts:
        if step.type not in steps:
            raise TypeError(f"the type {step.type} of an upcast is not registered with the codec")
        if steps[step.type].setdefault(step.version, step) is not step:
            raise TypeError(f"{step.type}: two upcasts start from version {step.version}")
    by_type = {kind: Versions(kind, own_steps) for kind, own_steps in steps.items()}
    for versions in by_type.values():
        gap = next((number for number in range(1, versions.current) if number not in versions.steps), None)
        if gap is not None:
            raise TypeError(
                f"{versions.type}: no upcast starts from version {gap}; {versions.current} is current"
            )
    return by_type
