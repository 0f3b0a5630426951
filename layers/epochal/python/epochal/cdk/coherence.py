"""Rules about several settings of a stage: which of them contradict each other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from epochal.care.retention import rules_of
from epochal.cdk.rules import BadSetting
from epochal.cdk.stages import Stage
from epochal.errors import InvalidInput
from epochal.layout.tables import READ_MODELS, TIMERS, archives, store_tables
from epochal.plugins import layouts


def coherent(where: str, stage: Stage) -> Stage:
    """Return the given stage unchanged; raise `BadSetting` if two of its settings contradict each other.

    Raises:
        BadSetting: two settings contradict each other.
    """
    for key, rule in _broken(stage):
        raise BadSetting(f"{where}.{key}", rule)
    return stage


def _broken(stage: Stage) -> Iterator[tuple[str, str]]:
    """Yield each setting that contradicts the others, and the rule that it breaks."""
    if stage.jwt_issuer and not stage.jwt_audience:
        yield "jwt_audience", "must not be empty with jwt_issuer: any token of the issuer would be accepted"
    if not stage.jwt_issuer and (stage.jwt_audience or stage.jwt_scopes):
        yield "jwt_issuer", "must be set with jwt_audience or jwt_scopes, which have no effect without it"
    if stage.api == "urls":
        of_gateway = ("jwt_issuer", "route_limits", "domain_name")
        yield from need_gateway({key: getattr(stage, key) for key in of_gateway})
    if bool(stage.domain_name) != bool(stage.domain_certificate):
        yield "domain_certificate", "must be set if, and only if, domain_name is set"
    try:
        rules_of(stage.keep)
    except InvalidInput as error:
        yield "keep", error.rule
    if stage.monthly_budget and not stage.alarm_topic:
        yield "alarm_topic", "must be set with monthly_budget, which notifies it"
    yield from _misplaced(stage)
    yield from _tables(stage)
    if stage.feed_kinesis_shards and not stage.sending():
        rule = (
            "must be 0 if every table of heads is an existing one: the existing stream of each table is used"
        )
        yield "feed_kinesis_shards", rule
    yield from _of_plugins(stage)
    for kind in ("read", "write") if stage.billing == "provisioned" else ():
        if getattr(stage, f"max_{kind}_units") < getattr(stage, f"min_{kind}_units"):
            yield f"max_{kind}_units", f"must be at least min_{kind}_units when billing is provisioned"
    yield from _warm(stage)


NEW_TABLE_UNITS: Final = {"read": 12_000, "write": 4_000}
"""Units per second that a new table on demand takes at once. DynamoDB refuses less as its warm throughput."""


def _warm(stage: Stage) -> Iterator[tuple[str, str]]:
    """Yield each setting of warm throughput that is too small or above the maximum, and its rule."""
    for kind, least in NEW_TABLE_UNITS.items():
        units, most = getattr(stage, f"warm_{kind}_units"), getattr(stage, f"max_{kind}_units")
        if units and units < least:
            rule = f"must be 0, or at least {least:,}, which DynamoDB gives every new table, not {units:,}"
            yield f"warm_{kind}_units", rule
        if units and most and units > most:
            yield f"warm_{kind}_units", f"must be at most max_{kind}_units, which is {most:,}, not {units:,}"


def _of_plugins(stage: Stage) -> Iterator[tuple[str, str]]:
    """Yield each setting of a plug-in that contradicts others, and the rule that it breaks."""
    for check in filter(None, (layout.plugin.check_options for layout in layouts())):
        try:
            check(stage)
        except InvalidInput as error:
            yield error.field, error.rule


def need_gateway(settings: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    """Yield each of the given gateway settings that is set, with the rule that `api` `urls` excludes it.

    A limit would seem to exist without a gateway to enforce it.

    Args:
        settings: values of the gateway's settings, by name.
    """
    return ((key, "has no effect with api urls: it needs a gateway") for key in settings if settings[key])


def _tables(stage: Stage) -> Iterator[tuple[str, str]]:
    """Yield each setting that needs a table or schemas that the stage lacks, or is reserved, and its rule."""
    if stage.unchecked_events != "take" and not stage.event_schemas:
        yield "event_schemas", "must be set with unchecked_events, which has no effect without it"
    making = sorted(name for name, reaction in stage.reactions.items() if reaction.read_models)
    if not stage.read_models and (making or stage.existing(READ_MODELS.kind)):
        whose = f"the reaction {making[0]}" if making else "existing_read_models"
        yield "read_models", f"must be true for {whose}, which needs their table"
    deployed = stage.deployed_layouts()
    if stage.timers and TIMERS.kind in stage.reactions:
        yield "reactions", f"must not contain {TIMERS.kind}, which is the name of the reaction of timers"
    if not stage.timers and stage.existing(TIMERS.kind):
        yield "timers", "must be true with existing_timers, which has no effect without it"
    tables = {spec.kind for spec in (*store_tables(deployed), *archives(deployed), READ_MODELS, TIMERS)}
    if unused := sorted(stage.existing_tables.keys() - tables):
        name = unused[0].replace("-", "_")
        yield "layouts", f"must include the layout of existing_{name}, which has no effect without it"
    created = {spec.kind for spec in stage.tables()}
    for kind in stage.infrequent_access or ():
        if kind not in created or stage.existing(kind):
            yield "infrequent_access", f"must be tables that the stage creates, and it creates no {kind}"
    if not stage.archive and (
        existing := [spec.kind for spec in archives(deployed) if stage.existing(spec.kind)]
    ):
        yield (
            "archive",
            f"must be true with existing_{existing[0].replace('-', '_')}, which has no effect without it",
        )


def _misplaced(stage: Stage) -> Iterator[tuple[str, str]]:
    """Yield each setting that names a wrong region or conflicts with the replica's region, and its rule.

    A replica of tables with a customer managed key needs a key in its own region.
    """
    for key in (
        "kms_key",
        "log_kms_key",
        "queue_kms_key",
        "environment_kms_key",
        "domain_certificate",
        "alarm_topic",
    ):
        arn_region, stage_region = _region(getattr(stage, key)), stage.region or _region(stage.kms_key)
        if arn_region and stage_region and arn_region != stage_region:
            yield key, f"must be in {stage_region}, where the stage is, not in {arn_region}"
    replica, key_region = stage.replica_region, _region(stage.kms_key)
    if replica and replica == stage.region:
        yield "replica_region", f"must be a region other than {stage.region}"
    if stage.replica_kms_key and not (replica and stage.kms_key):
        yield "replica_kms_key", "must only be set together with replica_region and kms_key"
    if replica and stage.kms_key and _region(stage.replica_kms_key) != replica:
        rule = "must be a key in replica_region if kms_key is set, since a key belongs to one region"
        yield "replica_kms_key", rule
    if replica and replica == key_region:
        yield "replica_region", "must be a region other than that of kms_key, where the tables are"


def _region(arn: str) -> str:
    """Return the region of an ARN; empty for an ARN that CDK knows only once it is deployed."""
    return arn.split(":")[3] if arn.startswith("arn:") else ""
