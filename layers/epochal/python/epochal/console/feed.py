"""The feed, a page of a partition at a time: the latest items, or those from a checkpoint on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from epochal.console.show import whole
from epochal.deployment import Deployment
from epochal.errors import InvalidInput
from epochal.feed.latest import latest
from epochal.index.checkpoints import parse_checkpoint
from epochal.layout.registry import layout_of

WINDOW: Final = 50


def show(deployment: Deployment, arguments: Mapping[str, str]) -> dict[str, Any]:
    """Items of `partition`, of streams in `category` where one is named, from the checkpoint `from` on."""
    feed = deployment.feed
    tails = {each.partition: each for each in feed.partitions()}
    if not tails:
        return {"tails": {}, "partition": None}
    partition = whole(arguments, "partition", min(tails), 2**31)
    if partition not in tails:
        raise InvalidInput("partition", f"must be one of {', '.join(map(str, tails))}")
    category, start = arguments.get("category", "").strip(), arguments.get("from", "")
    categories = [category] if category else None
    if start:
        page = feed.page(
            partition, start=parse_checkpoint(start), limit=WINDOW, categories=categories, data=True
        )
        items, following = page.items, page.next
    else:
        items = latest(feed, tails[partition], WINDOW, categories=categories, data=True)[::-1]
        following = tails[partition].tail
    return {
        "tails": tails,
        "layouts": {each: layout_of(each).name for each in tails},
        "partition": partition,
        "category": category,
        "start": start,
        "items": items,
        "next": following,
    }
