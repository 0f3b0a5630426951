"""Environments of functions: where things are, and how keys are made there.

A function gets the pieces that it has business with.
"""

from __future__ import annotations

from epochal.settings import (
    AGGREGATE_TYPES,
    BUCKET,
    DCB_PARTITIONS,
    EQUINOX,
    EVENTS_TABLE,
    FEED_WAIT_SECONDS,
    INDEX_TABLE,
    JOURNAL_PARTITIONS,
    JOURNAL_SHARDS,
    JOURNAL_TABLE,
    MAX_UPLOAD_BYTES,
    PARTITIONS,
    PROJECTION_STATES_TABLE,
    PROJECTIONS,
    READ_MODELS_TABLE,
    SERVICE,
    SNAPSHOT_TABLE,
    STATES_PREFIX,
    TAGS_TABLE,
    TIPS_TABLE,
    TYPE_HEADS,
    WRITE_SHARDS,
)
from stacks.parts.stores import Stores
from stacks.stages import Stage
from stacks.store import flag

Environment = dict[str, str]


def events(stage: Stage, stores: Stores) -> Environment:
    """Events of every layout, by their heads. The types of aggregates tell how ids are read."""
    return {
        TIPS_TABLE: stores.tips.table_name,
        JOURNAL_TABLE: stores.journal.table_name,
        SNAPSHOT_TABLE: stores.snapshot.table_name,
        EQUINOX: flag(stage.equinox),
        AGGREGATE_TYPES: ",".join(stage.aggregate_types),
        JOURNAL_SHARDS: str(stage.journal_shards),
        EVENTS_TABLE: stores.events.table_name,
        TAGS_TABLE: stores.tags.table_name,
        SERVICE: stage.service,
    }


def bucket(stores: Stores) -> Environment:
    """Large bodies and states."""
    return {BUCKET: stores.bucket.bucket_name}


def tagged_writes(stage: Stage) -> Environment:
    """How tagged events are written, and so where they are looked for."""
    return {TYPE_HEADS: flag(stage.type_heads), WRITE_SHARDS: str(stage.write_shards)}


def uploads(stage: Stage) -> Environment:
    """What callers may put into the bucket."""
    return {MAX_UPLOAD_BYTES: str(stage.max_upload_bytes)}


def waiting(stage: Stage) -> Environment:
    """How long readers of the feed may wait."""
    return {FEED_WAIT_SECONDS: str(stage.feed_wait_seconds)}


def projection_states(stores: Stores) -> Environment:
    """States of projections, large ones in the bucket."""
    return {
        PROJECTION_STATES_TABLE: stores.projection_states.table_name,
        STATES_PREFIX: PROJECTIONS,
    }


def read_models(stores: Stores) -> Environment:
    """Read models, where the stage has a table for them."""
    return {READ_MODELS_TABLE: stores.read_models.table_name} if stores.read_models else {}


def feed(stage: Stage, stores: Stores) -> Environment:
    """The feed, of all three sources."""
    return {
        INDEX_TABLE: stores.index.table_name,
        PARTITIONS: str(stage.partitions),
        JOURNAL_PARTITIONS: str(stage.journal_partitions),
        DCB_PARTITIONS: str(stage.dcb_partitions),
    }
