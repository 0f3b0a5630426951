"""What differs between deployments of Epochal: one `Stage` each.

Three stages exist: `dev` forgets, `staging` behaves like `prod` at a smaller size, `prod` keeps. What a team
wants otherwise stands in `cdk.json` under `context.stages`, field by field (docs/deploy.md lists them):

    "stages": {"prod": {"partitions": 4, "alarm_topic": "arn:aws:sns:..."}}

A value that breaks its field's rule (`RULES`) is refused before anything is synthesised, with the field's
name and the rule.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from difflib import get_close_matches
from types import MappingProxyType
from typing import Any, Final, Literal

from epochal.care.retention import rules_of
from epochal.declaration import Flag, Names, Number, OneOf, Setting, Text
from epochal.errors import InvalidInput
from epochal.http.operation import operations
from epochal.layout.port import READ_MODELS, TIMERS, archives, every_table, layout_names, store_tables
from epochal.lazy_dataclasses import dataclass, field, fields, replace
from epochal.plan.tables import TableSpec
from epochal.plugins import Layout, brought, layouts, own_settings, parts
from epochal.settings import DECLARED, Options, partitions_setting

# Rules that settings obey: each takes what is in `cdk.json` and returns the value, or raises. The error says what would
# be right and what was found; who asked adds where.

Rule = Callable[[Any], Any]


def wrong(expected: str, found: object) -> ValueError:
    """The error for `found` where `expected` should be."""
    return ValueError(f"must be {expected}, not {found!r}")


def a_flag(value: object) -> bool:
    """True or false."""
    if not isinstance(value, bool):
        raise wrong("true or false", value)
    return value


def a_number(least: int, most: int) -> Rule:
    """A whole number from `least` to `most`."""

    def rule(value: object) -> int:
        # JSON's true is an int to Python.
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
            raise wrong(f"a whole number from {least:,} to {most:,}", value)
        return value

    return rule


def or_null(rule: Rule) -> Rule:
    """What obeys `rule`, or null."""
    return lambda value: None if value is None else rule(value)


def one_of(*choices: str | int) -> Rule:
    """One of `choices`."""

    def rule(value: object) -> object:
        # To Python, JSON's true and 1.0 are 1.
        if type(value) not in (str, int) or value not in choices:
            raise wrong("one of " + ", ".join(map(str, choices)), value)
        return value

    return rule


def a_text(pattern: str, meaning: str) -> Rule:
    """Text that matches `pattern` as a whole; `meaning` says so in words."""

    def rule(value: object) -> str:
        if not isinstance(value, str) or not re.fullmatch(pattern, value):
            raise wrong(meaning, value)
        return value

    return rule


def a_list(each: Rule, *, least: int = 0) -> Rule:
    """A list of at least so many elements, all of which obey `each`."""

    def rule(value: object) -> tuple[Any, ...]:
        if not isinstance(value, list) or len(value) < least:
            raise wrong(f"a list of {least} or more" if least else "a list", value)
        return tuple(each(element) for element in value)

    return rule


def a_map(each: Rule, *, keys: Collection[str] | None = None) -> Rule:
    """An object whose every value obeys `each`, and whose keys are among `keys` where these are given."""

    def rule(value: object) -> MappingProxyType[str, Any]:
        if not isinstance(value, dict):
            raise wrong("an object", value)
        if keys is not None and (strangers := sorted(set(value) - set(keys))):
            raise wrong(f"an object with keys among {', '.join(keys)}", strangers[0])
        return MappingProxyType({key: each(element) for key, element in value.items()})

    return rule


def _chosen(default: Any, rule: Rule) -> Any:
    """Declare a setting, as the default of a field, and what it may hold."""
    if isinstance(default, Mapping):
        return field(default_factory=lambda: default, metadata={"rule": rule})
    return field(default=default, metadata={"rule": rule})


def _rules(settings: type) -> dict[str, Rule]:
    """Of the settings that a class declares so, by their names."""
    return {each.name: each.metadata["rule"] for each in fields(settings) if "rule" in each.metadata}


# Reactions as a stage declares them in `cdk.json`, for those who need no stack of their own.
#
# "reactions": {"board": {"entry": "reactions/board", "allow": [
#     {"actions": ["dynamodb:PutItem"], "resources": ["arn:${AWS::Partition}:dynamodb:…:table/board"]}]}}

_NOTHING: Final[Mapping[str, Any]] = MappingProxyType({})
_REACTION: Final = r"[A-Za-z0-9][A-Za-z0-9-]{0,63}"
_MODEL: Final = r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Allow:
    """What a handler may do beside reading events: actions on resources."""

    actions: tuple[str, ...]
    resources: tuple[str, ...]


def _an_environment(value: object) -> Mapping[str, str]:
    variables: Mapping[str, str] = a_map(a_text(r"[^\0]*", "text"))(value)
    for name in variables:
        if name.startswith(("EPOCHAL_", "AWS_", "POWERTOOLS_")):
            raise wrong("variables of one's own", name)
    return variables


def _an_allow(value: object) -> Allow:
    text = a_text(r"\S+", "text without spaces")
    action = a_text(r"[a-z0-9-]+:[A-Za-z0-9*]+", "an action such as dynamodb:PutItem")
    rules = {"actions": a_list(action, least=1), "resources": a_list(text, least=1)}
    fields = _members(rules, value)
    if fields.keys() != rules.keys():
        raise wrong("an object with actions and resources", value)
    return Allow(**fields)


@dataclass(frozen=True, slots=True, kw_only=True)
class Declared:
    """A reaction; what is left out is the construct's own (`reaction.py`).

    Attributes:
        entry: folder of its code, from where `cdk.json` is.
        handler: `module:reaction` or `module.function` in it.
        memory_mb, timeout_seconds: of the function.
        batch_size: wake-ups of one invocation, which runs what they wake one after another.
        reserved_concurrency: invocations at once, and kept for it.
        environment: of the handler.
        allow: what the handler needs.
        read_models: names of those that it makes, in the stage's table.
        process: it is a process, and so two reactions.
    """

    entry: str = field(metadata={"rule": a_text(r"\S(.*\S)?", "a folder")})
    handler: str = _chosen("handler.handler", a_text(r"\w+[.:]\w+", "module:reaction or module.function"))
    memory_mb: int | None = _chosen(None, a_number(128, 10_240))
    timeout_seconds: int | None = _chosen(None, a_number(10, 900))
    batch_size: int | None = _chosen(None, a_number(1, 10))
    reserved_concurrency: int | None = _chosen(None, a_number(1, 100_000))
    environment: Mapping[str, str] = _chosen(_NOTHING, _an_environment)
    allow: tuple[Allow, ...] = _chosen((), a_list(_an_allow))
    read_models: tuple[str, ...] = _chosen((), a_list(a_text(_MODEL, "the name of a read model")))
    process: bool = _chosen(False, a_flag)


def _a_reaction(value: object) -> Declared:
    fields = _members(_rules(Declared), value)
    if "entry" not in fields:
        raise wrong("an object with an entry", value)
    return Declared(**fields)


def reactions(value: object) -> Mapping[str, Declared]:
    """Reactions by name."""
    found: Mapping[str, Declared] = a_map(_a_reaction)(value)
    for name in found:
        a_text(_REACTION, "reactions named with letters, digits and hyphens")(name)
    return found


def _members(rules: Mapping[str, Rule], value: object) -> dict[str, Any]:
    a_map(lambda each: each, keys=rules)(value)
    assert isinstance(value, dict)  # noqa: S101  # the rule above says so
    return {name: rules[name](each) for name, each in value.items()}


# What settings of a stage may hold.
#
# A name or a number that the library checks as well is checked here by the library's own rule or limit, so that what
# is deployed also runs.

FUNCTIONS: Final = (
    *sorted({each.function for each in operations()}),
    "indexer",
    "auditor",
    "timers",
)
ROUTE_KEYS: Final = tuple(each.key for each in operations())
LIMITS: Final = {each.key: each.requests_per_second for each in operations() if each.requests_per_second}
SCOPES: Final = tuple(sorted({each.scope for each in operations()}))

_ARN: Final = r"arn:aws[a-z-]*"
_PLACE: Final = r"[a-z0-9-]+:\d{12}"
_KEY: Final = a_text(rf"({_ARN}:kms:{_PLACE}:key/\S+)?", "the ARN of a KMS key")
_TOPIC: Final = a_text(rf"({_ARN}:sns:{_PLACE}:\S+)?", "the ARN of an SNS topic")
_REGION: Final = a_text(r"([a-z]{2,}(-[a-z]+)+-\d)?", "a region, as eu-central-1")
_STREAM: Final = a_text(rf"({_ARN}:dynamodb:{_PLACE}:table/\S+/stream/\S+)?", "the ARN of a table's stream")
_TABLE: Final = a_text(rf"({_ARN}:dynamodb:{_PLACE}:table/[^/\s]+)?", "the ARN of a table")
_DOMAIN: Final = a_text(
    r"(?:(?=.{4,253}$)[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)+)?",
    "a name such as events.shop.example",
)
_CERTIFICATE: Final = a_text(rf"({_ARN}:acm:{_PLACE}:certificate/\S+)?", "the ARN of a certificate")
_WORD: Final = a_text(r"\S+", "text without spaces")
_NAME: Final = a_text(r"[^\s,]+", "text without spaces or commas")
_LOG_DAYS: Final = one_of(1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731, 1096, 1827, 3653)


_MOST_TAGS: Final = 49
"""Beside `epochal:stage`: a resource takes 50."""


def _tags(value: object) -> Mapping[str, str]:
    """Tags as IAM takes them, the pickiest of the services that get them: CDK takes any, and the deployment fails."""
    tags: Mapping[str, str] = a_map(a_text(r"(?s).{1,256}", "text of 1 to 256 characters"))(value)
    for each in (each for pair in tags.items() for each in pair):
        if not all(unicodedata.category(letter)[0] in "LNZ" or letter in "_.:/=+-@" for letter in each):
            raise wrong("letters, digits, spaces and _ . : / = + - @ alone, which is what IAM takes", each)
    lower = [key.lower() for key in tags]
    for key, same in zip(tags, lower, strict=True):
        if not 1 <= len(key) <= 128 or same.startswith(("aws:", "epochal:")) or lower.count(same) > 1:  # noqa: PLR2004
            rule = (
                "keys of 1 to 128 characters, not of aws: nor epochal:, that differ in more than their case"
            )
            raise wrong(rule, key)
    if len(tags) > _MOST_TAGS:
        raise wrong(f"at most {_MOST_TAGS} tags", len(tags))
    return tags


def _rule(option: Setting) -> Rule:
    """What a stage may choose for a setting of the library."""
    match option.kind:
        case Number(least=least, most=most):
            number = a_number(least, most)
            # Null is as good as unsaid where a setting may be.
            return number if option.default is not None else or_null(number)
        case Flag():
            return a_flag
        case OneOf(of=choices):
            return one_of(*choices)
        case Text(pattern=pattern, meaning=meaning):
            return a_text(pattern, meaning)
        case Names():
            return a_list(_NAME)


_TABLES: Final = {spec.kind: spec for spec in every_table()}

EXISTING: Final = {f"existing_{kind.replace('-', '_')}": kind for kind in _TABLES}
"""Settings that name tables which are there already, and the kinds of these."""

OF_LAYOUTS: Final = {
    **{each.partitions: partitions_setting(each.partitions) for each in layouts()},
    **{name: each for layout in layouts() for name, each in own_settings(layout).items() if each.chosen},
}
"""Settings that say how many partitions a layout's part of the feed has, and those that plug-ins declare."""


# A stage.


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
        access_log_class: CloudWatch's, of these lines: `infrequent` costs half, and has neither tail nor filters.
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
        timers: appends may be scheduled: a table of them, and what has them made in time.
        infrequent_access: kinds of tables whose storage costs 60 % less and whose requests a quarter more (DynamoDB's
            class Standard-IA); None for the archives. A table changes its class in place, twice in thirty days.
        existing_tables: retained tables that are used, but not managed, by kind: the ARN of the table's stream where it
            has one, else its own. In `cdk.json` each is a setting: `existing_tips`, `existing_journal`.
        existing_bucket: name of a retained bucket of bodies and states that is used, but not managed.
        event_schemas: file that `epochal schema` has printed, from where `cdk.json` is: events that HTTP takes fit it.
        tls_only: buckets, queues and the topic refuse plain HTTP. Not for setting: only the embedded AWS goes without.
        batches_named: requests of several messages are actions with names of their own, and a question about a mapping
            has another's, and schedules are all of the default group. Not for setting either.
    """

    name: str
    account: str = _chosen("", a_text(r"(\d{12})?", "an account's 12 digits"))
    region: str = _chosen("", _REGION)
    # With 18 characters the longest name, a bucket's with account and region, still has at most 63.
    prefix: str = _chosen(
        "epochal",
        a_text(r"[a-z][a-z0-9-]{1,16}[a-z0-9]", "3 to 18 lower-case letters, digits and hyphens"),
    )
    tags: Mapping[str, str] = _chosen(_NOTHING, _tags)
    retain: bool = _chosen(False, a_flag)
    deletion_protection: bool = _chosen(False, a_flag)
    recovery_days: int = _chosen(0, a_number(0, 35))
    boto3: Literal["runtime", "tested"] = _chosen("runtime", one_of("runtime", "tested"))
    billing: Literal["on-demand", "provisioned"] = _chosen("on-demand", one_of("on-demand", "provisioned"))
    min_read_units: int = _chosen(5, a_number(1, 40_000))
    min_write_units: int = _chosen(5, a_number(1, 40_000))
    max_read_units: int = _chosen(0, a_number(0, 1_000_000))
    max_write_units: int = _chosen(0, a_number(0, 1_000_000))
    log_days: int = _chosen(7, _LOG_DAYS)
    log_kms_key: str = _chosen("", _KEY)
    log_level: str = _chosen("INFO", one_of("DEBUG", "INFO", "WARNING", "ERROR"))
    api: Literal["gateway", "urls"] = _chosen("gateway", one_of("gateway", "urls"))
    domain_name: str = _chosen("", _DOMAIN)
    domain_certificate: str = _chosen("", _CERTIFICATE)
    access_logs: bool = _chosen(True, a_flag)
    access_log_class: Literal["infrequent", "standard"] = _chosen(
        "infrequent", one_of("infrequent", "standard")
    )
    requests_per_second: int = _chosen(1_000, a_number(1, 100_000))
    burst: int = _chosen(500, a_number(1, 50_000))
    route_limits: Mapping[str, int] = _chosen(_NOTHING, a_map(a_number(1, 50_000), keys=ROUTE_KEYS))
    # As long as Lambda waits at most.
    feed_window_seconds: int = _chosen(1, a_number(0, 300))
    # An entry for a thousand heads is 50 to 100 KB, well below the 300 KB at which it would be split in two. Lambda
    # cuts batches at 6 MB by itself, which a thousand heads reach only above 6 KB each.
    feed_batch_size: int = _chosen(1_000, a_number(1, 10_000))
    # As many as an account may have in most regions, until it asks for more.
    feed_kinesis_shards: int = _chosen(0, a_number(0, 200))
    reserved_concurrency: Mapping[str, int] = _chosen(_NOTHING, a_map(a_number(1, 100_000), keys=FUNCTIONS))
    kms_key: str = _chosen("", _KEY)
    replica_region: str = _chosen("", _REGION)
    replica_kms_key: str = _chosen("", _KEY)
    jwt_issuer: str = _chosen("", a_text(r"(https://\S+)?", "an https:// address"))
    jwt_audience: tuple[str, ...] = _chosen((), a_list(_WORD))
    # An empty list would let any token through.
    jwt_scopes: Mapping[str, tuple[str, ...]] = _chosen(_NOTHING, a_map(a_list(_WORD, least=1), keys=SCOPES))
    monthly_budget: int = _chosen(0, a_number(0, 1_000_000))
    alarm_topic: str = _chosen("", _TOPIC)
    layouts: tuple[str, ...] | None = _chosen(None, or_null(a_list(one_of(*layout_names()), least=1)))
    archive: bool = _chosen(False, a_flag)
    reactions: Mapping[str, Declared] = _chosen(_NOTHING, reactions)
    read_models: bool = _chosen(False, a_flag)
    timers: bool = _chosen(False, a_flag)
    event_schemas: str = _chosen("", a_text(r"(\S(.*\S)?)?", "a file"))
    infrequent_access: tuple[str, ...] | None = _chosen(None, or_null(a_list(one_of(*_TABLES))))
    existing_tables: Mapping[str, str] = field(default_factory=lambda: _NOTHING)
    existing_bucket: str = _chosen("", a_text(r"([a-z0-9][a-z0-9.-]{2,62})?", "the name of a bucket"))
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

    def tables(self) -> tuple[TableSpec, ...]:
        """Those that it has."""
        there = self.deployed_layouts()
        return (
            *store_tables(there),
            *(archives(there) if self.archive else ()),
            *((READ_MODELS,) if self.read_models else ()),
            *((TIMERS,) if self.timers else ()),
        )

    def is_infrequent(self, kind: str) -> bool:
        """Whether the table of `kind` is rather kept than asked."""
        if self.infrequent_access is None:
            return kind in {spec.kind for spec in archives()}
        return kind in self.infrequent_access

    def sending(self) -> tuple[str, ...]:
        """Kinds of tables that send their changes to Kinesis: what is not the stage's own, it cannot tell where to."""
        if not self.feed_kinesis_shards:
            return ()
        heads = (each.port.heads.kind for each in self.deployed_layouts())
        return tuple(kind for kind in heads if not self.existing(kind))


RULES: Final[Mapping[str, Rule]] = MappingProxyType(
    {
        **{each.name: _rule(DECLARED[each.name]) for each in fields(Options) if each.name in DECLARED},
        **{name: _rule(each) for name, each in OF_LAYOUTS.items()},
        **_rules(Stage),
        **{name: _STREAM if _TABLES[kind].stream else _TABLE for name, kind in EXISTING.items()},
    }
)
"""What each setting may hold, by its name."""

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


_OF_GATEWAY: Final = ("access_log_class", "access_logs", "burst", "requests_per_second")
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
        for key, rule in _without_gateway({key: parsed.get(key) for key in _OF_GATEWAY}):
            raise BadSetting(f"{where}.{key}", rule)
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
    for key, rule in _broken(stage):
        raise BadSetting(f"{where}.{key}", rule)
    return stage


def _broken(stage: Stage) -> Iterator[tuple[str, str]]:
    """Settings that do not go with the others, and the rule of each."""
    if stage.jwt_issuer and not stage.jwt_audience:
        yield "jwt_audience", "must not be empty with jwt_issuer: any token of the issuer would do"
    if not stage.jwt_issuer and (stage.jwt_audience or stage.jwt_scopes):
        yield "jwt_issuer", "must be set with jwt_audience or jwt_scopes, which mean nothing without"
    if stage.api == "urls":
        of_gateway = ("jwt_issuer", "route_limits", "domain_name")
        yield from _without_gateway({key: getattr(stage, key) for key in of_gateway})
    if bool(stage.domain_name) != bool(stage.domain_certificate):
        yield "domain_certificate", "must be set with domain_name, and not without"
    try:
        rules_of(stage.keep)
    except InvalidInput as error:
        yield "keep", error.rule
    if stage.monthly_budget and not stage.alarm_topic:
        yield "alarm_topic", "must be set with monthly_budget, to be told"
    yield from _misplaced(stage)
    yield from _tables(stage)
    if stage.feed_kinesis_shards and not stage.sending():
        rule = "must be 0 where every table of heads is an existing one, which is followed by the stream that is named"
        yield "feed_kinesis_shards", rule
    yield from _of_plugins(stage)
    for kind in ("read", "write") if stage.billing == "provisioned" else ():
        if getattr(stage, f"max_{kind}_units") < getattr(stage, f"min_{kind}_units"):
            yield f"max_{kind}_units", f"must be at least min_{kind}_units where billing is provisioned"


def _of_plugins(stage: Stage) -> Iterator[tuple[str, str]]:
    """Of plug-ins, about their own settings."""
    for check in parts("coherent"):
        try:
            check(stage)
        except InvalidInput as error:
            yield error.field, error.rule


def _without_gateway(asked: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    """Settings of the gateway where there is none: a limit would seem to be there."""
    return ((key, "means nothing with api urls: it is the gateway's to do") for key in asked if asked[key])


def _tables(stage: Stage) -> Iterator[tuple[str, str]]:
    """Of what is optional: a setting of a table that the stage lacks, or of schemas, means nothing."""
    if stage.unchecked_events != "take" and not stage.event_schemas:
        yield "event_schemas", "must be set with unchecked_events, which means nothing without"
    making = sorted(name for name, reaction in stage.reactions.items() if reaction.read_models)
    if not stage.read_models and (making or stage.existing(READ_MODELS.kind)):
        whose = f"the reaction {making[0]}" if making else "existing_read_models"
        yield "read_models", f"must be true for {whose}, which needs their table"
    there = stage.deployed_layouts()
    if stage.timers and TIMERS.kind in stage.reactions:
        yield "reactions", f"must not be called {TIMERS.kind}, as the one that timers have"
    if not stage.timers and stage.existing(TIMERS.kind):
        yield "timers", "must be true with existing_timers, which means nothing without"
    tables = {spec.kind for spec in (*store_tables(there), *archives(there), READ_MODELS, TIMERS)}
    if unused := sorted(stage.existing_tables.keys() - tables):
        name = unused[0].replace("-", "_")
        yield "layouts", f"must have the layout of existing_{name}, which means nothing without"
    made = {spec.kind for spec in stage.tables()}
    for kind in stage.infrequent_access or ():
        if kind not in made or stage.existing(kind):
            yield "infrequent_access", f"must be of tables that the stage makes, and it makes no {kind}"
    if not stage.archive and (kept := [spec.kind for spec in archives(there) if stage.existing(spec.kind)]):
        yield (
            "archive",
            f"must be true with existing_{kept[0].replace('-', '_')}, which means nothing without",
        )


def _misplaced(stage: Stage) -> Iterator[tuple[str, str]]:
    """ARNs of other regions, and of other accounts for what only its own account may use; and the second region, where
    tables that have a key of one's own need one as well.
    """
    for key in ("kms_key", "log_kms_key", "domain_certificate", "alarm_topic"):
        there, here = _region(getattr(stage, key)), stage.region or _region(stage.kms_key)
        if there and here and there != here:
            yield key, f"must be in {here}, where the stage is, not in {there}"
    replica, own = stage.replica_region, _region(stage.kms_key)
    if replica and replica == stage.region:
        yield "replica_region", f"must be another region than {stage.region}"
    if stage.replica_kms_key and not (replica and stage.kms_key):
        yield "replica_kms_key", "means nothing without replica_region and kms_key, which must be set with it"
    if replica and stage.kms_key and _region(stage.replica_kms_key) != replica:
        rule = "must be a key in replica_region where there is a kms_key, which is of one region"
        yield "replica_kms_key", rule
    if replica and replica == own:
        yield "replica_region", "must be another region than that of kms_key, where the tables are"


def _region(arn: str) -> str:
    """None of an ARN that CDK knows only once it is deployed."""
    return arn.split(":")[3] if arn.startswith("arn:") else ""
