"""One synthesis, opened for looking: templates by what their stack is for."""

from __future__ import annotations

import json
from collections.abc import Callable
from copy import deepcopy
from functools import cache, cached_property
from pathlib import Path
from typing import Any, Final

from aws_cdk import App, Stack
from aws_cdk.assertions import Template

from epochal.cdk.parts.bytecode import prepared
from epochal.cdk.parts.layers import Platform, checking
from epochal.cdk.sources import Sources
from stacks.deployment import deployment

ROOT = Path(__file__).resolve().parents[3]

Resource = dict[str, Any]
Synthesise = Callable[..., "Deployment"]
"""`synthesise("prod", pages_partitions=8)`: that stage with these settings changed."""


CHOSEN: Final[dict[str, Any]] = {
    "access_logs": False,
    "aggregate_types": ["order", "user-account"],
    "archive": True,
    "burst": 20,
    "consistent_reads": False,
    "dcb_partitions": 3,
    "event_schemas": "events.json",
    "feed_wait_seconds": 0,
    "feed_batch_size": 200,
    "feed_window_seconds": 10,
    "journal_keys": "rust",
    "journal_partitions": 5,
    "journal_serializer": "java",
    "journal_shards": 8,
    "keep": ["Visit:100", "Log:30d"],
    "jwt_audience": ["epochal"],
    "jwt_issuer": "https://issuer.example/pool",
    "jwt_scopes": {"read": ["api/read", "api/all"], "append": ["api/write", "api/all"]},
    "log_level": "DEBUG",
    "max_read_units": 70,
    "max_upload_bytes": 1_000,
    "max_write_units": 30,
    "pages_partitions": 2,
    "tips_partitions": 7,
    "read_models": True,
    "requests_per_second": 40,
    "reserved_concurrency": {"feed": 50, "indexer": 5},
    "retries": 0,
    "route_limits": {"POST /bodies": 3, "GET /feed": 2},
    "service": "shop",
    "snapshot_copies": 3,
    "snapshot_ttl_days": 30,
    "state_inline_bytes": 0,
    "tagged_everything": True,
    "tagged_types": ["NameClaimed"],
    "timers": True,
    "tags": {"team": "flights"},
    "type_heads": True,
    "unchecked_events": "refuse",
    "write_shards": 4,
}
"""What a stage may choose, otherwise than by default. A synthesis takes seconds: what a test sees in this one needs
none of its own.
"""


SPARSE: Final[dict[str, Any]] = {
    "billing": "provisioned",
    "layouts": ["pages"],
    "max_read_units": 20,
    "max_write_units": 30,
    "min_read_units": 2,
    "min_write_units": 3,
    "reactions": {"board": {"entry": "board"}},
}
"""A stage with one layout, and with what else no other synthesis has."""


class Deployment:
    """The templates of one synthesis, by what the stack is for: `store`, `feed`, `api`, `watch`."""

    def __init__(self, app: App) -> None:
        self.directory = app.outdir
        stacks = [child for child in app.node.children if isinstance(child, Stack)]
        self.stacks = {stack.stack_name.rpartition("-")[2]: stack for stack in stacks}
        app.synth()
        # As files: a question to Node takes longer than most tests.
        self._texts = {
            kind: (Path(app.outdir) / stack.template_file).read_text() for kind, stack in self.stacks.items()
        }
        self._resources = cache(self._resources_of)
        self._asked = cache(lambda kind: Template.from_string(self._texts[kind]))

    def __getitem__(self, kind: str) -> Template:
        return self._asked(kind)

    def template(self, kind: str) -> dict[str, Any]:
        """What `cdk synth` writes, anew for each that asks."""
        found: dict[str, Any] = json.loads(self._texts[kind])
        return found

    def in_order(self) -> dict[str, dict[str, Any]]:
        """Templates by the names of their stacks, in the order in which these are deployed."""
        return {name: self.template(kind) for name, kind in self._order.items()}

    @cached_property
    def _order(self) -> dict[str, str]:
        waiting, found = dict(self.stacks), dict[str, str]()
        while waiting:
            for kind, stack in list(waiting.items()):
                if found.keys() >= {each.stack_name for each in stack.dependencies}:
                    found[stack.stack_name] = kind
                    del waiting[kind]
        return found

    def of_type(self, kind: str, type_: str) -> dict[str, Resource]:
        """Resources of one type in one stack, by logical id."""
        return {id_: deepcopy(each) for id_, each in self._resources(kind).items() if each["Type"] == type_}

    def named(self, kind: str, type_: str, name: str) -> Resource:
        """The one resource of `type_` whose logical id begins with `name`."""
        (found,) = [each for id_, each in self.of_type(kind, type_).items() if id_.startswith(name)]
        return found

    def resources(self) -> list[Resource]:
        """Everything in every stack."""
        return [deepcopy(each) for kind in self.stacks for each in self._resources(kind).values()]

    def _resources_of(self, kind: str) -> dict[str, Resource]:
        found: dict[str, Resource] = self.template(kind)["Resources"]
        return found


def stream_told(deployment: Deployment, reference: dict[str, str]) -> str:
    """The logical id of the table whose stream the stack `feed` refers to: one parameter tells it, the other asks."""
    asked = deployment.template("feed")["Parameters"][reference["Ref"]]
    assert asked["Type"] == "AWS::SSM::Parameter::Value<String>"
    (told,) = [
        each["Properties"]["Value"]
        for each in deployment.of_type("store", "AWS::SSM::Parameter").values()
        if each["Properties"]["Name"] == asked["Default"]
    ]
    table, attribute = told["Fn::GetAtt"]
    assert attribute == "StreamArn"
    return str(table)


def context_of_repository() -> dict[str, Any]:
    """The context of cdk.json, with the feature flags that templates depend on."""
    context: dict[str, Any] = json.loads((ROOT / "cdk.json").read_text())["context"]
    return context


def library_in(place: Path) -> Path:
    """`place`, with a line of a library in it."""
    (place / "epochal" / "python" / "epochal").mkdir(parents=True)
    (place / "epochal" / "python" / "epochal" / "__init__.py").write_text("")
    return place


def sources_in(place: Path) -> Sources:
    """The library in `place / "epochal"`, which is there; a line each for functions and wheels."""
    for name in (
        "append",
        "replay",
        "feed",
        "indexer",
        "auditor",
        "publisher",
        "waker",
        "guard",
        "timers",
    ):
        (place / "lambdas" / name).mkdir(parents=True)
        (place / "lambdas" / name / "handler.py").write_text(f"handler = {name!r}\n")

    (place / "lambdas" / "timers" / "arming.py").write_text("handler = print\n")
    (place / "events.json").write_text(json.dumps({"$defs": {"Boarded": {"type": "object"}}}))
    (place / "board").mkdir()
    (place / "board" / "handler.py").write_text("handler = print\n")

    @cache
    def vendor(platform: Platform) -> Path:
        folder = place / platform.name
        (folder / "python").mkdir(parents=True, exist_ok=True)
        (folder / "python" / "wheels.py").write_text(f"FOR = {platform.name!r}\n")
        return folder

    @cache
    def sdk(platform: Platform) -> Path:
        folder = place / f"sdk-{platform.name}"
        (folder / "python").mkdir(parents=True, exist_ok=True)
        (folder / "python" / "boto3.py").write_text("")
        return folder

    @cache
    def library(python: str) -> Path:
        return prepared(place / "epochal", python, place / "layers")

    return Sources(
        library=library,
        vendor=vendor,
        sdk=sdk,
        packages=lambda _, platform: vendor(platform),
        layouts=lambda _, platform: vendor(platform),
        schemas=lambda document, platform: checking(document, platform, place / "layers"),
        lambdas=place / "lambdas",
        root=place,
    )


def synthesiser(sources: Sources) -> Synthesise:
    """Synthesises each stage with each choice of settings once."""

    @cache
    def once(stage: str, target: str, settings: str) -> Deployment:
        context = {
            **context_of_repository(),
            "stage": stage,
            "target": target,
            "stages": {stage: json.loads(settings)},
        }
        app = App(context=context, tree_metadata=False)
        deployment(app, sources)
        return Deployment(app)

    def synthesise(stage: str = "dev", target: str = "aws", **settings: Any) -> Deployment:
        return once(stage, target, json.dumps(settings, sort_keys=True))

    return synthesise
