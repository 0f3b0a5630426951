"""What a store may be given: settings by their names, for editors and type checkers.

docs/deploy.md explains each. Values obey the rules that those of `cdk.json` obey (`fields.py`), but where CDK knows
them only once they are deployed: the ARN of a key or topic of the same app.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypedDict

from aws_cdk import Token
from aws_cdk import aws_kms as kms
from aws_cdk import aws_sns as sns

from epochal.cdk.stages import STAGES, BadSetting, Stage, changed
from epochal.plugins import NATIVE

Preset = Literal["dev", "staging", "prod"]
"""Settings to begin with: `dev` forgets, `staging` behaves like `prod` at a smaller size, `prod` keeps."""


class StoreOptions(TypedDict, total=False):
    """Settings of a store; one that is left out is as its preset has it."""

    access_logs: bool
    aggregate_types: Sequence[str]
    alarm_topic: str | sns.ITopic
    archive: bool
    billing: Literal["on-demand", "provisioned"]
    boto3: Literal["runtime", "tested"]
    burst: int
    carrier: Literal["light", "boto3"]
    consistent_reads: bool
    dcb_partitions: int
    deletion_protection: bool
    equinox: bool
    calving: Literal["auto", "fixed", "cost"]
    calving_max_bytes: int
    calving_max_events: int
    existing_archive: str
    existing_bucket: str
    existing_events: str
    existing_index: str
    existing_journal: str
    existing_projection_states: str
    existing_read_models: str
    existing_snapshot: str
    existing_streams: str
    existing_streams_archive: str
    existing_tags: str
    existing_tips: str
    feed_wait_seconds: int
    feed_window_seconds: int
    feed_batch_size: int
    feed_kinesis_shards: int
    journal_keys: str
    journal_partitions: int
    journal_serializer: str
    journal_shards: int
    jwt_audience: Sequence[str]
    jwt_issuer: str
    jwt_scopes: Mapping[str, Sequence[str]]
    kms_key: str | kms.IKey
    layouts: Sequence[str] | None
    log_days: int
    log_kms_key: str | kms.IKey
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"]
    max_read_units: int
    max_upload_bytes: int
    max_write_units: int
    min_read_units: int
    min_write_units: int
    pages_partitions: int
    partitions: int
    read_models: bool
    recovery_days: int
    replica_kms_key: str
    replica_region: str
    requests_per_second: int
    reserved_concurrency: Mapping[str, int]
    retain: bool
    retries: int | None
    route_limits: Mapping[str, int]
    service: str
    snapshot_copies: int
    snapshot_ttl_days: int
    state_inline_bytes: int
    tagged_everything: bool
    tagged_types: Sequence[str]
    type_heads: bool
    write_shards: int


def stage_of(name: str, preset: Preset, options: Mapping[str, Any]) -> Stage:
    """The settings of a store whose tables, functions and queues are called after `name`; its layout is pages, where
    others are not asked for. All there are is None, as in `cdk.json`.

    Raises:
        BadSetting: one is no setting, or breaks a rule.
    """
    if preset not in STAGES:
        raise BadSetting("preset", f"must be one of {', '.join(STAGES)}, not {preset!r}")
    values = {key: _plain(each) for key, each in options.items()}
    later = {key: each for key, each in values.items() if isinstance(each, str) and Token.is_unresolved(each)}
    now = {"layouts": [NATIVE], **{key: each for key, each in values.items() if key not in later}}
    return changed(STAGES[preset], now, where="EventStore", **later, name=name, prefix="")


def _plain(value: Any) -> Any:
    """A value as JSON has it, or an ARN."""
    for attribute in ("key_arn", "topic_arn"):
        if hasattr(value, attribute):
            return getattr(value, attribute)
    if isinstance(value, Mapping):
        return {key: _plain(each) for key, each in value.items()}
    return [*value] if isinstance(value, Sequence) and not isinstance(value, str) else value
