"""Environments of functions: where things are, and how keys are made there.

A function gets the pieces that it has business with.
"""

from __future__ import annotations

from epochal.settings import (
    AGGREGATE_TYPES,
    ARCHIVE_TABLE,
    BUCKET,
    CONSISTENT_READS,
    DCB_PARTITIONS,
    EQUINOX,
    EVENTS_TABLE,
    FEED_WAIT_SECONDS,
    INDEX_TABLE,
    JOURNAL_KEYS,
    JOURNAL_PARTITIONS,
    JOURNAL_SERIALIZER,
    JOURNAL_SHARDS,
    JOURNAL_TABLE,
    MAX_UPLOAD_BYTES,
    PARTITIONS,
    PROJECTION_STATES_TABLE,
    PROJECTIONS,
    READ_MODELS_TABLE,
    RETRIES,
    SERVICE,
    SNAPSHOT_COPIES,
    SNAPSHOT_TABLE,
    SNAPSHOT_TTL_DAYS,
    STATE_INLINE_BYTES,
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
        JOURNAL_KEYS: stage.journal_keys,
        JOURNAL_SERIALIZER: stage.journal_serializer,
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


def archive(stores: Stores) -> Environment:
    """Where streams are copied to before they are pruned, where the stage has it."""
    return {ARCHIVE_TABLE: stores.archive.table_name} if stores.archive else {}


def snapshots(stage: Stage) -> Environment:
    """How many copies of snapshots are kept, and for how long those beyond them."""
    return {
        SNAPSHOT_COPIES: str(stage.snapshot_copies),
        SNAPSHOT_TTL_DAYS: str(stage.snapshot_ttl_days),
    }


def large_states(stage: Stage) -> Environment:
    """Which states are written to the bucket."""
    return {STATE_INLINE_BYTES: str(stage.state_inline_bytes)}


def tagged_reads(stage: Stage) -> Environment:
    """How tagged events are read."""
    return {CONSISTENT_READS: flag(stage.consistent_reads)}


def retries(stage: Stage) -> Environment:
    """How often a request to a table is tried again, where the stage says so."""
    return {} if stage.retries is None else {RETRIES: str(stage.retries)}


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
