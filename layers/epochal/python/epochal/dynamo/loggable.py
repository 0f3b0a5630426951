"""The parts of an error that may be logged: its kind, where it was raised, and its words where they are ours.

The words of others may quote what they failed on: boto the parameters that it would not send, a parser the text, a
dictionary the key. Our own name the item that breaks the format, never its contents. For AWS's own errors the
operation and the code say enough.
"""

from __future__ import annotations

from traceback import format_tb

from botocore.exceptions import ClientError

from epochal.dynamo.protocol.answers import DynamoFault
from epochal.errors import EpochalError, InvalidRequest
from epochal.reactions.traces import chain


def told_of(error: BaseException) -> dict[str, str]:
    """Fields for a line of a log: `error`, with what it came from, and `trace`, which is code and no values."""
    traces = ("".join(format_tb(each.__traceback__)) for each in reversed(list(chain(error))))
    return {"error": kinds_of(error), "trace": "\n".join(filter(None, traces))}


def kinds_of(error: BaseException) -> str:
    """The kinds of an error and of what it came from, with the words that may be logged."""
    return ", from ".join(map(_name, chain(error)))


def _name(error: BaseException) -> str:
    kind = type(error).__name__
    match error:
        case InvalidRequest():
            return f"{kind}: {error.action}, {error.code}"
        case EpochalError():
            return f"{kind}: {error}"
        case DynamoFault():
            return f"{kind}: {error.operation}, {error.code}"
        case ClientError():
            return f"{kind}: {error.operation_name}, {error.response['Error'].get('Code', 'Unknown')}"
        case _:
            return kind
