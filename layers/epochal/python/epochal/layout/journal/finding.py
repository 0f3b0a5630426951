"""From an `aid` to the aggregate: `<type>-<value>`, where types may hold `-` themselves.

A registered type that begins the id settles it. Otherwise the heads say: of all ways to cut the id, one has a head,
because partition keys begin with the type.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from epochal.layout.journal.keys import HEAD
from epochal.layout.journal.writes import Site
from epochal.model.aggregates import AggregateId
from epochal.plan.limits import BATCH_KEYS
from epochal.plan.ops import BatchGet, Steps


def identify(site: Site, aid: str, types: Collection[str] = ()) -> Steps[AggregateId | None]:
    """The aggregate with this id; None where there is none."""
    cuts = list(_cuts(aid))
    for cut in cuts:
        if cut.type in types:
            return cut
    for start in range(0, len(cuts), BATCH_KEYS):
        batch = cuts[start : start + BATCH_KEYS]
        reply = yield BatchGet(table=site.snapshot, keys=tuple(site.keys.key(cut, HEAD) for cut in batch))
        found = {item["pkey"]["S"] for item in reply.items}
        for cut in batch:
            if site.keys.key(cut, HEAD)["pkey"]["S"] in found:
                return cut
    return None


def _cuts(aid: str) -> Iterator[AggregateId]:
    for at, character in enumerate(aid):
        if character == "-" and 0 < at < len(aid) - 1:
            yield AggregateId(type=aid[:at], value=aid[at + 1 :])
