"""Where tagged events are."""

from __future__ import annotations

from dataclasses import dataclass

from epochal.layout.dcb.items import Keys
from epochal.plan.ops import Query
from epochal.plan.values import Key, text
from epochal.settings import Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class TagSite:
    """Two tables, and how keys are made."""

    events: str
    tags: str
    keys: Keys
    type_heads: bool = False

    def entries(
        self,
        tag: str,
        lowest: str = "0",
        highest: str = "~",
        *,
        forward: bool = True,
        limit: int | None = None,
        after: Key | None = None,
        consistent: bool = True,
    ) -> Query:
        """A page of a tag's entries between two sort keys. They begin with 30 digits; a head's `#` is below them."""
        return Query(
            table=self.tags,
            partition=("pk", text(self.keys.tag(tag))),
            sort=("sk", text(lowest), text(highest)),
            forward=forward,
            limit=limit,
            after=after,
            consistent=consistent,
        )


def tag_site_of(settings: Settings) -> TagSite:
    """The tables of a deployment."""
    keys = Keys(service=settings.service, shards=settings.write_shards)
    return TagSite(
        events=settings.table("events"),
        tags=settings.table("tags"),
        keys=keys,
        type_heads=settings.type_heads,
    )
