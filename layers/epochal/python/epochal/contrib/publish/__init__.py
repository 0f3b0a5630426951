"""Publishing events as CloudEvents to buses, queues, topics, streams and HTTPS addresses."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

from epochal.deferred import deferred_names

if TYPE_CHECKING:
    from epochal.contrib.publish.cloudevents import CloudEvent as CloudEvent
    from epochal.contrib.publish.cloudevents import cloud_event as cloud_event
    from epochal.contrib.publish.cloudevents import message as message

_NAMES = {
    "cloudevents": (
        "CloudEvent",
        "cloud_event",
        "message",
    ),
}

__all__ = [*chain.from_iterable(_NAMES.values())]  # noqa: PLE0604  every element is a string: the keys of the table above

__getattr__ = deferred_names(__name__, _NAMES)


def __dir__() -> list[str]:
    return sorted(__all__)
