"""What differs between deployments of Epochal: one `Stage` each.

Three stages exist: `dev` forgets, `staging` behaves like `prod` at a smaller size, `prod` keeps. What a team
wants otherwise stands in `cdk.json` under `context.stages`, field by field (docs/deploy.md lists them):

    "stages": {"prod": {"partitions": 4, "alarm_topic": "arn:aws:sns:..."}}

A value that breaks its field's rule is refused before anything is synthesised, with the field's name and the
rule.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, Final, Literal

from epochal.errors import InvalidInput
from epochal.http.routes import ROUTES
from epochal.model.aggregates import AggregateTypes
from epochal.settings import MAX_SHARDS, SHARDS
from stacks.rules import Rule, a_flag, a_list, a_map, a_number, a_text, one_of

FUNCTIONS: Final = (*sorted({route.function for route in ROUTES}), "indexer")
SCOPES: Final = tuple(sorted({route.scope for route in ROUTES}))
_NOTHING: Final[Mapping[str, Any]] = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """Settings of one deployment.

    Attributes:
        name: `dev`, `staging` or `prod`.
        prefix: begins the name of every table, bucket and function; never change it where data must stay.
        tags: put on everything that can carry tags, beside `epochal:stage`.
        retain: tables and buckets outlive their stack.
        deletion_protection: tables and stacks refuse to be deleted until this is lifted.
        recovery_days: how far back a table can be restored to any second; 0 turns this off.
        billing: `on-demand`, or `provisioned` with autoscaling between the units below.
        min_read_units, min_write_units: autoscaling's floor per table; `provisioned` only.
        max_read_units, max_write_units: ceiling of units a second per table; 0 is the account's own.
        log_days: retention of function and access logs.
        log_level: from which level functions log.
        access_logs: one line for every HTTP request, without the stream's name.
        requests_per_second, burst: throttling of the HTTP API as a whole.
        reserved_concurrency: invocations a function may have at once, and which no other takes from it.
        kms_key: ARN of a key of one's own for tables and buckets; else keys that AWS owns.
        jwt_issuer, jwt_audience: accept this issuer's tokens instead of SigV4 signatures.
        jwt_scopes: for each scope of the routes, the issuer's scopes of which a token must carry one;
            a scope that is not here stands for itself, so that leaving one out opens nothing.
        partitions: partitions of the feed. Fixed at the first deployment; another number is a rebuild.
        alarm_topic: ARN of the SNS topic that alarms are sent to.
        aggregate_types: types of aggregates that the API serves; with none it refuses them all.
        journal_shards: shards of aggregates' partition keys. Fixed once something is stored: with another
            number it is not found.
        existing_tips, existing_index, existing_snapshot: stream ARN of a retained table that is used, but not
            managed.
        existing_journal: ARN of such a table; it has no stream.
        existing_bucket: name of a retained bucket of bodies, likewise.
        tls_only: buckets refuse plain HTTP. Not for setting: only the embedded AWS goes without.
    """

    name: str
    prefix: str = "epochal"
    tags: Mapping[str, str] = field(default_factory=lambda: _NOTHING)
    retain: bool = False
    deletion_protection: bool = False
    recovery_days: int = 0
    billing: Literal["on-demand", "provisioned"] = "on-demand"
    min_read_units: int = 5
    min_write_units: int = 5
    max_read_units: int = 0
    max_write_units: int = 0
    log_days: int = 7
    log_level: str = "INFO"
    access_logs: bool = True
    requests_per_second: int = 1_000
    burst: int = 500
    reserved_concurrency: Mapping[str, int] = field(default_factory=lambda: _NOTHING)
    kms_key: str = ""
    jwt_issuer: str = ""
    jwt_audience: tuple[str, ...] = ()
    jwt_scopes: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: _NOTHING)
    partitions: int = 1
    alarm_topic: str = ""
    aggregate_types: tuple[str, ...] = ()
    journal_shards: int = SHARDS
    existing_tips: str = ""
    existing_index: str = ""
    existing_journal: str = ""
    existing_snapshot: str = ""
    existing_bucket: str = ""
    tls_only: bool = True

    def named(self, kind: str) -> str:
        """The name of this stage's `kind`: `epochal-prod-tips`."""
        return f"{self.prefix}-{self.name}-{kind}"


STAGES: Final[Mapping[str, Stage]] = MappingProxyType(
    {
        # A loop gone wild overnight should cost tens of dollars, not thousands: hence ceilings.
        "dev": Stage(name="dev", access_logs=False, max_read_units=4_000, max_write_units=2_000),
        # Nowhere reserved concurrency by default: an account at its initial quota of 10 could not deploy it.
        "staging": Stage(name="staging", recovery_days=7, log_days=30),
        # Half of an account's default quota of 10,000 requests a second: other APIs live there too.
        "prod": Stage(
            name="prod",
            retain=True,
            deletion_protection=True,
            recovery_days=35,
            log_days=90,
            requests_per_second=5_000,
            burst=2_500,
        ),
    }
)

_ARN: Final = r"arn:aws[a-z-]*"
_PLACE: Final = r"[a-z0-9-]+:\d{12}"
_KEY: Final = a_text(rf"({_ARN}:kms:{_PLACE}:key/\S+)?", "the ARN of a KMS key")
_TOPIC: Final = a_text(rf"({_ARN}:sns:{_PLACE}:\S+)?", "the ARN of an SNS topic")
_STREAM: Final = a_text(rf"({_ARN}:dynamodb:{_PLACE}:table/\S+/stream/\S+)?", "the ARN of a table's stream")
_TABLE: Final = a_text(rf"({_ARN}:dynamodb:{_PLACE}:table/[^/\s]+)?", "the ARN of a table")
_WORD: Final = a_text(r"\S+", "text without spaces")
_LOG_DAYS: Final = one_of(1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731, 1096, 1827, 3653)


def _aggregate_types(value: object) -> tuple[str, ...]:
    """Types that the library takes together: no two whose ids could be equal."""
    types: tuple[str, ...] = a_list(_WORD)(value)
    try:
        AggregateTypes(types)
    except InvalidInput as error:
        raise ValueError(f"must be types of aggregates: {error.rule}") from None
    return types


RULES: Final[Mapping[str, Rule]] = MappingProxyType(
    {
        # With 18 characters the longest name, a bucket's with account and region, still has at most 63.
        "prefix": a_text(r"[a-z][a-z0-9-]{1,16}[a-z0-9]", "3 to 18 lower-case letters, digits and hyphens"),
        "tags": a_map(a_text(r".{1,256}", "text of 1 to 256 characters")),
        "retain": a_flag,
        "deletion_protection": a_flag,
        "recovery_days": a_number(0, 35),
        "billing": one_of("on-demand", "provisioned"),
        "min_read_units": a_number(1, 40_000),
        "min_write_units": a_number(1, 40_000),
        "max_read_units": a_number(0, 1_000_000),
        "max_write_units": a_number(0, 1_000_000),
        "log_days": _LOG_DAYS,
        "log_level": one_of("DEBUG", "INFO", "WARNING", "ERROR"),
        "access_logs": a_flag,
        "requests_per_second": a_number(1, 100_000),
        "burst": a_number(1, 50_000),
        "reserved_concurrency": a_map(a_number(1, 100_000), keys=FUNCTIONS),
        "kms_key": _KEY,
        "jwt_issuer": a_text(r"(https://\S+)?", "an https:// address"),
        "jwt_audience": a_list(_WORD),
        # An empty list would let any token through.
        "jwt_scopes": a_map(a_list(_WORD, least=1), keys=SCOPES),
        "partitions": a_number(1, 10_000),
        "alarm_topic": _TOPIC,
        "aggregate_types": _aggregate_types,
        "journal_shards": a_number(1, MAX_SHARDS),
        "existing_tips": _STREAM,
        "existing_index": _STREAM,
        "existing_journal": _TABLE,
        "existing_snapshot": _STREAM,
        "existing_bucket": a_text(r"([a-z0-9][a-z0-9.-]{2,62})?", "the name of a bucket"),
    }
)
"""What each field may hold; `name` and `tls_only` are not for setting."""


class BadSetting(ValueError):
    """The setting `name` breaks `rule`; nothing was synthesised."""

    def __init__(self, name: str, rule: str) -> None:
        super().__init__(f"{name} {rule}")
        self.name = name
        self.rule = rule


def stage_from(name: object, overrides: object) -> Stage:
    """The stage that context `stage` names, with what context `stages` changes in it.

    `overrides` is an object from cdk.json, or the same as JSON text where it comes from the command line. All
    of it is checked, also what concerns other stages: a misspelt stage would else go unnoticed until the day
    it is deployed.
    """
    everything = _decoded(overrides)
    for other in everything:
        _known(f"stages.{other}", other)
    stages = {each: _changed(STAGES[each], changes) for each, changes in everything.items()}
    known = _known("stage", name)
    return stages.get(known, STAGES[known])


def _decoded(overrides: object) -> Mapping[str, Any]:
    if isinstance(overrides, str):
        try:
            overrides = json.loads(overrides)
        except json.JSONDecodeError as error:
            raise BadSetting("stages", f"must be JSON: {error}") from None
    if overrides is None:
        return _NOTHING
    if not isinstance(overrides, dict):
        raise BadSetting("stages", f"must be an object, not {overrides!r}")
    return overrides


def _known(where: str, name: object) -> str:
    if not isinstance(name, str) or name not in STAGES:
        raise BadSetting(where, f"must be one of {', '.join(STAGES)}, not {name!r}")
    return name


def _changed(stage: Stage, changes: object) -> Stage:
    where = f"stages.{stage.name}"
    if not isinstance(changes, dict):
        raise BadSetting(where, f"must be an object, not {changes!r}")
    return _coherent(
        where, replace(stage, **{key: _parsed(where, key, value) for key, value in changes.items()})
    )


def _parsed(where: str, key: str, value: object) -> Any:
    if key not in RULES:
        raise BadSetting(f"{where}.{key}", f"is no setting; there are {', '.join(RULES)}")
    try:
        return RULES[key](value)
    except ValueError as error:
        raise BadSetting(f"{where}.{key}", str(error)) from None


def _coherent(where: str, stage: Stage) -> Stage:
    """Rules that concern two fields."""
    if stage.jwt_issuer and not stage.jwt_audience:
        raise BadSetting(
            f"{where}.jwt_audience", "must not be empty with jwt_issuer: any token of the issuer would do"
        )
    if not stage.jwt_issuer and (stage.jwt_audience or stage.jwt_scopes):
        raise BadSetting(
            f"{where}.jwt_issuer", "must be set with jwt_audience or jwt_scopes, which mean nothing without"
        )
    for kind in ("read", "write") if stage.billing == "provisioned" else ():
        if getattr(stage, f"max_{kind}_units") < getattr(stage, f"min_{kind}_units"):
            raise BadSetting(
                f"{where}.max_{kind}_units", f"must be at least min_{kind}_units where billing is provisioned"
            )
    return stage
