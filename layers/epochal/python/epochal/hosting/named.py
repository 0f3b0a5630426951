"""The handler of a function that is told which reaction it runs, as `module:name` of the code beside it; or what it is
to forward, where that code only says what is shown of an event (`hosting.publishing`).

So a module with reactions says nothing of functions: its reactions run here, in a process, and in tests.
"""

from __future__ import annotations

import os
from functools import cache
from importlib import import_module
from typing import Final

from epochal.hosting.function import Handler, lambda_handler

ENTRY: Final = "EPOCHAL_ENTRY"
"""The variable that says where the reaction is: `board:departures`."""

PROCESS: Final = "EPOCHAL_PROCESS"
"""The variable that says which process a function runs a half of: those may append."""

PUBLISH: Final = "EPOCHAL_PUBLISH"
"""The variable that tells a function what to forward."""


def __getattr__(name: str) -> Handler:
    """Lambda asks for the handler, once; whoever else imports this module asks for nothing."""
    if name != "handler":
        raise AttributeError(name)
    return _handler()


@cache
def _handler() -> Handler:
    if PUBLISH in os.environ:
        from epochal.hosting.publishing import deployed_publisher  # noqa: PLC0415  reactions do without recipients

        return deployed_publisher(os.environ)
    module, _, name = os.environ[ENTRY].partition(":")
    return lambda_handler(getattr(import_module(module), name))
