"""What differs between deployments of Epochal: one `Stage` each.

Three stages exist: `dev` forgets, `staging` behaves like `prod` at a smaller size, `prod` keeps. What a team
wants otherwise stands in `cdk.json` under `context.stages`, field by field (docs/deploy.md lists them):

    "stages": {"prod": {"partitions": 4, "alarm_topic": "arn:aws:sns:..."}}

A value that breaks its field's rule (`fields.py`) is refused before anything is synthesised, with the field's
name and the rule.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from types import MappingProxyType
from typing import Any, Final, Literal

from epochal.cdk.fields import EXISTING, LIMITS, OF_LAYOUTS, RULES, Declared
from epochal.errors import InvalidInput
from epochal.layout.registry import READ_MODELS, archives, store_tables
from epochal.plugins import Layout, brought, layouts, parts
from epochal.settings import Options

_NOTHING: Final[Mapping[str, Any]] = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage(Options):
    """Settings of one deployment: what its functions are told, and how it is deployed.

    Attributes:
        name: `dev`, `staging` or `prod`; of a store in an app of one's own, what everything of it is called after.
        account, region: where it is deployed, and nowhere else; wherever credentials lead where they are not said.
        prefix: begins the name of every table, bucket and function, if it is not empty; never change it where data
            must stay.
        tags: put on everything that can carry tags, beside `epochal:stage`.
        retain: tables and buckets outlive their stack.
        deletion_protection: tables and stacks refuse to be deleted until this is lifted.
        recovery_days: how far back a table can be restored to any second; 0 turns this off.
        boto3: of functions: the `runtime`'s, or a layer with the one that was `tested`.
        billing: `on-demand`, or `provisioned` with autoscaling between the units below.
        min_read_units, min_write_units: autoscaling's floor per table; `provisioned` only.
        max_read_units, max_write_units: ceiling of units a second per table; 0 is the account's own.
        log_days: retention of function and access logs.
        log_kms_key: ARN of a key of one's own for logs, whose policy lets CloudWatch Logs use it.
        log_level: from which level functions log.
        api: how functions are reached: through one `gateway`, or by `urls` of their own, which cost nothing and know no
            routes.
        domain_name: of the gateway, beside the address that it has.
        domain_certificate: ARN of a certificate for that name, of the same region.
        access_logs: one line for every HTTP request, without the stream's name.
        requests_per_second, burst: throttling of the HTTP API as a whole.
        route_limits: requests a second of single routes, by their keys (`GET /dcb/tags`), which are also their
            bursts; one that is not here has what its operation says, or shares in the whole. None is above the whole.
        feed_window_seconds: for which the indexer gathers appends before it writes them down. Under a trickle this
            makes one entry out of many, and an entry costs by the size of the epoch's Tip; readers wait at most this
            much longer, and not at all under load.
        feed_batch_size: appends that the indexer is given at a time at most.
        feed_kinesis_shards: of a Kinesis stream that tables of heads send their changes to, and that the indexer reads
            instead of their own streams: so it writes one entry a window, however many shards the tables have. It is
            paid by the hour. 0 for none.
        reserved_concurrency: invocations a function may have at once, and which no other takes from it.
        kms_key: ARN of a key of one's own for tables and buckets; else keys that AWS owns.
        replica_region: of a replica of every table that is made, to read from and to fail over to; empty for none.
        replica_kms_key: ARN of a key there, which goes with `kms_key`.
        jwt_issuer, jwt_audience: accept this issuer's tokens instead of SigV4 signatures.
        jwt_scopes: for each scope of the routes, the issuer's scopes of which a token must carry one;
            a scope that is not here stands for itself, so that leaving one out opens nothing.
        monthly_budget: dollars a month that the stage may cost before `alarm_topic` is told; 0 for none.
        alarm_topic: ARN of the SNS topic that alarms are sent to.
        layouts: names of those that are deployed; None for all. Of one that is left out there is no table, and nothing
            that looks after one.
        archive: tables that streams are copied to before they are pruned, and read from afterwards: one for each layout
            of named streams.
        reactions: reactions that are deployed with it, by name.
        read_models: a table for the read models of reactions.
        existing_tables: retained tables that are used, but not managed, by kind: the ARN of the table's stream where it
            has one, else its own. In `cdk.json` each is a setting: `existing_tips`, `existing_journal`.
        existing_bucket: name of a retained bucket of bodies and states that is used, but not managed.
        tls_only: buckets, queues and the topic refuse plain HTTP. Not for setting: only the embedded AWS goes without.
        batches_named: requests of several messages are actions with names of their own, and a question about a mapping
            has another's. Not for setting either.
    """

    name: str
    account: str = ""
    region: str = ""
    prefix: str = "epochal"
    tags: Mapping[str, str] = field(default_factory=lambda: _NOTHING)
    retain: bool = False
    deletion_protection: bool = False
    recovery_days: int = 0
    boto3: Literal["runtime", "tested"] = "runtime"
    billing: Literal["on-demand", "provisioned"] = "on-demand"
    min_read_units: int = 5
    min_write_units: int = 5
    max_read_units: int = 0
    max_write_units: int = 0
    log_days: int = 7
    log_kms_key: str = ""
    log_level: str = "INFO"
    api: Literal["gateway", "urls"] = "gateway"
    domain_name: str = ""
    domain_certificate: str = ""
    access_logs: bool = True
    requests_per_second: int = 1_000
    burst: int = 500
    route_limits: Mapping[str, int] = field(default_factory=lambda: _NOTHING)
    feed_window_seconds: int = 1
    # An entry for a thousand heads is 50 to 100 KB, well below the 300 KB at which it would be split in two. Lambda
    # cuts batches at 6 MB by itself, which a thousand heads reach only above 6 KB each.
    feed_batch_size: int = 1_000
    feed_kinesis_shards: int = 0
    reserved_concurrency: Mapping[str, int] = field(default_factory=lambda: _NOTHING)
    kms_key: str = ""
    replica_region: str = ""
    replica_kms_key: str = ""
    jwt_issuer: str = ""
    jwt_audience: tuple[str, ...] = ()
    jwt_scopes: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: _NOTHING)
    monthly_budget: int = 0
    alarm_topic: str = ""
    layouts: tuple[str, ...] | None = None
    archive: bool = False
    reactions: Mapping[str, Declared] = field(default_factory=lambda: _NOTHING)
    read_models: bool = False
    existing_tables: Mapping[str, str] = field(default_factory=lambda: _NOTHING)
    existing_bucket: str = ""
    tls_only: bool = True
    batches_named: bool = False

    def named(self, kind: str) -> str:
        """The name of this stage's `kind`: `epochal-prod-tips`."""
        return "-".join(each for each in (self.prefix, self.name, kind) if each)

    def deployed_layouts(self) -> tuple[Layout, ...]:
        """Its layouts, in the order of their partitions."""
        return tuple(each for each in layouts() if self.layouts is None or each.name in self.layouts)

    def brought_layouts(self) -> tuple[str, ...]:
        """Names of those that other packages bring."""
        there = brought()
        return tuple(each.name for each in self.deployed_layouts() if each in there)

    def limits(self) -> Mapping[str, int]:
        """Requests a second of the routes that have a limit of their own."""
        return {
            key: min(most, self.requests_per_second) for key, most in {**LIMITS, **self.route_limits}.items()
        }

    def existing(self, kind: str) -> str:
        """The ARN of the table that stands in for this stage's own of `kind`, or of its stream; empty for none."""
        return self.existing_tables.get(kind, "")

    def sending(self) -> tuple[str, ...]:
        """Kinds of tables that send their changes to Kinesis: what is not the stage's own, it cannot tell where to."""
        if not self.feed_kinesis_shards:
            return ()
        heads = (each.port.heads.kind for each in self.deployed_layouts())
        return tuple(kind for kind in heads if not self.existing(kind))


PARTITIONS_KEPT: Final = {"pages_partitions": 4}
"""Where data stay, since the first deployment fixes it. A reaction handles some 600 events a second in a partition, so
2,400 in all; at a hundred appends a second each reaction is 0.08 dollars a million dearer than with one partition.
"""

STAGES: Final[Mapping[str, Stage]] = MappingProxyType(
    {
        # With ceilings, a loop that runs wild overnight costs tens of dollars, not thousands.
        "dev": Stage(name="dev", access_logs=False, max_read_units=4_000, max_write_units=2_000),
        # Nowhere reserved concurrency by default: an account at its initial quota of 10 could not deploy it.
        "staging": Stage(name="staging", recovery_days=7, log_days=30, of_layouts=PARTITIONS_KEPT),
        # Half of an account's default quota of 10,000 requests a second: other APIs live there too.
        "prod": Stage(
            name="prod",
            retain=True,
            deletion_protection=True,
            recovery_days=35,
            log_days=90,
            requests_per_second=5_000,
            burst=2_500,
            of_layouts=PARTITIONS_KEPT,
        ),
    }
)


_OF_GATEWAY: Final = ("access_logs", "burst", "requests_per_second")
"""Settings of the gateway that every stage has by default."""


class BadSetting(ValueError):
    """The setting `name` breaks `rule`; nothing was synthesised."""

    def __init__(self, name: str, rule: str) -> None:
        super().__init__(f"{name} {rule}")
        self.name = name
        self.rule = rule


def known_are(name: str, known: Iterable[str]) -> str:
    """What there is, for one who asked for `name`."""
    names = list(known)
    nearest = get_close_matches(name, names, n=1)
    return f"{f'did you mean {nearest[0]}? ' if nearest else ''}there are {', '.join(names)}"


def changed(stage: Stage, changes: object, *, where: str = "", **besides: Any) -> Stage:
    """The stage with other values of the settings that `changes`, an object as JSON has it, names.

    Args:
        stage: what is changed.
        changes: by the names of settings.
        where: begins what errors call a setting; `stages.<stage>` where it is not said.
        besides: fields whose values obey no rule.

    Raises:
        BadSetting: one is no setting, or breaks a rule.
    """
    where = where or f"stages.{stage.name}"
    if not isinstance(changes, dict):
        raise BadSetting(where, f"must be an object, not {changes!r}")
    parsed = {key: _parsed(where, key, value) for key, value in changes.items()}
    if parsed.get("api") == "urls":
        _without_gateway(where, {key: parsed.get(key) for key in _OF_GATEWAY})
    tables = {EXISTING[key]: arn for key, arn in parsed.items() if key in EXISTING}
    own = {key: each for key, each in parsed.items() if key in OF_LAYOUTS}
    others = {key: parsed[key] for key in parsed.keys() - own.keys() - EXISTING.keys()}
    return coherent(
        where,
        replace(
            stage,
            existing_tables=tables,
            of_layouts={**stage.of_layouts, **own},
            **others,
            **besides,
        ),
    )


def _parsed(where: str, key: str, value: object) -> Any:
    if key not in RULES:
        raise BadSetting(f"{where}.{key}", f"is no setting; {known_are(key, RULES)}")
    return obeying(f"{where}.{key}", key, value)


def obeying(where: str, key: str, value: object) -> Any:
    """The value of the setting `key`, which is said at `where`, by its rule."""
    try:
        return RULES[key](value)
    except ValueError as error:
        raise BadSetting(where, str(error)) from None


def coherent(where: str, stage: Stage) -> Stage:
    """Rules that concern two fields."""
    if stage.jwt_issuer and not stage.jwt_audience:
        raise BadSetting(
            f"{where}.jwt_audience", "must not be empty with jwt_issuer: any token of the issuer would do"
        )
    if not stage.jwt_issuer and (stage.jwt_audience or stage.jwt_scopes):
        raise BadSetting(
            f"{where}.jwt_issuer", "must be set with jwt_audience or jwt_scopes, which mean nothing without"
        )
    if stage.api == "urls":
        of_gateway = ("jwt_issuer", "route_limits", "domain_name")
        _without_gateway(where, {key: getattr(stage, key) for key in of_gateway})
    if bool(stage.domain_name) != bool(stage.domain_certificate):
        raise BadSetting(f"{where}.domain_certificate", "must be set with domain_name, and not without")
    if stage.monthly_budget and not stage.alarm_topic:
        raise BadSetting(f"{where}.alarm_topic", "must be set with monthly_budget, to be told")
    _placed(where, stage)
    _replicated(where, stage)
    _tables(where, stage)
    if stage.feed_kinesis_shards and not stage.sending():
        raise BadSetting(
            f"{where}.feed_kinesis_shards",
            "must be 0 where every table of heads is an existing one, which is followed by the stream that is named",
        )
    _of_plugins(where, stage)
    for kind in ("read", "write") if stage.billing == "provisioned" else ():
        if getattr(stage, f"max_{kind}_units") < getattr(stage, f"min_{kind}_units"):
            raise BadSetting(
                f"{where}.max_{kind}_units", f"must be at least min_{kind}_units where billing is provisioned"
            )
    return stage


def _without_gateway(where: str, asked: Mapping[str, object]) -> None:
    """Refuse settings of the gateway where there is none: a limit would seem to be there."""
    for key, value in asked.items():
        if value:
            raise BadSetting(f"{where}.{key}", "means nothing with api urls: it is the gateway's to do")


def _tables(where: str, stage: Stage) -> None:
    """Rules of tables that are optional: a setting of a table that the stage lacks means nothing."""
    making = sorted(name for name, reaction in stage.reactions.items() if reaction.read_models)
    if not stage.read_models and (making or stage.existing(READ_MODELS.kind)):
        whose = f"the reaction {making[0]}" if making else "existing_read_models"
        raise BadSetting(f"{where}.read_models", f"must be true for {whose}, which needs their table")
    there = stage.deployed_layouts()
    tables = {spec.kind for spec in (*store_tables(there), *archives(there), READ_MODELS)}
    if unused := sorted(stage.existing_tables.keys() - tables):
        rule = f"must have the layout of existing_{unused[0].replace('-', '_')}, which means nothing without"
        raise BadSetting(f"{where}.layouts", rule)
    if not stage.archive and (kept := [spec.kind for spec in archives(there) if stage.existing(spec.kind)]):
        name = f"existing_{kept[0].replace('-', '_')}"
        raise BadSetting(f"{where}.archive", f"must be true with {name}, which means nothing without")


def _placed(where: str, stage: Stage) -> None:
    """Refuse ARNs of other regions, and of other accounts for what only its own account may use."""
    for key in ("kms_key", "log_kms_key", "domain_certificate", "alarm_topic"):
        there, here = _region(getattr(stage, key)), stage.region or _region(stage.kms_key)
        if there and here and there != here:
            raise BadSetting(f"{where}.{key}", f"must be in {here}, where the stage is, not in {there}")
    if stage.replica_region and stage.replica_region == stage.region:
        raise BadSetting(f"{where}.replica_region", f"must be another region than {stage.region}")


def _of_plugins(where: str, stage: Stage) -> None:
    """Rules of plug-ins about their own settings."""
    for check in parts("coherent"):
        try:
            check(stage)
        except InvalidInput as error:
            raise BadSetting(f"{where}.{error.field}", error.rule) from None


def _replicated(where: str, stage: Stage) -> None:
    """Rules of the second region: tables that have a key of one's own need one there as well."""
    if stage.replica_kms_key and not (stage.replica_region and stage.kms_key):
        raise BadSetting(
            f"{where}.replica_kms_key",
            "means nothing without replica_region and kms_key, which must be set with it",
        )
    if stage.replica_region and stage.kms_key and _region(stage.replica_kms_key) != stage.replica_region:
        raise BadSetting(
            f"{where}.replica_kms_key",
            "must be a key in replica_region where there is a kms_key, which is of one region",
        )
    if stage.replica_region and stage.replica_region == _region(stage.kms_key):
        raise BadSetting(
            f"{where}.replica_region", "must be another region than that of kms_key, where the tables are"
        )


def _region(arn: str) -> str:
    """None of an ARN that CDK knows only once it is deployed."""
    return arn.split(":")[3] if arn.startswith("arn:") else ""
