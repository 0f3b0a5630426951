"""Templates of releases, kept so that the next ones can be judged against what people have deployed.

    python -m tests.surfaces.stacks.golden      writes today's as those of this version; do it when it is released

A file for each stage and one for an app with every construct, with a line for each resource. Of most resources it has
what an update can be refused for: what they are known by, and what only a new one can have otherwise.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

from epochal.cdk.sources import Sources
from tests.support.account import BUCKET, STAGE, TABLE, create_only, key_of
from tests.surfaces.stacks.constructs import constructs_of
from tests.surfaces.stacks.templates import Synthesise, library_in, sources_in, synthesiser

GOLDEN: Final = Path(__file__).with_name("golden")

STAGES: Final[Mapping[str, tuple[str, Mapping[str, Any]]]] = {
    "prod": ("prod", {"reactions": {"board": {"entry": "board"}}}),
    "staging": (
        "staging",
        {
            "api": "urls",
            "archive": True,
            "billing": "provisioned",
            "max_read_units": 20,
            "max_write_units": 30,
            "read_models": True,
        },
    ),
    "everything": (
        "prod",
        {
            "account": "123456789012",
            "archive": True,
            "feed_kinesis_shards": 2,
            "read_models": True,
            "region": "eu-west-1",
            "replica_region": "eu-central-1",
            "timers": True,
        },
    ),
}
"""By the name of their file: the stage, and what it chooses."""

CONSTRUCTS: Final = "constructs"
"""The file of an app with every construct."""

WHOLE: Final = (TABLE, BUCKET, "AWS::Lambda::EventSourceMapping", "AWS::SSM::Parameter")
"""What is kept as it is: it holds data, a service has rules of its own for it, or other stacks read it."""

Templates = dict[str, dict[str, Any]]


def kept() -> dict[tuple[str, str], Templates]:
    """What each release deployed, by its version and the name of the stage."""
    found = sorted(GOLDEN.glob("*/*.json"))
    return {(each.parent.name, each.stem): json.loads(each.read_text()) for each in found}


def today(synthesise: Synthesise, sources: Sources, name: str) -> Templates:
    """The templates of what is kept by that name, as they are made now."""
    if name == CONSTRUCTS:
        return _kept_of(constructs_of(sources))
    stage, settings = STAGES[name]
    return _kept_of(synthesise(stage, **settings).in_order())


def _kept_of(templates: Mapping[str, dict[str, Any]]) -> Templates:
    """What an update can be refused for."""
    return {
        stack: {
            "Parameters": template.get("Parameters", {}),
            "Resources": {id_: _judged(each) for id_, each in template["Resources"].items()},
            "Outputs": template.get("Outputs", {}),
        }
        for stack, template in templates.items()
    }


def _judged(resource: Mapping[str, Any]) -> dict[str, Any]:
    type_, properties = resource["Type"], dict(resource.get("Properties", {}))
    if type_ not in WHOLE and not type_.startswith("Custom::"):
        judged = {path[0] for path in create_only(type_)} | set(_known_by(type_, properties))
        properties = {name: value for name, value in properties.items() if name in judged}
    if type_ == STAGE:
        properties |= {"RouteSettings": resource["Properties"].get("RouteSettings", {})}
    if type_ == "AWS::Lambda::LayerVersion":
        properties = {}  # where code is to be found; there may be any number of versions
    policies = {name: resource[name] for name in ("DeletionPolicy",) if name in resource}
    return {"Type": type_, **policies, "Properties": properties}


def _known_by(type_: str, properties: dict[str, Any]) -> Iterator[str]:
    whole = key_of(type_, properties)
    yield from (name for name in properties if key_of(type_, {**properties, name: None}) != whole)


def _lines(templates: Templates) -> Iterator[str]:
    """JSON, with a line for each entry of a section."""
    for stack, template in templates.items():
        sections = []
        for section, entries in template.items():
            rows = [
                f"   {json.dumps(id_)}: {json.dumps(each, sort_keys=True)}"
                for id_, each in sorted(entries.items())
            ]
            sections.append(
                f"  {json.dumps(section)}: {{\n" + ",\n".join(rows) + "\n  }"
                if rows
                else f'  "{section}": {{}}'
            )
        yield f" {json.dumps(stack)}: {{\n" + ",\n".join(sections) + "\n }"


def main() -> None:
    """Write them down."""
    with tempfile.TemporaryDirectory() as folder:
        sources = sources_in(library_in(Path(folder)))
        synthesise = synthesiser(sources)
        for name in (*STAGES, CONSTRUCTS):
            found = GOLDEN / version("epochal") / f"{name}.json"
            found.parent.mkdir(parents=True, exist_ok=True)
            found.write_text("{\n" + ",\n".join(_lines(today(synthesise, sources, name))) + "\n}\n")


if __name__ == "__main__":
    main()
