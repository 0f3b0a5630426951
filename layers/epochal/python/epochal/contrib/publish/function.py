"""The handler of a function that publishes events, where the code beside it says what is shown of an event."""

from __future__ import annotations

import os
from functools import cache

from epochal.contrib.publish.publication import deployed_publisher
from epochal.hosting.function import Handler, loaded


def __getattr__(name: str) -> Handler:
    """Return the function's handler, which is made when Lambda first asks for it, not at the import."""
    if name != "handler":
        raise AttributeError(name)
    return _handler()


@cache
def _handler() -> Handler:
    """Make the handler of the function from its environment, once."""
    return loaded(lambda: deployed_publisher(os.environ))
