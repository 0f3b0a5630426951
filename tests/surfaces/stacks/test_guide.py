"""docs/deploy.md names everything that can be set, docs/runbook.md everything that can go off."""

from __future__ import annotations

import json
import re
from dataclasses import Field, fields
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from aws_cdk import App, Stack
from aws_cdk.assertions import Template

from epochal.cdk import EventStore, Reaction
from epochal.cdk.declared_reactions import Declared
from epochal.cdk.stage_rules import FUNCTIONS
from epochal.cdk.stages import RULES, STAGES
from epochal.http.operation import Operation
from epochal.http.routes import operations
from epochal.layout.tables import READ_MODELS, TIMERS, store_tables
from epochal.settings import DECLARED, Options, variable
from stacks.stages import stage_from
from tests.docs.test_links import anchors
from tests.surfaces.stacks.templates import ROOT, Synthesise

GUIDE = (ROOT / "docs" / "deploy.md").read_text()
REACTIONS = (ROOT / "docs" / "guide" / "reactions.md").read_text()
OWN_APP = (ROOT / "docs" / "guide" / "your-own-app.md").read_text()
ANCHORS = anchors(ROOT / "docs" / "runbook.md")
ENTRIES = re.findall(r"^### `(.+)`$", (ROOT / "docs" / "runbook.md").read_text(), re.MULTILINE)
TABLES = "|".join(spec.kind for spec in (*store_tables(), READ_MODELS, TIMERS))
SETTINGS = re.findall(
    r"^- ((?:`\w+`(?:, )?)+) \((.*?)\): ", GUIDE.partition("all settings.")[2], re.MULTILINE
)


def test_every_setting_is_explained_and_none_that_there_is_not() -> None:
    told = {name for names, _ in SETTINGS for name in re.findall(r"`(\w+)`", names)}
    assert told == set(RULES), "docs/deploy.md lists each setting"


@pytest.mark.parametrize(
    "option", [each for each in fields(Options) if each.name in DECLARED], ids=lambda option: option.name
)
def test_a_setting_has_the_default_that_is_told(option: Field[Any]) -> None:
    defaults = [default for names, default in SETTINGS if f"`{option.name}`" in names]
    assert len(defaults) == 1, f"docs/deploy.md lists `{option.name}` once"
    value = option.default
    if isinstance(value, int) and not isinstance(value, bool):
        told = f"{value:,}"
    else:
        told = DECLARED[option.name].text(value) or "none"
    assert defaults[0].startswith((told, f"`{told}`")) or value is None


def test_every_alarm_has_an_entry_in_the_runbook_and_every_entry_an_alarm(synthesise: Synthesise) -> None:
    deployment = synthesise(
        "prod",
        reactions={"board": {"entry": "board"}},
        read_models=True,
        timers=True,
        region="eu-west-1",
        replica_region="eu-central-1",
        feed_kinesis_shards=1,
        latency_ms=800,
    )
    found = {
        each["Properties"]["AlarmName"].removeprefix("epochal-prod-"): each["Properties"]["AlarmDescription"]
        for kind in deployment.stacks
        for each in deployment.of_type(kind, "AWS::CloudWatch::Alarm").values()
    }
    of_lakes = {"lake-<name>-late", "lake-<name>-unconverted"}  # `test_lake` has them
    assert {general(name) for name in found} == set(ENTRIES) - of_lakes
    for name, description in found.items():
        _, address, anchor = description.partition(" What to do: docs/runbook.md#")
        assert address, f"{name} does not say where to read on: {description}"
        assert anchor == re.sub(r"[<>]", "", general(name)), f"{name} leads to another entry"
        assert anchor in ANCHORS


def general(name: str) -> str:
    """An alarm's name as the runbook has it, with a word for each kind of thing that there are several of."""
    name = re.sub(rf"^({'|'.join(FUNCTIONS)})-(fails|throttled)$", r"<function>-\2", name)
    name = re.sub(rf"^({'|'.join(FUNCTIONS)})-slow$", "function-slow", name)
    of_tables = "(?:reads|writes|indexes)-throttled|replica-lags"
    name = re.sub(rf"^({TABLES})-({of_tables})$", r"<table>-\2", name)
    name = re.sub(r"^reaction-(board|timers)-", "reaction-<name>-", name)
    return re.sub(rf"^(feed-gave-up|feed-dropped)-({TABLES}|changes)$", r"\1-<table>", name)


def test_the_stages_have_the_numbers_of_their_table() -> None:
    def row(start: str) -> list[str]:
        (found,) = [line for line in GUIDE.splitlines() if line.startswith(f"| {start}")]
        return [cell.strip() for cell in found.split("|")[2:-1]]

    stages = list(STAGES.values())
    assert row("logs are kept") == [f"{stage.log_days} days" for stage in stages]
    assert row("access logs") == ["yes" if stage.access_logs else "no" for stage in stages]
    assert row("data outlives") == ["yes" if stage.retain else "no" for stage in stages]
    assert row("restore tables") == [f"{s.recovery_days} days" if s.recovery_days else "–" for s in stages]
    assert row("requests a second") == [f"{s.requests_per_second:,} / {s.burst:,}" for s in stages]


def test_what_alarms_cost_is_counted_as_they_are(synthesise: Synthesise) -> None:
    deployment = synthesise("prod", reactions={"board": {"entry": "board"}})
    alarms = {
        kind: [each["Properties"] for each in deployment.of_type(kind, "AWS::CloudWatch::Alarm").values()]
        for kind in deployment.stacks
    }
    # An alarm on an expression is paid for by each metric in it.
    metrics = sum(
        sum("MetricStat" in each for each in alarm.get("Metrics", ())) or 1
        for kind, listed in alarms.items()
        for alarm in listed
        if kind != "reactions"
    )
    assert f"A stage's alarms look at {metrics} metrics" in GUIDE
    monthly = f"{metrics / 10 + 3:.2f} dollars"
    assert f"{monthly} in all" in GUIDE
    assert f"costs {monthly} a month for alarms and the dashboard" in (ROOT / "README.md").read_text()
    left = sum(len(listed) for kind, listed in alarms.items() if kind not in ("reactions", "watch"))
    assert f"of `--all`, and {left} alarms remain" in GUIDE.replace("\n", " ")
    assert f"each declared reaction {len(alarms['reactions'])}," in GUIDE
    words = ("six", "seven", "eight", "nine", "ten", "eleven")[len(alarms["reactions"]) - 6]
    reactions = (ROOT / "docs" / "guide" / "reactions.md").read_text().replace("\n", " ")
    assert f"Either way, the reaction has {words} alarms" in reactions


EVIL = ("GET", "feed", "feed1", "streams", "0", "events")
"""What a caller may call a stream, a projection or a tag."""


def test_a_policy_for_readers_lets_nobody_write_under_names_that_look_like_its_routes() -> None:
    """IAM's `*` is any text, slashes as well."""
    (policy,) = re.findall(r"```json\n(\{\n  \"Effect\".*?execute-api.*?\n\})\n```", GUIDE, re.DOTALL)
    patterns = [re.escape(each).replace(r"\*", ".*") for each in json.loads(policy)["Resource"]]
    api = "arn:aws:execute-api:eu-west-1:123456789012:<ApiId>/$default"

    def allowed(route: Operation) -> set[bool]:
        parts = [EVIL if part.startswith("{") else (part,) for part in route.path.split("/")]
        paths = ["/".join(path) for path in product(*parts)]
        return {any(re.fullmatch(each, f"{api}/{route.method}{path}") for each in patterns) for path in paths}

    for route in operations():
        meant = route.method == "GET" and route.path.split("/")[1] in ("streams", "feed")
        assert allowed(route) == {meant}, route.key


def test_whoever_reads_and_writes_the_tables_is_told_what_that_takes(synthesise: Synthesise) -> None:
    statements = [
        statement
        for role in synthesise("prod").of_type("api", "AWS::IAM::Role").values()
        for policy in role["Properties"]["Policies"]
        for statement in policy["PolicyDocument"]["Statement"]
    ]
    actions = {
        action.partition(":")[2]
        for each in statements
        for action in (each["Action"] if isinstance(each["Action"], list) else [each["Action"]])
        if not action.startswith("logs:")
    }
    told = GUIDE.partition("A program opens the same tables")[2].partition("\n\n")[0]
    assert "GetItem" in actions
    assert [action for action in actions if not re.search(rf"[`:]{action}`", told)] == []


def test_the_examples_are_settings() -> None:
    starts = [match.end() for match in re.finditer('"prod": ', GUIDE)]
    for start in starts:
        example, _ = json.JSONDecoder().raw_decode(GUIDE, start)
        assert stage_from("prod", {"prod": example}) != STAGES["prod"]
    assert len(starts) == 1


def test_a_reaction_can_be_deployed_as_its_guides_say(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    handler, _ = blocks("py")
    (construct,) = re.findall(
        r"^```py\n(store = EventStore\.from_name.*?)^```$", OWN_APP, re.MULTILINE | re.DOTALL
    )
    entry = tmp_path / "reactions" / "board"
    entry.mkdir(parents=True)
    (entry / "board.py").write_text(handler)
    (tmp_path / "epochal").symlink_to(ROOT)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(variable("reaction"), "departures-board")
    names: dict[str, Any] = {"__name__": "handler"}
    exec(compile(handler, "handler.py", "exec"), names)  # noqa: S102  the guide's own
    assert callable(names["handler"])
    stack = Stack(App(), "boards")
    exec(construct, {"EventStore": EventStore, "Reaction": Reaction, "stack": stack})  # noqa: S102  as above
    template = Template.from_stack(stack)
    template.has_resource_properties(
        "AWS::Lambda::Function", {"FunctionName": "shop-events-reaction-departures-board"}
    )


def test_the_reaction_that_the_guide_declares_is_a_setting() -> None:
    declared, _ = blocks("json")
    stages = json.loads(f"{{{declared}}}")["stages"]
    (reaction,) = stage_from("prod", stages).reactions.values()
    assert reaction.entry == "reactions/board"
    described = set(re.findall(r"`(\w+)`", _options(REACTIONS)))
    assert {each.name for each in fields(Declared)} <= described


def test_the_read_model_that_the_guide_declares_is_made_by_its_handler(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    _, declared = blocks("json")
    stage = stage_from("prod", {"prod": json.loads(f"{{{declared}}}")})
    ((name, reaction),) = stage.reactions.items()
    monkeypatch.setenv(variable("reaction"), name)
    monkeypatch.setenv(variable("read_models_table"), stage.named(READ_MODELS.kind))
    names: dict[str, Any] = {"__name__": "handler"}
    exec(compile(blocks("py")[-1], "handler.py", "exec"), names)  # noqa: S102  the guide's own
    assert callable(names["handler"])
    assert (names["statuses"].table, names["statuses"].name) == ("epochal-prod-read-models", "statuses")
    assert reaction.read_models == ("statuses",)


def blocks(language: str) -> list[str]:
    """The guide's blocks of a language that are not run one after the other."""
    found: list[str] = re.findall(rf"^```{language}\n(.*?)^```$", REACTIONS, re.MULTILINE | re.DOTALL)
    return found


def _options(text: str) -> str:
    """The list of what may be declared."""
    _, _, found = text.partition("- `entry`")
    return "- `entry`" + found.partition("**In a stack")[0]
