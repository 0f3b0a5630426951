"""A deployed stage moves between any two settings without a refusal of AWS's, as far as templates tell (`Account`).

What a stage no longer has is retained in production, under its name. Where it is wanted again, deploy.md has the order
of commands: it is taken back (`cdk import`), then deployed. The judge follows that order.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from importlib.metadata import version
from typing import Any, Final

import pytest
from aws_cdk import App, Stack
from aws_cdk.assertions import Template

from epochal.cdk import EventStore, Reaction
from epochal.cdk.sources import Sources
from epochal.cdk.stage_rules import EXISTING
from epochal.cdk.stages import RULES
from epochal.cdk.targets import TARGET
from stacks.deployment import ACCOUNT, REGION
from tests.support.account import BUCKET, PLACE, STAGE, TABLE, Account
from tests.surfaces.stacks.golden import CONSTRUCTS, STAGES, kept, today
from tests.surfaces.stacks.templates import CHOSEN, ROOT, Synthesise

STORE = "epochal-prod-store"
HERE, THERE = PLACE["AWS::Region"], "eu-central-1"
KEY = f"arn:aws:kms:{HERE}:123456789012:key/1234"
PAGES = {
    name: (ROOT / "docs" / name).read_text()
    for name in ("deploy.md", "guide/backup.md", "guide/failover.md", "guide/index-care.md")
}

Settings = Mapping[str, Any]


def of_page(page: str) -> dict[str, Any]:
    """The tables and the bucket that a page has a stage take over."""
    (found,) = re.findall(r'```json\n"prod": (\{\n  "existing_.*?\n\})\n```', PAGES[page], re.DOTALL)
    settings: dict[str, Any] = json.loads(found)
    return settings


RESTORED = of_page("guide/backup.md")
OPTIONAL = {
    "existing_archive": "arn:aws:dynamodb:eu-west-1:123456789012:table/archive-restored",
    "existing_streams_archive": "arn:aws:dynamodb:eu-west-1:123456789012:table/streams-archive-restored",
    "existing_read_models": "arn:aws:dynamodb:eu-west-1:123456789012:table/read-models-restored",
    "existing_timers": "arn:aws:dynamodb:eu-west-1:123456789012:table/timers-restored",
}
EVERYTHING = {"archive": True, "read_models": True, "timers": True}
ANOTHER_INDEX = {"existing_index": RESTORED["existing_index"].replace("index-restored", "index-2")}
PROVISIONED = {"billing": "provisioned", "max_read_units": 40_000, "max_write_units": 40_000}
REACTIONS = {"reactions": {"board": {"entry": "board"}}}
EQUINOX = {"equinox": True, "calving": "fixed", "calving_max_bytes": 1_000, "calving_max_events": 9}
DOMAIN = {
    "domain_name": "events.example",
    "domain_certificate": f"arn:aws:acm:{HERE}:123456789012:certificate/1",
}
PINNED = {"account": PLACE["AWS::AccountId"], "region": HERE}
TOLD = {name: value for name, value in CHOSEN.items() if name not in ("archive", "read_models", "timers")}
KEEPING = {"retain": False, "deletion_protection": False, "recovery_days": 7, "log_days": 30}
TOPIC = f"arn:aws:sns:{HERE}:123456789012:on-call"
WATCHING = {
    "alarm_topic": TOPIC,
    "monthly_budget": 9,
    "log_kms_key": KEY,
    "queue_kms_key": KEY,
    "environment_kms_key": KEY,
    "latency_ms": 800,
    "carrier": "boto3",
    "boto3": "tested",
    "access_log_class": "standard",
}

SELDOM = {"infrequent_access": ["streams"]}
AT_ONCE = {**TOLD, **EQUINOX, **WATCHING, **PINNED, **DOMAIN, **REACTIONS, **SELDOM}

MOVES: Final[Mapping[str, tuple[Settings, Settings]]] = {
    "what leaves nothing behind, at once": ({}, AT_ONCE),
    "tables of choice, at once": ({}, EVERYTHING),
    # What functions are told, and all else that is one value in the template: what refuses one refuses all of them.
    "what functions are told": ({}, TOLD),
    "equinox": ({}, EQUINOX),
    "alarms, logs and a budget": ({}, WATCHING),
    "what is kept": ({}, KEEPING),
    "a place": ({}, PINNED),
    "a name of one's own": ({}, DOMAIN),
    "addresses of their own": ({}, {"api": "urls"}),
    "reactions": ({}, REACTIONS),
    "changes through Kinesis": ({}, {"feed_kinesis_shards": 1}),
    "more of Kinesis": ({"feed_kinesis_shards": 2}, {"feed_kinesis_shards": 4}),
    "a restored table beside Kinesis": (
        {"feed_kinesis_shards": 1},
        {"feed_kinesis_shards": 1, "existing_tips": RESTORED["existing_tips"]},
    ),
    "a key": (EVERYTHING, {**EVERYTHING, "kms_key": KEY}),
    "provisioned": (EVERYTHING, {**EVERYTHING, **PROVISIONED}),
    "warm tables": (EVERYTHING, {**EVERYTHING, "warm_read_units": 20_000, "warm_write_units": 8_000}),
    "floors": (PROVISIONED, {**PROVISIONED, "min_read_units": 9, "min_write_units": 9}),
    "a second region": (EVERYTHING, {**EVERYTHING, "replica_region": THERE}),
    "a second region of provisioned tables": (PROVISIONED, {**PROVISIONED, "replica_region": THERE}),
    "a second region with keys": (
        {**EVERYTHING, "kms_key": KEY},
        {
            **EVERYTHING,
            "kms_key": KEY,
            "replica_region": THERE,
            "replica_kms_key": KEY.replace(HERE, THERE),
        },
    ),
    "fewer layouts": ({}, {"layouts": ["pages"]}),
    "an archive": ({}, {"archive": True}),
    "a table that is seldom asked": ({}, SELDOM),
    "read models": ({}, {"read_models": True}),
    "timers": ({}, {"timers": True}),
    "another index": ({}, ANOTHER_INDEX),
    "another index of more partitions": ({}, {**ANOTHER_INDEX, "pages_partitions": 4, "tips_partitions": 4}),
    "a restored store": ({}, RESTORED),
    "everything restored": (EVERYTHING, {**EVERYTHING, **RESTORED, **OPTIONAL}),
    "restored a second time": (
        RESTORED,
        {name: again.replace("restored", "again") for name, again in RESTORED.items()},
    ),
}
"""Pairs of settings of `prod`, which are moved between both ways."""

LEAVING = {
    *(
        "fewer layouts",
        "tables of choice, at once",
        "an archive",
        "read models",
        "timers",
        "another index",
        "another index of more partitions",
    ),
    *("a restored store", "everything restored", "a restored table beside Kinesis"),
}
"""Those of them that leave a table or the bucket behind, which has to be taken back before the stage has it again."""

ALONE = {
    *("what functions are told", "equinox", "alarms, logs and a budget", "a place", "a name of one's own"),
    *("reactions", "a table that is seldom asked", "an archive", "read models", "timers"),
    *("another index", "a second region"),
}
"""Those that another has in it: `make proof` plays each of them, too."""


def played(moves: Iterable[str]) -> list[Any]:
    return [pytest.param(each, marks=pytest.mark.proof) if each in ALONE else each for each in moves]


WAYS_BACK = {
    move: [{"deletion_protection": False}]
    for move in ("a second region", "a second region of provisioned tables", "a second region with keys")
}
"""What has to be changed alone before one gets back, and back again afterwards: failover.md says it."""


@pytest.fixture(autouse=True)
def _deploys_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(REGION, HERE)
    monkeypatch.setenv(ACCOUNT, PLACE["AWS::AccountId"])


def test_no_setting_is_left_out() -> None:
    """A new setting has to be in a pair: the table above, or `CHOSEN`."""
    moved = {name for before, now in MOVES.values() for name in before.keys() ^ now.keys()}
    moved |= {
        name for before, now in MOVES.values() for name in before.keys() & now if before[name] != now[name]
    }
    assert set(RULES) - moved == {"prefix"}


@pytest.mark.parametrize("move", played(MOVES))
def test_a_stage_moves_between_settings_both_ways(synthesise: Synthesise, move: str) -> None:
    before, now = MOVES[move]
    back = [{**settings, **first} for first in WAYS_BACK.get(move, []) for settings in (now, before)]
    account, taken_back = Account(), 0
    for settings in (before, now, *back, before, now):
        templates = synthesise("prod", **settings).in_order()
        for name, template in templates.items():
            had = len(account.left)
            assert account.take_back(name, template) == []
            taken_back += had - len(account.left)
        assert account.deploy(templates) == []
    assert Account().deploy(templates) == [], "nor is it in the way of a first deployment"
    assert (taken_back > 0) is (move in LEAVING)
    assert not [key for key in account.deleted if key[0] in (TABLE, BUCKET)], "production deletes no data"


TOGETHER = {
    "jwt_scopes": ("jwt_issuer", "jwt_audience"),
    "snapshot_ttl_days": ("snapshot_copies",),
    "monthly_budget": ("alarm_topic",),
    "unchecked_events": ("event_schemas",),
    **dict.fromkeys(("calving_max_bytes", "calving_max_events"), ("calving",)),
}
"""Settings that mean nothing without others."""


ISSUED = ("jwt_issuer", "jwt_audience")
"""Neither of which is there without the other."""


@pytest.mark.proof
@pytest.mark.parametrize("name", [*TOLD, *EQUINOX, *WATCHING, *KEEPING])
def test_each_setting_of_those_that_are_changed_together_changes_alone(
    synthesise: Synthesise, name: str
) -> None:
    values = {**TOLD, **EQUINOX, **WATCHING, **KEEPING}
    company = {other: values[other] for other in TOGETHER.get(name, ())}
    changed = {each: values[each] for each in (ISSUED if name in ISSUED else (name,))}
    account = Account()
    for settings in (company, {**company, **changed}, company):
        assert account.deploy(synthesise("prod", **settings).in_order()) == []


@pytest.mark.parametrize("move", played(WAYS_BACK))
def test_without_the_way_that_a_page_tells_one_does_not_get_back(synthesise: Synthesise, move: str) -> None:
    before, now = (synthesise("prod", **settings).in_order() for settings in MOVES[move])
    account = Account()
    for templates in (before, now):
        assert account.deploy(templates) == []
    assert account.deploy(before)


@pytest.mark.parametrize("move", played(sorted(LEAVING)))
def test_what_was_left_is_in_the_way_until_it_is_taken_back(synthesise: Synthesise, move: str) -> None:
    """As deploy.md has it, below 'Tables that outlived their stack'."""
    more, fewer = sorted(
        (synthesise("prod", **settings).in_order() for settings in MOVES[move]),
        key=lambda templates: -len(templates[STORE]["Resources"]),
    )
    tables, kept = (
        sum(each["Type"] in (TABLE, BUCKET) for each in templates[STORE]["Resources"].values())
        for templates in (more, fewer)
    )
    account = Account()
    assert account.deploy(more) == []
    assert account.deploy(fewer) == []
    refused = account.deploy(more)
    assert len(refused) >= tables - kept > 0
    assert all("exists already" in each and each.endswith("which was left") for each in refused)


def test_a_development_stage_moves_between_layouts_and_its_tables_go_and_come(synthesise: Synthesise) -> None:
    account = Account()
    for settings in ({}, {"layouts": ["pages"]}, {}, EVERYTHING, {}):
        assert account.deploy(synthesise("dev", **settings).in_order()) == []
    assert {key[1] for key in account.deleted} >= {"epochal-dev-tips", "epochal-dev-archive"}


def test_a_stage_that_is_taken_down_leaves_no_table(synthesise: Synthesise) -> None:
    account = Account()
    assert account.deploy(synthesise("prod").in_order()) == []
    down = {"deletion_protection": False, "retain": False}
    assert account.deploy(synthesise("prod", **down).in_order()) == []
    for name in reversed(list(account.stacks)):
        account.destroy(name)
    assert {key[0] for key in account.left} == {BUCKET}


@pytest.mark.parametrize(("release", "stage"), kept())
def test_a_stage_of_a_release_becomes_one_of_today_and_goes_back(
    synthesise: Synthesise, sources: Sources, release: str, stage: str
) -> None:
    """Until a release is out, it may change: `python -m tests.surfaces.stacks.golden` writes it down anew."""
    before, now = kept()[release, stage], today(synthesise, sources, stage)
    account = Account()
    for templates in (before, now, before):
        assert account.deploy(templates) == []
    assert not account.left
    assert account.deleted == []


def test_each_version_has_its_templates_kept() -> None:
    assert {(version("epochal"), name) for name in (*STAGES, CONSTRUCTS)} <= kept().keys()


def of_store(templates: dict[str, dict[str, Any]], name: str) -> dict[str, Any]:
    """The properties of a table."""
    (found,) = (
        each["Properties"]
        for each in templates[STORE]["Resources"].values()
        if each["Type"] == TABLE and each["Properties"]["TableName"] == f"epochal-prod-{name}"
    )
    properties: dict[str, Any] = found
    return properties


def another_key(templates: dict[str, dict[str, Any]]) -> None:
    of_store(templates, "streams")["KeySchema"][0]["AttributeName"] = "other"


def two_indexes(templates: dict[str, dict[str, Any]]) -> None:
    table = of_store(templates, "snapshot")
    table["GlobalSecondaryIndexes"] = [
        *table["GlobalSecondaryIndexes"],
        *({**table["GlobalSecondaryIndexes"][0], "IndexName": name} for name in ("one", "two")),
    ]


def another_stream(templates: dict[str, dict[str, Any]]) -> None:
    of_store(templates, "streams")["StreamSpecification"] = {"StreamViewType": "KEYS_ONLY"}


def another_region_and_more(templates: dict[str, dict[str, Any]]) -> None:
    table = of_store(templates, "streams")
    table["Replicas"] = table["Replicas"][:1]
    table["SSESpecification"] = {"SSEEnabled": True}


def fewer_routes(templates: dict[str, dict[str, Any]]) -> None:
    resources = templates["epochal-prod-api"]["Resources"]
    (live,) = (each["Properties"] for each in resources.values() if each["Type"] == STAGE)
    key = min(live["RouteSettings"])
    del live["RouteSettings"][key]
    (route,) = (id_ for id_, each in resources.items() if each["Properties"].get("RouteKey") == key)
    del resources[route]


@pytest.mark.parametrize(
    ("change", "refused"),
    [
        (another_key, "would be replaced for its KeySchema"),
        (two_indexes, "can gain or lose one index in an update"),
        (another_stream, "cannot change its stream while it is of several regions"),
        (another_region_and_more, "can change nothing else where it gains or loses a region"),
        (fewer_routes, "keeps settings of the route"),
    ],
)
def test_what_a_release_may_not_change_is_refused(
    synthesise: Synthesise, sources: Sources, change: Callable[[dict[str, Any]], None], refused: str
) -> None:
    before, now = kept()[version("epochal"), "everything"], today(synthesise, sources, "everything")
    change(now)
    account = Account()
    assert account.deploy(before) == []
    assert any(refused in each for each in account.deploy(now))


def test_no_stack_of_a_stage_exports_or_imports(synthesise: Synthesise) -> None:
    for settings in ({}, {**EVERYTHING, **REACTIONS}, RESTORED, {"api": "urls"}):
        text = json.dumps(synthesise("prod", **settings).in_order())
        assert not re.findall(r'"(Export|Fn::ImportValue|Fn::GetStackOutput)"', text)


def test_the_pages_tell_the_order_of_commands() -> None:
    assert set(RESTORED) == {name for name in (*EXISTING, "existing_bucket") if name not in OPTIONAL}
    assert "Set `existing_index`" in PAGES["guide/index-care.md"]
    assert "deploy `deletion_protection` as `false`, then without `replica_region`" in PAGES[
        "guide/failover.md"
    ].replace("\n", " ")
    rows = {line.split("`")[1]: line for line in PAGES["deploy.md"].splitlines() if line.startswith("- `")}
    for name in ("layouts", "archive", "read_models", "existing_tips"):
        assert "tables-that-outlived-their-stack" in rows[name], f"{name} has to say how it comes back"


class TestInAnAppOfOnesOwn:
    """A store in one stack, a reaction and a reading function's grant in another."""

    @pytest.fixture(autouse=True)
    def shipped(self, sources: Sources, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(Sources, "shipped", lambda: sources)
        monkeypatch.delenv(TARGET, raising=False)

    @staticmethod
    @cache
    def plain(sources: Sources) -> dict[str, dict[str, Any]]:
        return TestInAnAppOfOnesOwn.templates(sources)

    @staticmethod
    def templates(sources: Sources, **options: Any) -> dict[str, dict[str, Any]]:
        app = App()
        kept, boards = Stack(app, "Kept"), Stack(app, "Boards")
        store = EventStore(kept, "Events", name="shop", preset="prod", **options)
        Reaction(boards, "Board", store=store, entry=sources.root / "board", name="board")
        return {each.stack_name: Template.from_stack(each).to_json() for each in (kept, boards)}

    @pytest.mark.parametrize(
        "options",
        [
            {"layouts": None, "watch": False},
            {"api": "urls", "archive": True},
            {"api": None},
            {"feed_kinesis_shards": 1},
            {"layouts": None, **RESTORED},
        ],
        ids=["all layouts", "addresses", "no api", "kinesis", "restored"],
    )
    def test_a_store_moves_both_ways_beside_a_stack_that_uses_it(
        self, sources: Sources, options: dict[str, Any]
    ) -> None:
        before, now = self.plain(sources), self.templates(sources, **options)
        assert not re.findall(r'"(Export|Fn::ImportValue)"', json.dumps([before, now]))
        account = Account()
        for templates in (before, now, before):
            for name, template in templates.items():
                assert account.take_back(name, template) == []
            assert account.deploy(templates) == []
