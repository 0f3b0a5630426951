"""The parts of an error that may be logged: its kind, where it was raised, and its words where they are ours.

The words of others may quote what they failed on: boto the parameters that it would not send, a parser the text, a
dictionary the key. Our own name the item that breaks the format, never its contents. For AWS's own errors the
operation and the code say enough.
"""

from __future__ import annotations

from collections.abc import Iterator
from traceback import format_tb

from botocore.exceptions import ClientError

from epochal.dynamo.protocol.faults import DynamoFault
from epochal.errors import EpochalError, InvalidRequest


def told_of(error: BaseException) -> dict[str, str]:
    """Fields for a line of a log: `error`, with what it came from, and `trace`, which is code and no values."""
    chain = list(_chain(error))
    traces = ("".join(format_tb(each.__traceback__)) for each in reversed(chain))
    return {"error": ", from ".join(map(_name, chain)), "trace": "\n".join(filter(None, traces))}


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    """An error and its causes, each once: a chain may be a ring."""
    met: set[int] = set()
    while error is not None and id(error) not in met:
        met.add(id(error))
        yield error
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)


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
