"""The handler of a function that publishes events, where the code beside it says what is shown of an event."""

from __future__ import annotations

import os
from functools import cache

from epochal.contrib.publish.publication import deployed_publisher
from epochal.hosting.function import Handler, loaded


def __getattr__(name: str) -> Handler:
    """Lambda asks for the handler, once; whoever else imports this module asks for nothing."""
    if name != "handler":
        raise AttributeError(name)
    return _handler()


@cache
def _handler() -> Handler:
    return loaded(lambda: deployed_publisher(os.environ))
