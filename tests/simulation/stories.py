"""The story of a history: who asked for what, in the order of turns, and what came back.

Told only within `telling`: thousands of histories a minute leave no time for it, and one that fails is played again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar

from epochal.plan.failures import RequestFailure
from epochal.plan.ops import BatchGet, Execute, Op, Put, Query, Refusal, Reply, Scan, Transact, TransactGet

_LINES: ContextVar[list[str] | None] = ContextVar("lines", default=None)


@contextmanager
def telling() -> Iterator[list[str]]:
    """Within the block, every process that begins has its requests written down in the list."""
    lines: list[str] = []
    token = _LINES.set(lines)
    try:
        yield lines
    finally:
        _LINES.reset(token)


def told(name: str, execute: Execute) -> tuple[Execute, Callable[[str], None]]:
    """Wrap the executor of process `name` to record its requests; return also a function to record other incidents."""
    lines = _LINES.get()
    if lines is None:
        return execute, lambda _what: None

    def tell(what: str) -> None:
        lines.append(f"{name}: {what}")

    def perform(op: Op) -> Reply:
        try:
            reply = execute(op)
        except RequestFailure as failure:
            tell(f"{shown(op)}: {failure.cause}")
            raise
        tell(shown(op) + (": refused" if isinstance(reply, Refusal) else ""))
        return reply

    return perform, tell


def shown(op: Op) -> str:
    """Return a request in a few words."""
    match op:
        case Transact(writes=writes):
            return f"Transact [{', '.join(map(shown, writes))}]"
        case BatchGet(keys=keys):
            return f"BatchGet {', '.join(map(_key, keys))}"
        case TransactGet(keys=keys):
            return f"TransactGet {', '.join(_key(key) for _, key in keys)}"
        case Query(partition=(_, value)):
            return f"Query {value['S']}"
        case Scan():
            return f"Scan {op.table}"
        case Put(item=item):
            return f"Put {_key(item)}"
        case _:
            return f"{type(op).__name__} {_key(op.key)}"


def _key(item: Mapping[str, Mapping[str, object]]) -> str:
    """Return the key of an item, whatever its table calls it; `Tip` is its reserved index."""
    values = [str(*item[name].values()) for name in ("p", "i", "pk", "sk", "pkey", "skey") if name in item]
    return "/".join(value.replace("2147483647", "Tip") for value in values)
