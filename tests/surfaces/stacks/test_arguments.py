"""Arguments of constructs: a wrong name or value is refused with the argument's name, its rule and the value."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from aws_cdk import App, Duration, Stack
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_sqs as sqs

from epochal.cdk import EventStore, Network, Reaction
from epochal.cdk.rules import BadSetting
from epochal.cdk.sources import Sources
from epochal.cdk.targets import TARGET
from epochal.contrib.lake.cdk import Lake
from epochal.contrib.processes.cdk import Process
from epochal.contrib.publish.cdk import Publish, Webhook
from epochal.contrib.subjects.cdk import SubjectKeys

Make = Callable[..., object]


@pytest.fixture(autouse=True)
def shipped(sources: Sources, monkeypatch: pytest.MonkeyPatch) -> None:
    """A line each for functions and wheels."""
    monkeypatch.setattr(Sources, "shipped", lambda: sources)
    monkeypatch.delenv(TARGET, raising=False)


@pytest.fixture(scope="module")
def shop() -> EventStore:
    return EventStore(Stack(App(), "Shop"), "Events", api=None, watch=False)


@pytest.fixture
def valid(shop: EventStore, sources: Sources) -> dict[str, tuple[Make, dict[str, Any]]]:
    """Each construct with arguments that it takes."""
    stack = Stack(App(), "Other")
    entry = sources.root / "board"
    usual: dict[str, Any] = {"scope": stack, "id_": "Mine", "store": shop}
    return {
        "EventStore": (EventStore, {"scope": stack, "id_": "Mine", "api": None, "watch": False}),
        "EventStore.from_name": (EventStore.from_name, {"scope": stack, "id_": "Mine", "name": "kept"}),
        "Reaction": (Reaction, {**usual, "entry": entry, "name": "board"}),
        "Process": (Process, {**usual, "entry": entry, "name": "board"}),
        "Publish": (Publish, {**usual, "to": "https://shop.example/events"}),
        "Webhook": (Webhook, {"address": "https://shop.example/events"}),
        "Lake": (Lake, usual),
        "Network": (Network, {"vpc": ec2.Vpc(stack, "Vpc")}),
        "SubjectKeys": (SubjectKeys, usual),
    }


def refusal(valid: dict[str, tuple[Make, dict[str, Any]]], construct: str, **arguments: Any) -> str:
    """The error of a construct that gets these arguments beside valid ones; `...` leaves an argument out."""
    make, others = valid[construct]
    given = {name: value for name, value in {**others, **arguments}.items() if value is not ...}
    with pytest.raises(BadSetting) as refused:
        make(**given)
    return str(refused.value)


@pytest.mark.parametrize(
    ("construct", "name", "nearest"),
    [
        ("Reaction", "timeout", "timeout_seconds"),
        ("Reaction", "allow", "permissions"),
        ("Reaction", "memory", "memory_mb"),
        ("Process", "handlers", "handler"),
        ("Process", "timeout", "timeout_seconds"),
        ("Publish", "category", "categories"),
        ("Webhook", "sign", "sign_with"),
        ("Lake", "buffer", "buffer_mb"),
        ("SubjectKeys", "stores", "store"),
        ("EventStore", "retian", "retain"),
        ("EventStore", "partitions", "pages_partitions"),
        ("EventStore", "presets", "preset"),
        ("EventStore.from_name", "pyton", "python"),
    ],
)
def test_an_argument_that_is_none_is_refused_with_the_nearest_name(
    valid: dict[str, tuple[Make, dict[str, Any]]], construct: str, name: str, nearest: str
) -> None:
    words = refusal(valid, construct, **{name: 60})
    assert words.startswith(f"{construct}.{name} is not an argument; ")
    assert nearest in words
    assert name == "allow" or f"did you mean {nearest}" in words or f", {nearest}" in words


@pytest.mark.parametrize(
    ("construct", "name"),
    [
        ("Reaction", "store"),
        ("Reaction", "entry"),
        ("Process", "entry"),
        ("Publish", "to"),
        ("Webhook", "address"),
        ("Lake", "store"),
        ("SubjectKeys", "store"),
        ("EventStore", "scope"),
        ("EventStore.from_name", "name"),
    ],
)
def test_an_argument_that_is_missing_is_named(
    valid: dict[str, tuple[Make, dict[str, Any]]], construct: str, name: str
) -> None:
    assert refusal(valid, construct, **{name: ...}).startswith(f"{construct}.{name} must be given")


WRONG: list[tuple[str, str, Any, str]] = [
    *(
        (construct, name, value, rule)
        for construct in ("Reaction", "Process")
        for name, value, rule in [
            ("timeout_seconds", "60", "must be a whole number from 10 to 900, not '60'"),
            (
                "timeout_seconds",
                Duration.minutes(1),
                "must be a whole number from 10 to 900, not <aws_cdk.Duration",
            ),
            ("timeout_seconds", 5, "must be a whole number from 10 to 900, not 5"),
            ("memory_mb", 64, "must be a whole number from 128 to 10,240, not 64"),
            ("batch_size", 11, "must be a whole number from 1 to 10, not 11"),
            ("max_receives", 0, "must be a whole number from 1 to 1,000, not 0"),
            (
                "schedule_minutes",
                Duration.minutes(15),
                "must be a whole number from 1 to 1,440, not <aws_cdk.Duration",
            ),
            ("reserved_concurrency", True, "must be a whole number from 1 to 100,000, not True"),
            ("entry", 4, "must be a folder, not 4"),
            ("handler", None, "must be module:"),
            ("handler", "board", "must be module:"),
            ("name", "departures board", "must be letters, digits and hyphens, not 'departures board'"),
            ("name", 4, "must be letters, digits and hyphens, not 4"),
            ("environment", {"SIZE": 4}, "must be text, not 4"),
            ("environment", ["SIZE=4"], "must be an object, not ['SIZE=4']"),
            ("permissions", [{"actions": ["ses:SendEmail"]}], "must be a list of iam.PolicyStatement, not "),
            ("permissions", "ses:SendEmail", "must be a list of iam.PolicyStatement, not 'ses:SendEmail'"),
            ("read_models", "board", "must be a list of names of read models, not 'board'"),
            ("read_models", ["a board"], "must be a list of names of read models, not 'a board'"),
            ("more_layers", ["layer"], "must be a list of layers of aws_lambda, not 'layer'"),
            ("network", "vpc-1", "must be a Network, not 'vpc-1'"),
            ("python", 3.13, "must be one of 3.11, 3.12, 3.13, 3.14, not 3.13"),
            ("architecture", "arm64", "must be an Architecture of aws_lambda, not 'arm64'"),
            (
                "store",
                "epochal-prod",
                "must be an EventStore, or EventStore.from_name(…), not 'epochal-prod'",
            ),
            ("scope", None, "must be a stack, or a construct in it, not None"),
            ("id_", 4, "must be text, not 4"),
        ]
    ),
    ("Network", "vpc", "vpc-1", "must be an ec2.Vpc, or ec2.Vpc.from_lookup(…), not 'vpc-1'"),
    ("Network", "vpc", None, "must be an ec2.Vpc, or ec2.Vpc.from_lookup(…), not None"),
    ("Network", "subnets", "private", "must be an ec2.SubnetSelection, not 'private'"),
    ("Network", "security_groups", "sg-1", "must be a list of ec2.SecurityGroup, not 'sg-1'"),
    ("Network", "security_groups", ["sg-1"], "must be a list of ec2.SecurityGroup, not 'sg-1'"),
    ("EventStore", "scope", "Shop", "must be a stack, or a construct in it, not 'Shop'"),
    ("EventStore", "name", 4, "must be 3 to 26 lower-case letters, digits and hyphens, not 4"),
    ("EventStore", "preset", ["prod"], "must be one of dev, staging, prod, not ['prod']"),
    ("EventStore", "preset", "test", "must be one of dev, staging, prod, not 'test'"),
    ("EventStore", "api", "gatway", "must be one of gateway, urls, not 'gatway'"),
    ("EventStore", "watch", "yes", "must be true or false, not 'yes'"),
    ("EventStore", "python", 3.13, "must be one of 3.11, 3.12, 3.13, 3.14, not 3.13"),
    ("EventStore", "architecture", "arm64", "must be an Architecture of aws_lambda, not 'arm64'"),
    ("EventStore", "log_days", "7", "must be one of 1, 3, "),
    (
        "EventStore.from_name",
        "name",
        None,
        "must be the name of a store, such as shop-events or epochal-prod, not None",
    ),
    (
        "Publish",
        "to",
        4,
        "must be a bus, a queue, a topic, a stream, a delivery stream or an address, not int",
    ),
    ("Publish", "types", "Placed", "must be a list of names, not 'Placed'"),
    ("Publish", "types", [4], "must be a list of names, not 4"),
    ("Publish", "message_bytes", "1 MB", "must be a whole number from 1"),
    ("Publish", "as_rows", "yes", "must be true or false, not 'yes'"),
    ("Publish", "source", 4, "must be text, not 4"),
    ("Webhook", "address", None, "must be an https:// address, not None"),
    ("Webhook", "sign_with", "secret", "must be a secret of aws_secretsmanager, not 'secret'"),
    ("Lake", "buffer_seconds", "300", "must be a whole number from 60 to 900, not '300'"),
    ("Lake", "buffer_mb", 300, "must be a whole number from 64 to 128, not 300"),
    ("Lake", "query_gb", None, "must be a whole number from 1"),
    ("Lake", "expire_days", 0, "must be a whole number from 1"),
    ("Lake", "categories", "Order", "must be a list of names, not 'Order'"),
    ("SubjectKeys", "store", None, "must be an EventStore, or EventStore.from_name(…), not None"),
]


@pytest.mark.parametrize(("construct", "name", "value", "rule"), WRONG)
def test_a_wrong_value_is_refused_with_its_rule(
    valid: dict[str, tuple[Make, dict[str, Any]]], construct: str, name: str, value: Any, rule: str
) -> None:
    words = refusal(valid, construct, **{name: value})
    assert words.startswith(f"{construct}.{name} {rule}"), words


def test_what_is_given_by_position_though_it_has_a_name_is_refused(
    shop: EventStore, sources: Sources
) -> None:
    with pytest.raises(BadSetting, match=r"Reaction takes scope and id_ by position, and all others by name"):
        Reaction(Stack(App(), "Other"), "Board", shop, sources.root / "board")  # type: ignore[misc]


def test_a_queue_is_no_scope_of_a_store() -> None:
    stack = Stack(App(), "Other")
    EventStore(sqs.Queue(stack, "Queue"), "Events", api=None, watch=False)  # any construct is one
    with pytest.raises(BadSetting, match=r"EventStore\.scope must be a stack"):
        EventStore(Path(), "Events")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"vpcs": None}, "Network.vpcs is not an argument; did you mean vpc?"),
        ({}, "Network.vpc must be given"),
    ],
)
def test_a_network_refuses_unknown_arguments_and_a_missing_one(arguments: dict[str, Any], words: str) -> None:
    with pytest.raises(BadSetting) as refused:
        Network(**arguments)
    assert str(refused.value).startswith(words)


def test_what_a_network_takes_by_position_is_refused() -> None:
    with pytest.raises(BadSetting, match="Network takes all arguments by name"):
        Network(ec2.Vpc(Stack(App(), "Other"), "Vpc"))  # type: ignore[misc]
