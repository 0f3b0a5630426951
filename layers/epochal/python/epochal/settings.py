"""Names that the deployment and the code must agree on, each written once.

Stacks read the constants to set a function's environment; functions read the same constants back through
`Settings.from_environment`. Nothing else in the library looks at the environment.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from epochal.errors import InvalidInput

LAMBDA_PYTHON = "3.13"
"""The one Python version the functions run on in AWS; the library itself supports 3.11 to 3.14."""

TIPS_TABLE = "EPOCHAL_TIPS_TABLE"
INDEX_TABLE = "EPOCHAL_INDEX_TABLE"
JOURNAL_TABLE = "EPOCHAL_JOURNAL_TABLE"
SNAPSHOT_TABLE = "EPOCHAL_SNAPSHOT_TABLE"
BUCKET = "EPOCHAL_BUCKET"
PARTITIONS = "EPOCHAL_PARTITIONS"
AGGREGATE_TYPES = "EPOCHAL_AGGREGATE_TYPES"
JOURNAL_SHARDS = "EPOCHAL_JOURNAL_SHARDS"
JOURNAL_KEYS = "EPOCHAL_JOURNAL_KEYS"
JOURNAL_SERIALIZER = "EPOCHAL_JOURNAL_SERIALIZER"
EVENTS_TABLE = "EPOCHAL_EVENTS_TABLE"
TAGS_TABLE = "EPOCHAL_TAGS_TABLE"
PROJECTION_STATES_TABLE = "EPOCHAL_PROJECTION_STATES_TABLE"
STATES_PREFIX = "EPOCHAL_STATES_PREFIX"
SERVICE = "EPOCHAL_SERVICE"
TYPE_HEADS = "EPOCHAL_TYPE_HEADS"
EQUINOX = "EPOCHAL_EQUINOX"
WRITE_SHARDS = "EPOCHAL_WRITE_SHARDS"
JOURNAL_PARTITIONS = "EPOCHAL_JOURNAL_PARTITIONS"
DCB_PARTITIONS = "EPOCHAL_DCB_PARTITIONS"
TOPIC = "EPOCHAL_TOPIC"
REACTION = "EPOCHAL_REACTION"
QUEUE = "EPOCHAL_QUEUE"
READ_MODELS_TABLE = "EPOCHAL_READ_MODELS_TABLE"
MAX_UPLOAD_BYTES = "EPOCHAL_MAX_UPLOAD_BYTES"
FEED_WAIT_SECONDS = "EPOCHAL_FEED_WAIT_SECONDS"
ARCHIVE_TABLE = "EPOCHAL_ARCHIVE_TABLE"
SNAPSHOT_COPIES = "EPOCHAL_SNAPSHOT_COPIES"
SNAPSHOT_TTL_DAYS = "EPOCHAL_SNAPSHOT_TTL_DAYS"
STATE_INLINE_BYTES = "EPOCHAL_STATE_INLINE_BYTES"
CONSISTENT_READS = "EPOCHAL_CONSISTENT_READS"
RETRIES = "EPOCHAL_RETRIES"

SERVICE_NAME = "POWERTOOLS_SERVICE_NAME"
"""What logs and metrics call a function. It names the stage too: stages of one account share a namespace."""

MAX_PARTITIONS = 10_000
"""Sources are numbered this far apart (FORMATS §4)."""

LIBRARY = "javascript"
"""The library of event-store-adapter whose keys and payloads aggregates have where nobody says otherwise."""

LIBRARIES = (LIBRARY, "rust", "go", "java", "php")
"""The libraries of event-store-adapter that aggregates may be shared with."""

SHARDS = 64
"""Shards of aggregates where nobody says otherwise: the default of event-store-adapter's libraries, which may
share the tables."""

MAX_SHARDS = 10_000
"""A shard is one value of a partition key: far more than this spread nothing any further."""

MAX_WRITE_SHARDS = 1_000
"""A read of all events asks every shard."""

UPLOAD_BYTES = 100 * 1024 * 1024
"""Of an upload, where nobody says otherwise. It lies in the bucket for a day or two, claimed or not."""

LARGEST_UPLOAD = 1024 * 1024 * 1024
"""A claim copies the upload within its request (REQUEST_SECONDS); S3 copies some 100 MB a second."""

WAIT_SECONDS = 5
"""Of a long poll of the feed, where nobody says otherwise. A caller who waits occupies an invocation: with the
deployment's limit of such requests a second, this is how many of an account's can be taken that way."""

MAX_WAIT_SECONDS = 20
"""Of a long poll: with the read that follows it stays well below API Gateway's 30."""

INLINE_BYTES = 300_000
"""A compressed state larger than this goes to the bucket: in base64 it is a third longer, and an item holds
409,600 bytes."""

MAX_COPIES = 1_000
"""Of an aggregate's snapshots that are kept. Each append with a snapshot looks for what is beyond them."""

MAX_TTL_DAYS = 3_650
MAX_RETRIES = 100
"""More do not fit the time of a request."""

PROJECTIONS = "projections"
"""Prefix of projection states in the bucket."""

KEY_WINDOW_SECONDS = 24 * 3600
"""How long an idempotency key is remembered."""

REQUEST_SECONDS = 25.0
"""Every HTTP request, its retries included, ends within this (DESIGN §5.16): API Gateway gives up at 30."""

RESPONSE_BYTES = 4 * 1024 * 1024
"""A page of events ends here: a Lambda answers with at most 6 MB, and base64 adds a third."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What a function is told by its deployment. A function lacks what it has no business with.

    Attributes:
        tips_table: table of the `tips` layout.
        index_table: table of epochs, marks and reader checkpoints.
        bucket: bucket of bodies too large for an item.
        partitions: partitions of the feed of the `tips` source, 1 to 10,000.
        journal_table: events of aggregates.
        snapshot_table: their heads, and kept copies of their snapshots.
        aggregate_types: the types that are declared, and served, in the environment separated by commas.
        journal_shards: shards of each type's partition keys, 1 to 10,000. They belong to the tables: with another
            number nothing that is stored is found.
        journal_keys: the library whose hash spreads aggregates over the shards; belongs to the tables likewise.
        journal_serializer: the library whose form events and snapshots of aggregates have.
        events_table: tagged events.
        tags_table: heads and entries of their tags.
        projection_states_table: states of projections.
        states_prefix: where large ones lie in the bucket.
        service: tenant of tagged events and projection states; empty for tables of one tenant.
        equinox: whether Equinox applications use the table of streams too.
        type_heads: whether tagged events may be appended on conditions by type alone.
        write_shards: shards of the index of all tagged events, 1 to 1,000; may be raised later, never lowered.
        journal_partitions: partitions of the feed of the `journal` source, 1 to 10,000.
        dcb_partitions: partitions of the feed of the `dcb` source, 1 to 10,000.
        topic: ARN of the topic that is told which partitions of the feed have moved.
        reaction: name of the reaction that a function runs.
        queue: URL of the queue that wakes it.
        read_models_table: table of read models, for a reaction that makes some.
        max_upload_bytes: of a body that is uploaded to the bucket, 1 to 1 GiB.
        feed_wait_seconds: for which a reader may wait at the tail of the feed, 0 to 20.
        archive_table: of the layout of `tips_table`, which streams are copied to before they are pruned.
        snapshot_copies: of an aggregate's snapshots that are kept beside its head; 0 keeps none.
        snapshot_ttl_days: after which those beyond them expire; 0 deletes them at once.
        state_inline_bytes: compressed states of projections that are larger go to the bucket.
        consistent_reads: whether single tagged events and tags are read strongly consistent; else they cost half.
        retries: of one request to a table; None for as many as the time allows.
    """

    tips_table: str = ""
    index_table: str = ""
    bucket: str = ""
    partitions: int = 1
    journal_table: str = ""
    snapshot_table: str = ""
    aggregate_types: tuple[str, ...] = ()
    journal_shards: int = SHARDS
    journal_keys: str = LIBRARY
    journal_serializer: str = LIBRARY
    events_table: str = ""
    tags_table: str = ""
    projection_states_table: str = ""
    states_prefix: str = PROJECTIONS
    service: str = ""
    equinox: bool = False
    type_heads: bool = False
    write_shards: int = 1
    journal_partitions: int = 1
    dcb_partitions: int = 1
    topic: str = ""
    reaction: str = ""
    queue: str = ""
    read_models_table: str = ""
    max_upload_bytes: int = UPLOAD_BYTES
    feed_wait_seconds: int = WAIT_SECONDS
    archive_table: str = ""
    snapshot_copies: int = 0
    snapshot_ttl_days: int = 0
    state_inline_bytes: int = INLINE_BYTES
    consistent_reads: bool = True
    retries: int | None = None

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> Settings:
        """Read the settings, or raise `InvalidInput` naming the variable that does not parse."""
        return cls(
            tips_table=environment.get(TIPS_TABLE, ""),
            index_table=environment.get(INDEX_TABLE, ""),
            bucket=environment.get(BUCKET, ""),
            partitions=_number(environment, PARTITIONS, 1, MAX_PARTITIONS),
            journal_table=environment.get(JOURNAL_TABLE, ""),
            snapshot_table=environment.get(SNAPSHOT_TABLE, ""),
            aggregate_types=names_in(AGGREGATE_TYPES, environment.get(AGGREGATE_TYPES, "")),
            journal_shards=_number(environment, JOURNAL_SHARDS, SHARDS, MAX_SHARDS),
            journal_keys=environment.get(JOURNAL_KEYS, LIBRARY),
            journal_serializer=environment.get(JOURNAL_SERIALIZER, LIBRARY),
            events_table=environment.get(EVENTS_TABLE, ""),
            tags_table=environment.get(TAGS_TABLE, ""),
            projection_states_table=environment.get(PROJECTION_STATES_TABLE, ""),
            states_prefix=environment.get(STATES_PREFIX, PROJECTIONS),
            service=environment.get(SERVICE, ""),
            equinox=_flag(environment, EQUINOX),
            type_heads=_flag(environment, TYPE_HEADS),
            write_shards=_number(environment, WRITE_SHARDS, 1, MAX_WRITE_SHARDS),
            journal_partitions=_number(environment, JOURNAL_PARTITIONS, 1, MAX_PARTITIONS),
            dcb_partitions=_number(environment, DCB_PARTITIONS, 1, MAX_PARTITIONS),
            topic=environment.get(TOPIC, ""),
            reaction=environment.get(REACTION, ""),
            queue=environment.get(QUEUE, ""),
            read_models_table=environment.get(READ_MODELS_TABLE, ""),
            max_upload_bytes=_number(environment, MAX_UPLOAD_BYTES, UPLOAD_BYTES, LARGEST_UPLOAD),
            feed_wait_seconds=_number(
                environment, FEED_WAIT_SECONDS, WAIT_SECONDS, MAX_WAIT_SECONDS, least=0
            ),
            archive_table=environment.get(ARCHIVE_TABLE, ""),
            snapshot_copies=_number(environment, SNAPSHOT_COPIES, 0, MAX_COPIES, least=0),
            snapshot_ttl_days=_number(environment, SNAPSHOT_TTL_DAYS, 0, MAX_TTL_DAYS, least=0),
            state_inline_bytes=_number(environment, STATE_INLINE_BYTES, INLINE_BYTES, INLINE_BYTES, least=0),
            consistent_reads=_flag(environment, CONSISTENT_READS, default=True),
            retries=_number(environment, RETRIES, 0, MAX_RETRIES, least=0)
            if RETRIES in environment
            else None,
        )


def service_name(environment: Mapping[str, str], otherwise: str) -> str:
    """What a function is called in its logs and metrics."""
    return environment.get(SERVICE_NAME, otherwise)


def _number(environment: Mapping[str, str], name: str, default: int, most: int, *, least: int = 1) -> int:
    text = environment.get(name, str(default))
    if not (text.isascii() and text.isdigit() and least <= int(text) <= most):
        raise InvalidInput(name, f"must be a whole number from {least} to {most:,}")
    return int(text)


def _flag(environment: Mapping[str, str], name: str, *, default: bool = False) -> bool:
    text = environment.get(name, "true" if default else "false")
    if text not in ("true", "false"):
        raise InvalidInput(name, "must be true or false")
    return text == "true"


def names_in(name: str, text: str) -> tuple[str, ...]:
    """Names separated by commas; raises `InvalidInput` of `name` for anything else."""
    names = tuple(text.split(",")) if text else ()
    if any(not each or each != each.strip() for each in names):
        raise InvalidInput(name, "must be names separated by commas, without spaces")
    return names
