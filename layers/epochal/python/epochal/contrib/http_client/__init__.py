"""The store over HTTP: streams, tagged events, the feed and deciders for programs without rights on its tables."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

from epochal.deferred import deferred_names

if TYPE_CHECKING:
    from epochal.contrib.http_client.credentials import bearer as bearer
    from epochal.contrib.http_client.credentials import sigv4 as sigv4
    from epochal.contrib.http_client.deciders import HttpDeciders as HttpDeciders
    from epochal.contrib.http_client.exchange import Auth as Auth
    from epochal.contrib.http_client.exchange import HttpRequest as HttpRequest
    from epochal.contrib.http_client.feed import FeedBatch as FeedBatch
    from epochal.contrib.http_client.feed import HttpFeed as HttpFeed
    from epochal.contrib.http_client.opening import open_http_streams as open_http_streams
    from epochal.contrib.http_client.streams import HttpStreams as HttpStreams
    from epochal.contrib.http_client.tagged import HttpTaggedEvents as HttpTaggedEvents

_NAMES = {
    "credentials": ("bearer", "sigv4"),
    "deciders": ("HttpDeciders",),
    "exchange": ("Auth", "HttpRequest"),
    "feed": ("FeedBatch", "HttpFeed"),
    "opening": ("open_http_streams",),
    "streams": ("HttpStreams",),
    "tagged": ("HttpTaggedEvents",),
}

__all__ = [*chain.from_iterable(_NAMES.values())]  # noqa: PLE0604  every element is a string: the keys of the table above

__getattr__ = deferred_names(__name__, _NAMES)


def __dir__() -> list[str]:
    return sorted(__all__)
