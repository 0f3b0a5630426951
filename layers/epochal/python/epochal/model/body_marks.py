"""Members by which the library marks objects of JSON: a version that only a codec reads, and a sealed body."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

VERSION: Final = "$v"
"""Member of an object that a codec with upcasts has stored."""

SEALED: Final = "$sealed"
"""Member of a sealed body."""


def sealed_in(value: Any) -> Iterator[dict[str, Any]]:
    """Yield the objects in a JSON value, at any depth, that are sealed for a subject (FORMATS §7)."""
    level = [value]
    while level:
        yield from (node for node in level if isinstance(node, dict) and SEALED in node)
        nested = (
            node.values() if isinstance(node, dict) else node
            for node in level
            if isinstance(node, dict | list)
        )
        level = [inner for node in nested for inner in node]
