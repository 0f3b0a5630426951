"""Every setting of a stage, given to the construct: it is taken, or refused with what to write instead."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from aws_cdk import App, Stack

from epochal.cdk import EventStore
from epochal.cdk.rules import BadSetting
from epochal.cdk.sources import Sources
from epochal.cdk.stage_rules import EXISTING
from epochal.cdk.stages import RULES
from epochal.cdk.store_options import stage_of
from epochal.cdk.targets import TARGET
from tests.surfaces.stacks.templates import CHOSEN

TABLE_ARN = "arn:aws:dynamodb:eu-west-1:123456789012:table/kept"
STREAM_ARN = f"{TABLE_ARN}/stream/2026-01-01T00:00:00.000"
WITHOUT_STREAM = (
    *("existing_archive", "existing_streams_archive", "existing_read_models", "existing_timers"),
    *("existing_events", "existing_journal", "existing_projection_states"),
)
KEY = "arn:aws:kms:eu-west-1:123456789012:key/1234abcd-12ab-34cd-56ef-1234567890ab"
VALUES: dict[str, Any] = {
    **CHOSEN,
    **dict.fromkeys(EXISTING, STREAM_ARN),
    **dict.fromkeys(WITHOUT_STREAM, TABLE_ARN),
    "access_logs": True,
    "account": "123456789012",
    "region": "eu-west-1",
    "prefix": "pr-17",
    "api": "urls",
    "retain": True,
    "deletion_protection": True,
    "recovery_days": 7,
    "boto3": "tested",
    "billing": "provisioned",
    "min_read_units": 6,
    "min_write_units": 6,
    "log_days": 30,
    "log_kms_key": KEY,
    "queue_kms_key": KEY,
    "environment_kms_key": KEY,
    "latency_ms": 800,
    "warm_read_units": 20_000,
    "warm_write_units": 8_000,
    "domain_name": "events.example.com",
    "domain_certificate": "arn:aws:acm:eu-west-1:123456789012:certificate/1",
    "access_log_class": "standard",
    "feed_kinesis_shards": 1,
    "kms_key": KEY,
    "replica_region": "eu-central-1",
    "replica_kms_key": KEY.replace("eu-west-1", "eu-central-1"),
    "monthly_budget": 10,
    "alarm_topic": "arn:aws:sns:eu-west-1:123456789012:alarms",
    "layouts": ["pages", "tips"],
    "reactions": {"board": {"entry": "board"}},
    "infrequent_access": ["index"],
    "existing_bucket": "kept-bodies",
    "carrier": "boto3",
    "calving": "fixed",
    "calving_max_bytes": 3_000,
    "calving_max_events": 10,
    "equinox": True,
}
NEEDS: dict[str, dict[str, Any]] = {
    "replica_kms_key": {"replica_region": "eu-central-1", "kms_key": KEY},
    "domain_certificate": {"domain_name": "events.example.com"},
    "jwt_audience": {"jwt_issuer": "https://issuer.example/pool"},
    "jwt_scopes": {"jwt_issuer": "https://issuer.example/pool", "jwt_audience": ["epochal"]},
    "jwt_issuer": {"jwt_audience": ["epochal"]},
    "unchecked_events": {"event_schemas": "events.json"},
    "min_read_units": {"billing": "provisioned", "max_read_units": 20, "max_write_units": 20},
    "min_write_units": {"billing": "provisioned", "max_read_units": 20, "max_write_units": 20},
    "billing": {"max_read_units": 20, "max_write_units": 20},
    "calving_max_bytes": {"calving": "fixed"},
    "calving_max_events": {"calving": "fixed"},
    "warm_read_units": {"max_read_units": 0},
    "warm_write_units": {"max_write_units": 0},
    "snapshot_ttl_days": {"snapshot_copies": 3},
    "existing_archive": {"archive": True},
    "existing_streams_archive": {"archive": True},
    "existing_read_models": {"read_models": True},
    "existing_timers": {"timers": True},
}
"""Settings that go with others."""

ELSEWHERE = {
    "prefix": "name",
    "account": "env",
    "region": "env",
    "tags": "Tags.of",
    "reactions": "Reaction",
    "domain_name": "gateway",
    "domain_certificate": "gateway",
    "monthly_budget": "aws_budgets",
}
"""What an app says by other means, and a word of how."""


def test_there_is_a_value_for_every_setting() -> None:
    assert set(RULES) == set(VALUES)


@pytest.mark.parametrize("name", sorted(set(RULES) - set(ELSEWHERE) - {"api"}))
def test_a_setting_of_a_stage_is_taken_by_the_construct_under_its_own_name(name: str) -> None:
    options = {**NEEDS.get(name, {}), name: VALUES[name], "layouts": None} | (
        {"layouts": VALUES["layouts"]} if name == "layouts" else {}
    )
    stage = stage_of("shop", "dev", options)
    if name in EXISTING:
        chosen = stage.existing_tables[EXISTING[name]]
    else:
        chosen = stage.of_layouts[name] if name in stage.of_layouts else getattr(stage, name)
    assert plain(chosen) == VALUES[name]
    if name != "access_logs":
        assert chosen != getattr(stage_of("shop", "dev", {}), name, None)


def plain(value: Any) -> Any:
    """A value as JSON has it."""
    if isinstance(value, Mapping):
        return {key: plain(each) for key, each in value.items()}
    return [*value] if isinstance(value, tuple) else value


@pytest.mark.parametrize("name", sorted(ELSEWHERE))
def test_a_setting_that_an_app_says_by_other_means_is_refused_with_what_to_write(name: str) -> None:
    with pytest.raises(BadSetting) as refused:
        stage_of("shop", "dev", {name: VALUES[name]})
    assert str(refused.value).startswith(f"EventStore.{name} ")
    assert ELSEWHERE[name] in str(refused.value)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"pages_partitions": "4"}, "EventStore.pages_partitions must be a whole number from 1 to 10,000"),
        ({"existing_streams": TABLE_ARN}, "EventStore.existing_streams must be the ARN of a table's stream"),
        ({"layouts": 4}, "EventStore.layouts"),
        ({"layouts": "pages"}, "EventStore.layouts"),
        ({"layouts": [4]}, "EventStore.layouts"),
        ({"keep": "Visit:5"}, "EventStore.keep"),
        ({"kms_key": 4}, "EventStore.kms_key"),
        ({"colour": "red"}, "EventStore.colour is not a setting"),
        ({"name": "shop"}, "EventStore.name"),
        ({"of_layouts": {}}, "EventStore.of_layouts is not a setting"),
        ({"existing_tables": {}}, "EventStore.existing_tables is not a setting"),
    ],
)
def test_a_value_of_a_wrong_type_is_refused_by_its_name(options: dict[str, Any], words: str) -> None:
    with pytest.raises(BadSetting) as refused:
        stage_of("shop", "dev", options)
    assert str(refused.value).startswith(words)


def test_a_prefix_is_refused_by_the_construct_itself(
    sources: Sources, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Sources, "shipped", lambda: sources)
    monkeypatch.delenv(TARGET, raising=False)
    stack = Stack(App(), "Shop")
    with pytest.raises(BadSetting, match="EventStore.prefix"):
        EventStore(stack, "Events", prefix="pr-17")  # type: ignore[call-arg]
