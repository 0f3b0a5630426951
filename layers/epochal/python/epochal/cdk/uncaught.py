"""What an app prints if nobody catches the error of a construct: the error, and the lines of the app that led to it.

CDK's command line shows what the app prints. A stack trace would bury the one line that says what to change under the
frames of jsii and of the library.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from traceback import FrameSummary, extract_tb
from types import TracebackType
from typing import Final

from epochal.cdk.parts.layers import InstallerFailed
from epochal.cdk.rules import BadSetting

_LIBRARY: Final = str(Path(__file__).resolve().parents[1])
_OTHERS: Final = ("jsii", "aws_cdk", "constructs")
"""Packages whose frames say nothing about the app."""


def print_refusals() -> None:
    """Make Python print an uncaught error of a construct without a stack trace.

    A hook that something else has installed stays.
    """
    if sys.excepthook is sys.__excepthook__:
        sys.excepthook = _print_error


def _print_error(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Print an uncaught error: that of a construct in short, and any other with its stack trace."""
    if not isinstance(error, BadSetting | InstallerFailed):
        sys.__excepthook__(kind, error, trace)
        return
    lines = [f"epochal: {error}", *(_described(frame) for frame in extract_tb(trace) if _is_of_app(frame))]
    sys.stderr.write("".join(f"{line}\n" for line in lines))


def _is_of_app(frame: FrameSummary) -> bool:
    """Whether a frame is in the app's own code."""
    path = Path(frame.filename)
    installed = "site-packages" in path.parts and not set(_OTHERS).isdisjoint(path.parts)
    return path.is_file() and not installed and not frame.filename.startswith(_LIBRARY + os.sep)


def _described(frame: FrameSummary) -> str:
    """Return the file, the line, the function and the code of a frame."""
    path = os.path.relpath(frame.filename)
    return f"  at {path if not path.startswith('..') else frame.filename}:{frame.lineno}, in {frame.name}: {frame.line}"
