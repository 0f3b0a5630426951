"""All that an error shows to whoever logs it: also what `from None` hides, since error trackers follow that, too."""

from __future__ import annotations

import re
import traceback
from collections.abc import Iterator

_CODE = re.compile(r"^    (?!  ).*$", re.MULTILINE)
"""Lines of code in a trace: they are the program's own text, and no values."""


def text_of(error: BaseException) -> str:
    """Messages, fields, notes and traces of an error and of every error behind it, without lines of code."""
    shown: list[str] = []
    for each in _behind(error):
        shown += [str(each), repr(each), repr(each.args), repr(vars(each))]
        shown.append(_CODE.sub("", "".join(traceback.format_exception(each))))
    return "\n".join(shown)


def _behind(error: BaseException) -> Iterator[BaseException]:
    """The error, its causes and its contexts, whether suppressed or not, and the members of groups."""
    waiting, met = [error], set[int]()
    while waiting:
        each = waiting.pop()
        if id(each) in met:
            continue
        met.add(id(each))
        yield each
        waiting += [other for other in (each.__cause__, each.__context__) if other is not None]
        waiting += getattr(each, "exceptions", ())
