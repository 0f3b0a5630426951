"""The parts of an error that may be logged: its kind, where it was raised, and its words where they are ours.

The words of others may quote what they failed on: boto the parameters that it would not send, a parser the text, a
dictionary the key. Our own name the item that breaks the format, never its contents. For AWS's own errors the
operation and the code say enough.
"""

from __future__ import annotations

import sys
from pathlib import Path
from traceback import extract_tb, format_tb
from types import ModuleType
from typing import TYPE_CHECKING, TypeGuard

from epochal.dynamo.protocol.faults import DynamoFault
from epochal.errors import (
    EpochalError,
    InvalidRequest,
    chain,
)

if TYPE_CHECKING:
    from botocore.exceptions import ClientError


def log_fields(error: BaseException) -> dict[str, str]:
    """Return the log fields of an error: `error`, its chain of kinds, and `trace`, code without values."""
    traces = ("".join(format_tb(link.__traceback__)) for link in reversed(list(chain(error))))
    return {"error": describe_chain(error), "trace": "\n".join(filter(None, traces))}


def describe_chain(error: BaseException) -> str:
    """Name the kinds of an error and of its causes, with only those messages that may be logged."""
    return ", from ".join(map(_describe_error, chain(error)))


def describe_failed_load(error: BaseException) -> str:
    """Describe why code cannot be loaded: by the message if it names code only, else by kind and line."""
    of_module = isinstance(error, AttributeError) and isinstance(error.obj, ModuleType)
    if of_module or isinstance(error, ImportError | SyntaxError):
        return f"{type(error).__name__}: {error}"
    calls = extract_tb(error.__traceback__)
    line = f" at {Path(calls[-1].filename).name}:{calls[-1].lineno}" if calls else ""
    return f"{describe_chain(error)}{line}"


def _describe_error(error: BaseException) -> str:
    """Name one error for the log: its kind, plus its message or code if that cannot quote user data."""
    kind = type(error).__name__
    match error:
        case InvalidRequest():
            return f"{kind}: {error.action}, {error.code}"
        case EpochalError():
            return f"{kind}: {error}"
        case DynamoFault():
            return f"{kind}: {error.operation}, {error.code}"
        case _ if _is_client_error(error):
            return f"{kind}: {error.operation_name}, {error.response['Error'].get('Code', 'Unknown')}"
        case _:
            return kind


def _is_client_error(error: BaseException) -> TypeGuard[ClientError]:
    """Return whether an error is an AWS service's answer to a client of botocore, which is loaded then."""
    exceptions = sys.modules.get("botocore.exceptions")
    return exceptions is not None and isinstance(error, exceptions.ClientError)
