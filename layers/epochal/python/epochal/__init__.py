"""Epochal: a serverless event store on DynamoDB.

What most programs need can be imported from here. The rest is offered by the package that is about it: `epochal.aio`,
`epochal.deciders`, `epochal.reactions`, `epochal.read_models`, `epochal.feed`, `epochal.store`, `epochal.testing`,
`epochal.errors` and `epochal.cdk`, and `epochal.contrib.<name>` for each optional package. Names are resolved when they
are first used, so that a function that imports one package does not pay for the others.
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

from epochal.deferred import deferred_names

if TYPE_CHECKING:
    from epochal.deciders.codecs import json_codec as json_codec
    from epochal.deciders.on_queries import Decided as Decided
    from epochal.deciders.on_queries import Decisions as Decisions
    from epochal.deciders.on_streams import Decider as Decider
    from epochal.deciders.on_streams import Deciders as Deciders
    from epochal.deciders.projections import Projection as Projection
    from epochal.deciders.projections import projection as projection
    from epochal.deciders.upcasting import upcast as upcast
    from epochal.dynamo.stores import Place as Place
    from epochal.dynamo.stores import open_feed as open_feed
    from epochal.dynamo.stores import open_read_models as open_read_models
    from epochal.dynamo.stores import open_streams as open_streams
    from epochal.dynamo.stores import open_tagged_events as open_tagged_events
    from epochal.errors import ConflictError as ConflictError
    from epochal.errors import Contended as Contended
    from epochal.errors import EpochalError as EpochalError
    from epochal.errors import InvalidInput as InvalidInput
    from epochal.errors import OutcomeUndetermined as OutcomeUndetermined
    from epochal.errors import StreamDeleted as StreamDeleted
    from epochal.errors import Unavailable as Unavailable
    from epochal.feed.events import FeedEvent as FeedEvent
    from epochal.hosting.function import lambda_handler as lambda_handler
    from epochal.model.events import Event as Event
    from epochal.model.events import Recorded as Recorded
    from epochal.model.events import Unfold as Unfold
    from epochal.model.expected_version import ANY as ANY
    from epochal.model.expected_version import NO_STREAM as NO_STREAM
    from epochal.model.expected_version import STREAM_EXISTS as STREAM_EXISTS
    from epochal.model.expected_version import AtVersion as AtVersion
    from epochal.model.expected_version import ExpectedVersion as ExpectedVersion
    from epochal.model.outcomes import Appended as Appended
    from epochal.model.outcomes import Conflict as Conflict
    from epochal.model.outcomes import Undetermined as Undetermined
    from epochal.model.stream_append import StreamAppend as StreamAppend
    from epochal.model.tags import Query as Query
    from epochal.model.tags import QueryItem as QueryItem
    from epochal.model.tokens import Token as Token
    from epochal.model.tokens import parse_token as parse_token
    from epochal.reactions.definition import Delivery as Delivery
    from epochal.reactions.definition import Selector as Selector
    from epochal.reactions.definition import reaction as reaction
    from epochal.scheduling import after as after
    from epochal.scheduling import cancel as cancel
    from epochal.scheduling import later as later
    from epochal.store.context import metadata as metadata
    from epochal.store.context import new_key as new_key
    from epochal.store.streams import Streams as Streams

_NAMES = {
    "deciders.upcasting": ("upcast",),
    "dynamo.stores": ("Place", "open_feed", "open_read_models", "open_streams", "open_tagged_events"),
    "errors": (
        "ConflictError",
        "Contended",
        "EpochalError",
        "InvalidInput",
        "OutcomeUndetermined",
        "StreamDeleted",
        "Unavailable",
    ),
    "feed.events": ("FeedEvent",),
    "hosting.function": ("lambda_handler",),
    "model.events": ("Event", "Recorded", "Unfold"),
    "model.expected_version": ("ANY", "AtVersion", "ExpectedVersion", "NO_STREAM", "STREAM_EXISTS"),
    "model.outcomes": ("Appended", "Conflict", "Undetermined"),
    "model.stream_append": ("StreamAppend",),
    "model.tags": ("Query", "QueryItem"),
    "model.tokens": ("Token", "parse_token"),
    "reactions.definition": ("Delivery", "Selector", "reaction"),
    "deciders.codecs": ("json_codec",),
    "store.context": ("metadata", "new_key"),
    "store.streams": ("Streams",),
    "deciders.on_streams": ("Decider", "Deciders"),
    "deciders.on_queries": ("Decided", "Decisions"),
    "deciders.projections": ("Projection", "projection"),
    "scheduling": ("after", "cancel", "later"),
}

__all__ = [*chain.from_iterable(_NAMES.values())]  # noqa: PLE0604  every element is a string: the keys of the table above


__getattr__ = deferred_names(__name__, _NAMES)


def __dir__() -> list[str]:
    return sorted(__all__)
