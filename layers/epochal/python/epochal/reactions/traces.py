"""The trace of an error: files, lines and code, and never a value.

The words of an error may quote what it failed on, so they are kept apart from it. What is kept is bounded: of a long
trace the end, which is where the error was raised.
"""

from __future__ import annotations

from itertools import dropwhile
from pathlib import Path
from traceback import FrameSummary, extract_tb, format_list
from typing import Final

from epochal.errors import chain

MAX_TRACE: Final = 2_000
"""Characters of a trace that are kept: some fifteen calls."""

_DELIVERING: Final = tuple(str(Path(__file__).with_name(name)) for name in ("handling.py", "event_loop.py"))
_REACTION: Final = str(Path(__file__).with_name("reaction.py"))


def trace_of(error: BaseException) -> str:
    """The calls of what an error came from, and then its own: from the handler on, as Python prints them."""
    each_of = (f"{''.join(format_list(_calls(each)))}{type(each).__name__}" for each in chain(error))
    text = "\n\n".join(reversed(list(each_of)))
    return text if len(text) <= MAX_TRACE else f"…{text[1 - MAX_TRACE :]}"


def place_of(error: BaseException) -> str:
    """Where in the handler's folder an error was raised, or came through: `board.py:12 in departures`."""
    calls = _calls(error)
    if not calls:
        return ""
    folder = Path(calls[0].filename).parent
    last = next(each for each in reversed(calls) if _is_in(each, folder) or each is calls[0])
    return f"{Path(last.filename).name}:{last.lineno} in {last.name}"


def _calls(error: BaseException) -> list[FrameSummary]:
    """Those from the handler on, without what delivered to it."""
    calls = list(extract_tb(error.__traceback__))
    at = max((number + 1 for number, each in enumerate(calls) if each.filename in _DELIVERING), default=0)
    return list(dropwhile(lambda each: at and each.filename == _REACTION, calls[at:]))


def _is_in(call: FrameSummary, folder: Path) -> bool:
    return Path(call.filename).is_relative_to(folder) and "site-packages" not in call.filename
