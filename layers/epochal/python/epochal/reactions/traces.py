"""Traces of errors: files, lines and code, but no values.

A trace is stored apart from the error's message, which may quote the value that caused the error. Its length is
limited: of a long trace the end is kept, where the error was raised.
"""

from __future__ import annotations

from itertools import dropwhile
from pathlib import Path
from traceback import FrameSummary, extract_tb, format_list
from typing import Final

from epochal.errors import chain

MAX_TRACE: Final = 2_000
"""Characters of a trace that are kept: some fifteen calls."""

_DELIVERING: Final = tuple(
    str(Path(__file__).with_name(name)) for name in ("handling.py", "calls.py", "event_loop.py")
)
_REACTION: Final = str(Path(__file__).with_name("definition.py"))


def trace_of(error: BaseException) -> str:
    """Return the traces of an error and its causes, from the handler on, without values."""
    each_of = (f"{''.join(format_list(_calls(link)))}{type(link).__name__}" for link in chain(error))
    text = "\n\n".join(reversed(list(each_of)))
    return text if len(text) <= MAX_TRACE else f"…{text[1 - MAX_TRACE :]}"


def code_location(error: BaseException) -> str:
    """Return where in the handler's folder an error was raised, `board.py:12 in departures`, or nothing."""
    calls = _calls(error)
    if not calls:
        return ""
    folder = Path(calls[0].filename).parent
    last = next(call for call in reversed(calls) if _is_in(call, folder) or call is calls[0])
    return f"{Path(last.filename).name}:{last.lineno} in {last.name}"


def _calls(error: BaseException) -> list[FrameSummary]:
    """List the calls of a trace from the handler on, without those that delivered to it."""
    calls = list(extract_tb(error.__traceback__))
    start = max((number + 1 for number, call in enumerate(calls) if call.filename in _DELIVERING), default=0)
    return list(dropwhile(lambda call: start and call.filename == _REACTION, calls[start:]))


def _is_in(call: FrameSummary, folder: Path) -> bool:
    """Return whether a call is of code in a folder, but not of an installed package."""
    return Path(call.filename).is_relative_to(folder) and "site-packages" not in call.filename
