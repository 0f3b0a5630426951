"""Filters of event source mappings: which changes of a table are of heads, and so matter to the indexer or, in the
index, to the notifier.

Lambda compares them before it wakes the function; what they drop costs nothing and is never seen again. So they
look only at what makes an item a head that an append wrote, and drop nothing that the library would index: a head
that is malformed elsewhere gets through, and is set aside with its cause.

Numbers are text here, as they are in records. Only operators that Lambda documents for filters are used.
"""

from __future__ import annotations

import json
from typing import Any, Final

TIP_INDEX: Final = 2_147_483_647
"""The sort key of heads of streams (FORMATS §1)."""

EPOCHS: Final = "$AppendsEpoch-"
"""How names of epochs' streams begin (FORMATS §4)."""

HEAD_NUMBER: Final = 0
"""The number of an aggregate's head among its snapshots (FORMATS §2)."""

HEAD_SORT_KEY: Final = "#"
"""The sort key of heads of tags (FORMATS §3)."""


def heads_of_streams() -> str:
    """A Tip changed, and an append changed it.

    `a` is what the latest write appended: writes of unfolds, prunes and tombstones set it to 0. A Tip without a
    number there was written by nobody who keeps the format: it gets through (decision 119).
    """
    return _written(i={"N": [str(TIP_INDEX)]}, a={"N": [{"anything-but": ["0"]}, {"exists": False}]})


def heads_of_aggregates() -> str:
    """A snapshot with number 0 was written, by whichever library: every such write comes with events. Kept copies
    have the number of an event.
    """
    return _written(seq_nr={"N": [str(HEAD_NUMBER)]})


def heads_of_tags(service: str) -> str:
    """A head of a tag of this tenant moved. Entries lie behind it, other tenants' tags under other keys.

    Heads by type get through, where there are any: what begins alike cannot be told apart. The library passes
    them over, and no append moves them without a tag's head, so nothing is woken in vain.
    """
    partition = f"SERVICE#{service}#TAG#" if service else "TAG#"
    return _written(pk={"S": [{"prefix": partition}]}, sk={"S": [HEAD_SORT_KEY]})


def epochs() -> str:
    """The Tip of an epoch was written: a partition of the feed has moved.

    Marks, states of consumer groups and the series are in the same table, and move no partition.
    """
    return _written(p={"S": [{"prefix": EPOCHS}]}, i={"N": [str(TIP_INDEX)]})


def _written(**image: Any) -> str:
    pattern = {"eventName": ["INSERT", "MODIFY"], "dynamodb": {"NewImage": image}}
    return json.dumps(pattern)
