"""Settings: what a stage is, and what is refused before anything is synthesised."""

from __future__ import annotations

import json
from dataclasses import fields
from typing import Any

import pytest

from epochal.cdk.rules import BadSetting
from epochal.cdk.stage_rules import EXISTING, FUNCTIONS, OF_LAYOUTS
from epochal.cdk.stages import RULES, STAGES, Stage
from epochal.cdk.targets import Target, fit_stage, target_from
from epochal.layout.registry import declared
from stacks.stages import check_context, stage_from
from tests.surfaces.stacks.templates import CHOSEN, ROOT, Synthesise

KEY = "arn:aws:kms:eu-west-1:123456789012:key/1234"
STREAM = "arn:aws:dynamodb:eu-west-1:123456789012:table/kept/stream/2026-01-01T00:00:00.000"


def test_every_field_has_a_rule_and_every_rule_a_field() -> None:
    not_for_setting = {"name", "tls_only", "batches_named"}
    of_tables_and_layouts = {"existing_tables", "of_layouts"}
    settings = {each.name for each in fields(Stage)} - not_for_setting - of_tables_and_layouts
    assert set(RULES) == settings | EXISTING.keys() | set(OF_LAYOUTS)


def test_settings_are_told_to_functions_that_there_are() -> None:
    for setting in declared().values():
        assert {*setting.functions} <= {*FUNCTIONS, "reaction", "arming"}, setting.name


def test_every_stage_obeys_its_own_rules() -> None:
    for stage in STAGES.values():
        for name in RULES.keys() - EXISTING.keys() - set(OF_LAYOUTS):
            value, rule = getattr(stage, name), RULES[name]
            assert rule(_as_json(value)) == value


def test_production_keeps_and_protects_its_data() -> None:
    prod = STAGES["prod"]
    assert prod.retain
    assert prod.deletion_protection
    assert prod.recovery_days == 35
    assert prod.access_logs


@pytest.mark.parametrize("overrides", [None, {}, {"prod": {"tips_partitions": 9}}])
def test_a_stage_without_changes_is_itself(overrides: object) -> None:
    assert stage_from("staging", overrides) == STAGES["staging"]


def test_changes_apply_to_their_stage_and_field_only() -> None:
    changed = stage_from(
        "prod", {"prod": {"tips_partitions": 4, "tags": {"team": "flights"}}, "dev": {"log_days": 1}}
    )
    assert changed.partitions("tips_partitions") == 4
    assert changed.tags == {"team": "flights"}
    assert changed.log_days == STAGES["prod"].log_days


def test_changes_may_come_from_the_command_line_as_text() -> None:
    assert stage_from("dev", '{"dev": {"tips_partitions": 2}}').partitions("tips_partitions") == 2


@pytest.mark.parametrize("name", ["prd", "", "Prod", None, 1])
def test_an_unknown_stage_is_refused_with_those_there_are(name: object) -> None:
    with pytest.raises(BadSetting, match="dev, staging, prod") as refused:
        stage_from(name, {})
    assert refused.value.name == "stage"


@pytest.mark.parametrize(
    ("name", "rule"),
    [
        ("stag", "did you mean stage? known names are stage, stages, target, layouts, api"),
        ("Stage", "did you mean stage? known names are stage, stages, target, layouts, api"),
        ("team", "is not a context value; known names are stage, stages, target, layouts, api"),
        (
            "tips_partitions",
            "is a setting of a stage: set it in cdk.json as stages.<stage>.tips_partitions",
        ),
    ],
)
def test_a_context_value_that_nobody_reads_is_refused(name: str, rule: str) -> None:
    with pytest.raises(BadSetting) as refused:
        check_context(["stage", name])
    assert refused.value.name == name
    assert rule in refused.value.rule


def test_context_values_of_cdks_own_are_left_alone() -> None:
    names = json.loads((ROOT / "cdk.json").read_text())["context"]
    assert any("-" in name for name in names)
    check_context([*names, "aws:cdk:enable-asset-metadata", "availability-zones:account=1:region=eu-west-1"])


def test_a_misspelt_setting_is_told_what_it_resembles() -> None:
    with pytest.raises(
        BadSetting, match=r"stages\.prod\.partition is not a setting; did you mean dcb_partitions\?"
    ):
        stage_from("prod", {"prod": {"partition": 4}})


@pytest.mark.parametrize("name", ["azure", None, "AWS"])
def test_an_unknown_target_is_refused_with_those_there_are(name: object) -> None:
    with pytest.raises(BadSetting, match="aws, embedded") as refused:
        target_from(name)
    assert refused.value.name == "target"


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("prefix", "Epochal"),
        ("prefix", "e"),
        ("prefix", "a-prefix-that-is-too-long"),
        ("prefix", "epochal-"),
        ("tags", {"team": 1}),
        ("tags", ["team"]),
        ("tags", {"team": "flights & rails"}),  # CDK takes it, IAM refuses it
        ("tags", {"team": "a,b"}),
        ("tags", {"te*m": "flights"}),
        ("tags", {"team": "flights\n"}),
        ("tags", {"": "flights"}),
        ("tags", {"t" * 129: "flights"}),
        ("tags", {"aws:team": "flights"}),
        ("tags", {"epochal:stage": "prod"}),
        ("tags", {"team": "flights", "Team": "flights"}),
        ("tags", {f"tag-{number}": "x" for number in range(50)}),
        ("retain", "true"),
        ("retain", 1),
        ("deletion_protection", None),
        ("recovery_days", 36),
        ("recovery_days", -1),
        ("recovery_days", True),
        ("billing", "PAY_PER_REQUEST"),
        ("max_read_units", -1),
        ("max_write_units", 1.5),
        ("min_read_units", 0),
        ("min_write_units", "5"),
        ("log_days", 8),
        ("log_days", True),
        ("log_days", 1.0),
        ("log_level", "info"),
        ("access_logs", "no"),
        ("access_log_class", "seldom"),
        ("requests_per_second", 0),
        ("burst", 0),
        ("reserved_concurrency", {"apend": 1}),
        ("reserved_concurrency", {"append": 0}),
        ("kms_key", "alias/mine"),
        ("jwt_issuer", "http://issuer.example"),
        ("jwt_audience", "epochal"),
        ("jwt_audience", ["with space"]),
        ("jwt_scopes", {"reed": ["x"]}),
        ("jwt_scopes", {"read": "x"}),
        ("jwt_scopes", {"read": []}),
        ("tips_partitions", 0),
        ("tips_partitions", 10_001),
        ("alarm_topic", "alarms"),
        ("route_limits", {"GET /nothing": 1}),
        ("route_limits", {"GET /feed": 0}),
        ("route_limits", 5),
        ("max_upload_bytes", 0),
        ("max_upload_bytes", 1024**3 + 1),
        ("feed_wait_seconds", -1),
        ("feed_wait_seconds", 21),
        ("keep", "Visit:100"),
        ("keep", ["Visit"]),
        ("keep", ["Visit:100", "Visit:30d"]),
        ("consistent_reads", "no"),
        ("snapshot_copies", -1),
        ("snapshot_copies", 1_001),
        ("snapshot_ttl_days", 3_651),
        ("state_inline_bytes", 300_001),
        ("archive", "yes"),
        ("infrequent_access", "streams"),
        ("infrequent_access", ["stream"]),
        ("infrequent_access", ["timers"]),  # without `timers` there is no such table
        ("retries", -1),
        ("retries", 101),
        ("existing_archive", STREAM),
        ("existing_tips", STREAM.partition("/stream/")[0]),
        ("existing_index", "epochal-prod-index"),
        ("existing_journal", "epochal-prod-journal"),
        ("existing_journal", STREAM),
        ("existing_snapshot", STREAM.partition("/stream/")[0]),
        ("existing_bucket", "Not_A_Bucket"),
        ("aggregate_types", "order"),
        ("aggregate_types", ["order,account"]),
        ("aggregate_types", [""]),
        ("aggregate_types", ["user", "user-account"]),
        ("journal_keys", "dotnet"),
        ("journal_serializer", "cobol"),
        ("journal_shards", 0),
        ("journal_shards", 10_001),
        ("journal_partitions", 0),
        ("journal_partitions", 10_001),
        ("dcb_partitions", 0),
        ("dcb_partitions", 10_001),
        ("pages_partitions", 10_001),
        ("tagged_types", "Claimed"),
        ("tagged_types", ["a,b"]),
        ("tagged_everything", 1),
        ("type_heads", "true"),
        ("type_heads", 1),
        ("equinox", "true"),
        ("calving", "never"),
        ("calving_max_bytes", 0),
        ("calving_max_bytes", 400_001),
        ("calving_max_events", -1),
        ("existing_streams_archive", STREAM),
        ("write_shards", 0),
        ("write_shards", 1_001),
        ("service", "Shop"),
        ("service", "a#b"),
        ("service", "a|b"),
        ("service", "a" * 65),
        ("service", None),
        ("existing_events", STREAM),
        ("existing_tags", STREAM.partition("/stream/")[0]),
        ("existing_streams", STREAM.partition("/stream/")[0]),
        ("existing_projection_states", "epochal-prod-projection-states"),
        ("existing_read_models", "epochal-prod-read-models"),
        ("existing_timers", STREAM),
        ("read_models", ["counts"]),
        ("timers", 1),
        ("layouts", "pages"),
        ("layouts", []),
        ("layouts", ["pages", "page"]),
    ],
)
def test_a_value_that_breaks_its_rule_is_refused_with_field_and_value(field: str, value: Any) -> None:
    with pytest.raises(BadSetting, match="must be|is not a known member") as refused:
        stage_from("dev", {"prod": {field: value}})
    assert f"{refused.value.name}.".startswith(f"stages.prod.{field}.")


def test_every_rule_refuses_something() -> None:
    """No JSON value suits every field, so a rule that accepts all of these is none."""
    for name, rule in RULES.items():
        refused = 0
        for value in (None, True, -1, 0.5, "\n", [None], {"unknown": None}):
            try:
                rule(value)
            except ValueError:
                refused += 1
        assert refused >= 5, name


@pytest.mark.parametrize(
    ("overrides", "name"),
    [
        ({"prd": {}}, "stages.prd"),
        ({"prod": {"partition": 4}}, "stages.prod.partition"),
        ({"prod": {"name": "live"}}, "stages.prod.name"),
        ({"prod": 4}, "stages.prod"),
        ([], "stages"),
        ("{", "stages"),
    ],
)
def test_what_is_no_setting_is_refused_by_name(overrides: object, name: str) -> None:
    with pytest.raises(BadSetting) as refused:
        stage_from("dev", overrides)
    assert refused.value.name == name


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({"jwt_issuer": "https://issuer.example"}, "jwt_audience"),
        ({"jwt_audience": ["epochal"]}, "jwt_issuer"),
        ({"jwt_scopes": {"read": ["x"]}}, "jwt_issuer"),
        ({"billing": "provisioned", "max_write_units": 10}, "max_read_units"),
        ({"calving_max_bytes": 1_000}, "calving"),
        ({"calving_max_events": 9}, "calving"),
        ({"calving": "cost", "calving_max_events": 9, "equinox": True}, "calving"),
        ({"existing_streams_archive": STREAM.partition("/stream/")[0]}, "archive"),
        ({"billing": "provisioned", "max_read_units": 10, "max_write_units": 4}, "max_write_units"),
    ],
)
def test_settings_that_contradict_each_other_are_refused(changes: dict[str, Any], name: str) -> None:
    with pytest.raises(BadSetting) as refused:
        stage_from("prod", {"prod": changes})
    assert refused.value.name == f"stages.prod.{name}"


def test_the_longest_names_fit_a_bucket() -> None:
    """63 characters, with a prefix of 18 and the longest of the regions' names."""
    stage = stage_from("staging", {"staging": {"prefix": "a" * 18}})
    assert len(f"{stage.named('failures')}-123456789012-ap-southeast-2") <= 63


@pytest.mark.parametrize("name", STAGES)
def test_the_embedded_aws_keeps_nothing_and_changes_nothing_else(name: str) -> None:
    here, there = fit_stage(STAGES[name], Target.EMBEDDED), fit_stage(STAGES[name], Target.AWS)
    changed = {each.name for each in fields(Stage) if getattr(here, each.name) != getattr(there, each.name)}
    assert not here.retain
    assert not here.deletion_protection
    assert changed <= {"retain", "deletion_protection", "tls_only", "batches_named", "log_level"}
    assert there == STAGES[name]


def test_tags_may_have_what_iam_takes() -> None:
    tags = {"Cost centre/α": "Flüge 12:30 = a+b@c_d-e.f", "owner": "me@shop.example"}
    assert stage_from("prod", {"prod": {"tags": tags}}).tags == tags


def test_tags_are_on_everything_that_is_paid_for(synthesise: Synthesise) -> None:
    tagged = {"AWS::DynamoDB::GlobalTable", "AWS::S3::Bucket", "AWS::Lambda::Function", "AWS::Logs::LogGroup"}
    found = [each for each in synthesise(**CHOSEN).resources() if each["Type"] in tagged]
    assert {each["Type"] for each in found} == tagged
    for resource in found:
        (holder,) = resource["Properties"].get("Replicas", [resource["Properties"]])
        tags = {tag["Key"]: tag["Value"] for tag in holder["Tags"]}
        assert tags == {"epochal:stage": "dev", "team": "flights"}


def _as_json(value: Any) -> Any:
    """A setting as cdk.json would spell it."""
    if isinstance(value, tuple):
        return list(value)
    return value if value is None or isinstance(value, (str, int)) else dict(value)


@pytest.mark.parametrize(
    ("settings", "field"),
    [
        ({"snapshot_ttl_days": 30}, "snapshot_copies"),
        ({"existing_archive": STREAM.partition("/stream/")[0]}, "archive"),
    ],
)
def test_a_setting_that_means_nothing_without_another_asks_for_it(
    settings: dict[str, object], field: str
) -> None:
    with pytest.raises(BadSetting) as refused:
        stage_from("prod", {"prod": settings})
    assert refused.value.name == f"stages.prod.{field}"
