"""One conversation, as a tree of causes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from epochal.console.show import whole
from epochal.deployment import Deployment
from epochal.feed.causes import conversation, tree

SEARCHED: Final = 500
"""Items of each partition, unless the address asks for more."""

MOST: Final = 10_000


def show(deployment: Deployment, arguments: Mapping[str, str]) -> dict[str, Any]:
    """The conversation that `id` names: by its correlation id, or by one of its events."""
    wanted, count = arguments.get("id", "").strip(), whole(arguments, "items", SEARCHED, MOST)
    roots = tree(conversation(deployment.feed, wanted, count)) if wanted else []
    return {"id": wanted, "items": count, "roots": roots, "more": min(10 * count, MOST)}
