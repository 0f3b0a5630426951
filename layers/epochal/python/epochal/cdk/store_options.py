"""Settings of a store by name, for editors and type checkers.

The docstring of `EventStore` describes each. Values obey the same rules as in `cdk.json`, except values that CDK knows
only at deployment: the ARN of a key or topic of the same app.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, TypedDict

from aws_cdk import Token
from aws_cdk import aws_kms as kms
from aws_cdk import aws_sns as sns

from epochal.cdk.rules import BadSetting
from epochal.cdk.stage_changes import changed
from epochal.cdk.stages import STAGES, Stage
from epochal.plugins import NATIVE

Preset = Literal["dev", "staging", "prod"]
"""Stage whose settings are the defaults: `dev` deletes data with the stack, `staging` is a smaller `prod`, and `prod`
keeps data."""


class StoreOptions(TypedDict, total=False):
    """Settings of a store; a setting that is left out has the value of the preset.

    Each has the name that it has in `cdk.json`.
    """

    access_log_class: Literal["infrequent", "standard"]
    access_logs: bool
    aggregate_types: Sequence[str]
    alarm_topic: str | sns.ITopic
    archive: bool
    billing: Literal["on-demand", "provisioned"]
    boto3: Literal["runtime", "tested"]
    burst: int
    calving: Literal["auto", "fixed", "cost"]
    calving_max_bytes: int
    calving_max_events: int
    carrier: Literal["light", "boto3"]
    consistent_reads: bool
    dcb_partitions: int
    deletion_protection: bool
    environment_kms_key: str | kms.IKey
    equinox: bool
    event_schemas: str
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
    existing_timers: str
    existing_tips: str
    feed_batch_size: int
    feed_kinesis_shards: int
    feed_wait_seconds: int
    feed_window_seconds: int
    infrequent_access: Sequence[str] | None
    journal_keys: Literal["javascript", "rust", "go", "java", "php"]
    journal_partitions: int
    journal_serializer: Literal["javascript", "rust", "go", "java", "php", "plain"]
    journal_shards: int
    jwt_audience: Sequence[str]
    jwt_issuer: str
    jwt_scopes: Mapping[str, Sequence[str]]
    keep: Sequence[str]
    kms_key: str | kms.IKey
    latency_ms: int
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
    queue_kms_key: str | kms.IKey
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
    timers: bool
    tips_partitions: int
    type_heads: bool
    unchecked_events: Literal["take", "refuse"]
    warm_read_units: int
    warm_write_units: int
    write_shards: int


def stage_of(name: str, preset: Preset, options: Mapping[str, Any]) -> Stage:
    """Return the settings of a store from a preset and options.

    The layout is `pages` where no layouts are given; None deploys all layouts, as in `cdk.json`.

    Args:
        name: first part of the names of tables, functions and queues.
        options: settings, as `StoreOptions` has them.

    Raises:
        BadSetting: an option is no setting, or breaks a rule.
    """
    if preset not in STAGES:
        raise BadSetting("preset", f"must be one of {', '.join(STAGES)}, not {preset!r}")
    values = _named_options(options)
    later = {
        key: value for key, value in values.items() if isinstance(value, str) and Token.is_unresolved(value)
    }
    now = {"layouts": [NATIVE], **{key: value for key, value in values.items() if key not in later}}
    return changed(STAGES[preset], now, where="EventStore", **later, name=name, prefix="")


_SAID_ELSEWHERE: Final[Mapping[str, str]] = {
    "name": "give `name` to EventStore itself",
    "prefix": "give EventStore a `name`, which begins the names of all that it makes",
    "account": "give the stack an `env` with the account",
    "region": "give the stack an `env` with the region",
    "tags": "use `Tags.of(store).add(…)` of aws_cdk",
    "reactions": "add a `Reaction` for each",
    "domain_name": "add a domain to `store.gateway`",
    "domain_certificate": "add a domain to `store.gateway`",
    "monthly_budget": "add a budget of `aws_cdk.aws_budgets`",
}
"""Settings of `cdk.json` that an app sets by other means, which the construct would not see, and those means."""


def _named_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Convert options of a store to settings of `cdk.json`; a key or topic becomes its ARN.

    Raises:
        BadSetting: an option is set by other means.
    """
    for key, instead in _SAID_ELSEWHERE.items():
        if key in options:
            raise BadSetting(f"EventStore.{key}", f"is a setting of cdk.json alone: {instead}")
    return {key: _plain(option) for key, option in options.items()}


def _plain(value: Any) -> Any:
    """Convert an option to a value as JSON has it; a key or topic becomes its ARN."""
    for attribute in ("key_arn", "topic_arn"):
        if hasattr(value, attribute):
            return getattr(value, attribute)
    if isinstance(value, Mapping):
        return {key: _plain(element) for key, element in value.items()}
    return [*value] if isinstance(value, Sequence) and not isinstance(value, str) else value
