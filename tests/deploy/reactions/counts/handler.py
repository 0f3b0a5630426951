"""A reaction that counts the events of each type, in a read model."""

from __future__ import annotations

import asyncio
import os

from epochal import Delivery, lambda_handler, reaction
from epochal.dynamo.stores import open_read_models
from epochal.feed.events import FeedEvent
from epochal.read_models.documents import Documents
from epochal.settings import variable

model = open_read_models(os.environ[variable("read_models_table")]).open("counts", 1)


def count(documents: Documents, event: FeedEvent) -> None:
    """One more of the event's type."""
    documents.put(event.type, documents.get(event.type, 0) + 1)


@reaction(name="counts", categories=["Count"])
async def counts(delivery: Delivery) -> None:
    """Fold a delivery, which the function awaits."""
    await asyncio.to_thread(model.apply, delivery, count)


handler = lambda_handler(counts)
