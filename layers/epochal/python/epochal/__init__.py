"""Epochal: a serverless event store on DynamoDB.

What most programs need can be imported from here; everything else from its room. Names are resolved when they are first
used, so that a function that imports one room does not pay for the others.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from epochal.codec.upcasts import upcast as upcast
    from epochal.dynamo.stores import open_aggregates as open_aggregates
    from epochal.dynamo.stores import open_dcb_events as open_dcb_events
    from epochal.dynamo.stores import open_feed as open_feed
    from epochal.dynamo.stores import open_projection_states as open_projection_states
    from epochal.dynamo.stores import open_read_models as open_read_models
    from epochal.dynamo.stores import open_streams as open_streams
    from epochal.dynamo.stores import open_tagged_events as open_tagged_events
    from epochal.dynamo.stores import open_tips as open_tips
    from epochal.errors import ConflictError as ConflictError
    from epochal.errors import EpochalError as EpochalError
    from epochal.errors import OutcomeUndetermined as OutcomeUndetermined
    from epochal.errors import StreamDeleted as StreamDeleted
    from epochal.feed.results import FeedEvent as FeedEvent
    from epochal.hosting.function import lambda_handler as lambda_handler
    from epochal.model.aggregates import AggregateEvent as AggregateEvent
    from epochal.model.aggregates import aggregate_id as aggregate_id
    from epochal.model.dcb import Query as Query
    from epochal.model.dcb import QueryItem as QueryItem
    from epochal.model.dcb import TaggedEvent as TaggedEvent
    from epochal.model.events import Event as Event
    from epochal.model.events import Recorded as Recorded
    from epochal.model.events import Unfold as Unfold
    from epochal.model.outcomes import Appended as Appended
    from epochal.model.outcomes import Conflict as Conflict
    from epochal.model.outcomes import Undetermined as Undetermined
    from epochal.model.several import StreamAppend as StreamAppend
    from epochal.model.versions import ANY as ANY
    from epochal.model.versions import NO_STREAM as NO_STREAM
    from epochal.model.versions import STREAM_EXISTS as STREAM_EXISTS
    from epochal.model.versions import AtVersion as AtVersion
    from epochal.reactions.reaction import Delivery as Delivery
    from epochal.reactions.reaction import reaction as reaction
    from epochal.store.aggregate_deciders import AggregateDeciders as AggregateDeciders
    from epochal.store.codecs import json_codec as json_codec
    from epochal.store.context import metadata as metadata
    from epochal.store.deciders import Decider as Decider
    from epochal.store.deciders import Deciders as Deciders
    from epochal.store.decisions import Decisions as Decisions
    from epochal.store.decisions import projection as projection

_ROOMS = {
    "ANY": "model.versions",
    "AggregateDeciders": "store.aggregate_deciders",
    "AggregateEvent": "model.aggregates",
    "Appended": "model.outcomes",
    "AtVersion": "model.versions",
    "Conflict": "model.outcomes",
    "ConflictError": "errors",
    "Decider": "store.deciders",
    "Deciders": "store.deciders",
    "Decisions": "store.decisions",
    "Delivery": "reactions.reaction",
    "EpochalError": "errors",
    "Event": "model.events",
    "FeedEvent": "feed.results",
    "NO_STREAM": "model.versions",
    "OutcomeUndetermined": "errors",
    "Query": "model.dcb",
    "QueryItem": "model.dcb",
    "Recorded": "model.events",
    "STREAM_EXISTS": "model.versions",
    "StreamAppend": "model.several",
    "StreamDeleted": "errors",
    "TaggedEvent": "model.dcb",
    "Undetermined": "model.outcomes",
    "Unfold": "model.events",
    "aggregate_id": "model.aggregates",
    "json_codec": "store.codecs",
    "lambda_handler": "hosting.function",
    "metadata": "store.context",
    "open_aggregates": "dynamo.stores",
    "open_feed": "dynamo.stores",
    "open_projection_states": "dynamo.stores",
    "open_read_models": "dynamo.stores",
    "open_streams": "dynamo.stores",
    "open_dcb_events": "dynamo.stores",
    "open_tagged_events": "dynamo.stores",
    "open_tips": "dynamo.stores",
    "projection": "store.decisions",
    "reaction": "reactions.reaction",
    "upcast": "codec.upcasts",
}

__all__ = [*_ROOMS]  # noqa: PLE0604  every element is a string: the keys of the table above


def __getattr__(name: str) -> Any:
    if name not in _ROOMS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_ROOMS[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_ROOMS])
