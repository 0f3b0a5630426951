"""Settings of a store by name, for editors and type checkers.

docs/deploy.md explains each. Values obey the same rules as in `cdk.json`, except values that CDK knows only at
deployment: the ARN of a key or topic of the same app.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, TypedDict

from aws_cdk import Token
from aws_cdk import aws_kms as kms
from aws_cdk import aws_sns as sns

from epochal.cdk.rules import BadSetting, list_alternatives
from epochal.cdk.stage_changes import changed
from epochal.cdk.stages import STAGES, Stage
from epochal.plugins import NATIVE, layouts, own_settings

Preset = Literal["dev", "staging", "prod"]
"""Stage whose settings are the defaults: `dev` deletes data with the stack, `staging` is a smaller `prod`, and `prod`
keeps data."""


class StoreOptions(TypedDict, total=False):
    """Settings of a store; a setting that is left out has the value of the preset.

    `existing` has the ARNs of existing tables by their kinds, and `partitions` the numbers of partitions by the
    layouts' names. A layout is its name, or its options, such as `SekibanOptions(write_shards=4)`.
    """

    access_log_class: Literal["infrequent", "standard"]
    access_logs: bool
    alarm_topic: str | sns.ITopic
    archive: bool
    billing: Literal["on-demand", "provisioned"]
    boto3: Literal["runtime", "tested"]
    burst: int
    carrier: Literal["light", "boto3"]
    deletion_protection: bool
    existing: Mapping[str, str]
    existing_bucket: str
    feed_wait_seconds: int
    feed_window_seconds: int
    feed_batch_size: int
    feed_kinesis_shards: int
    keep: Sequence[str]
    jwt_audience: Sequence[str]
    infrequent_access: Sequence[str] | None
    jwt_issuer: str
    jwt_scopes: Mapping[str, Sequence[str]]
    kms_key: str | kms.IKey
    layouts: Sequence[object] | None
    log_days: int
    latency_ms: int
    log_kms_key: str | kms.IKey
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"]
    max_read_units: int
    max_upload_bytes: int
    max_write_units: int
    min_read_units: int
    min_write_units: int
    partitions: Mapping[str, int]
    read_models: bool
    recovery_days: int
    replica_kms_key: str
    replica_region: str
    requests_per_second: int
    reserved_concurrency: Mapping[str, int]
    retain: bool
    retries: int | None
    route_limits: Mapping[str, int]
    tagged_everything: bool
    tagged_types: Sequence[str]
    timers: bool
    event_schemas: str
    environment_kms_key: str | kms.IKey
    queue_kms_key: str | kms.IKey
    warm_read_units: int
    warm_write_units: int
    unchecked_events: Literal["take", "refuse"]


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
    values = _named(options)
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


def _named(options: Mapping[str, Any]) -> dict[str, Any]:
    """Convert options of a store to settings of `cdk.json`, with one setting per table and layout.

    Raises:
        BadSetting: an option is set by other means, or has a wrong form.
    """
    for key, instead in _SAID_ELSEWHERE.items():
        if key in options:
            raise BadSetting(f"EventStore.{key}", f"is a setting of cdk.json alone: {instead}")
    layouts_by_name = {layout.name: layout for layout in layouts()}
    values = {key: _plain(option) for key, option in options.items() if key not in ("existing", "partitions")}
    for kind, arn in _mapping(options, "existing", "by the kinds of tables, as {'streams': arn}").items():
        values[f"existing_{kind.replace('-', '_')}"] = arn
    for name, count in _mapping(options, "partitions", "by the names of layouts, as {'pages': 4}").items():
        if name not in layouts_by_name:
            raise BadSetting(
                "EventStore.partitions",
                f"are of no layout {name}; {list_alternatives(name, layouts_by_name)}",
            )
        values[layouts_by_name[name].partitions] = count
    chosen_layouts = values.get("layouts")
    for place, choice in enumerate(chosen_layouts if isinstance(chosen_layouts, list) else ()):
        layout = next((one for one in layouts_by_name.values() if one.plugin.options is type(choice)), None)
        if layout is not None:
            values["layouts"][place] = layout.name
            chosen = (name for name, one in own_settings(layout).items() if one.chosen)
            values |= {name: _plain(getattr(choice, name)) for name in chosen}
    return values


def _mapping(options: Mapping[str, Any], key: str, names: str) -> Mapping[str, Any]:
    """Return an option that is a mapping; empty where it is not given.

    Args:
        names: the keys in words, for the error.

    Raises:
        BadSetting: the value is no mapping.
    """
    value = options.get(key, {})
    if not isinstance(value, Mapping):
        raise BadSetting(f"EventStore.{key}", f"must be an object {names}, not {value!r}")
    return value


def _plain(value: Any) -> Any:
    """Convert an option to a value as JSON has it; a key or topic becomes its ARN."""
    for attribute in ("key_arn", "topic_arn"):
        if hasattr(value, attribute):
            return getattr(value, attribute)
    if isinstance(value, Mapping):
        return {key: _plain(element) for key, element in value.items()}
    return [*value] if isinstance(value, Sequence) and not isinstance(value, str) else value
