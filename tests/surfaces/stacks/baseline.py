"""The templates of today, whole, so that a change of the code shows what it changes in what is deployed.

    CDK_VALIDATION=false python -m tests.surfaces.stacks.baseline

writes them anew, in some minutes; read the difference before you commit it.

The default stage and an app with every construct are kept whole. Every other stage is kept as its difference from the
default, a JSON merge patch (RFC 7396: null removes a member), which shows what each setting changes. Hashes of assets
are masked, since they change with every line of code. `golden` keeps what releases deployed, and of that only what an
update can be refused for.
"""

from __future__ import annotations

import json
import os
import re
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from stacks.deployment import ACCOUNT, REGION
from tests.support.account import PLACE
from tests.surfaces.stacks.constructs import constructs_of
from tests.surfaces.stacks.templates import (
    CHOSEN,
    SPARSE,
    Synthesise,
    library_in,
    sources_in,
    synthesiser,
)
from tests.surfaces.stacks.test_updates import ALONE, MOVES

KEPT: Final = Path(__file__).with_name("baseline")
HERE: Final = {REGION: PLACE["AWS::Region"], ACCOUNT: PLACE["AWS::AccountId"]}
"""The environment in which stages are synthesised."""

Json = dict[str, Any]

_HASH: Final = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """A deployment whose templates are kept.

    Attributes:
        stage: its stage.
        target: `aws` or `embedded`.
        settings: what the stage chooses.
        base: the name of the deployment from which its difference is kept.
        slow: whether no other test of `make test` synthesises it, so that it is left to `make proof`.
    """

    stage: str
    target: str = "aws"
    settings: Mapping[str, Any] = field(default_factory=dict)
    base: str = "dev"
    slow: bool = False


def _moves() -> dict[str, Choice]:
    """A choice for each settings between which a stage is moved in `test_updates`, each once."""
    named = dict[str, tuple[str, Mapping[str, Any]]]()
    quick = set[str]()
    for move, (before, now) in MOVES.items():
        for name, settings in ((move, now), (f"{move}, before", before)):
            if not settings:
                continue
            text = json.dumps(settings, sort_keys=True)
            named.setdefault(text, (name, settings))
            if move not in ALONE:
                quick.add(text)
    return {
        f"prod, {name}": Choice(stage="prod", settings=settings, base="prod", slow=text not in quick)
        for text, (name, settings) in named.items()
    }


CHOICES: Final[Mapping[str, Choice]] = {
    "dev": Choice(stage="dev", base=""),
    "prod": Choice(stage="prod"),
    "staging": Choice(stage="staging"),
    "dev, embedded": Choice(stage="dev", target="embedded"),
    "dev, every setting": Choice(stage="dev", settings=CHOSEN),
    "prod, one layout": Choice(stage="prod", settings=SPARSE, base="prod"),
    **_moves(),
}
"""By the name of their file."""

CONSTRUCTS: Final = "constructs"
"""The file of an app with every construct."""


def path_of(name: str) -> Path:
    """Where the templates of a deployment are kept."""
    file = re.sub(r"[^\w-]+", "-", name.replace("'", ""))
    return KEPT / f"{file}.json"


def stage_of(synthesise: Synthesise, name: str) -> Json:
    """What is kept of a stage, as it is today."""
    choice = CHOICES[name]
    if not choice.base:
        return _templates(synthesise, choice)
    base = CHOICES[choice.base]
    before = json.loads(
        json.dumps(_templates(synthesise, base)).replace(f"epochal-{base.stage}", f"epochal-{choice.stage}")
    )
    return {
        "base": choice.base,
        "stage": choice.stage,
        "target": choice.target,
        "settings": dict(choice.settings),
        "patch": merge_patch(before, _templates(synthesise, choice)),
    }


def _templates(synthesise: Synthesise, choice: Choice) -> Json:
    return masked(synthesise(choice.stage, choice.target, **choice.settings).in_order())


def masked(templates: Mapping[str, Json]) -> Json:
    """Templates without the hashes of assets."""
    found: Json = json.loads(_HASH.sub("<hash>", json.dumps(templates)))
    return found


def merge_patch(before: Json, after: Json) -> Json:
    """What makes `after` of `before`, as RFC 7396 has it."""
    patch: Json = {name: None for name in before if name not in after}
    for name, value in after.items():
        if name not in before:
            patch[name] = value
        elif isinstance(value, dict) and isinstance(before[name], dict):
            if inner := merge_patch(before[name], value):
                patch[name] = inner
        elif value != before[name]:
            patch[name] = value
    return patch


def text_of(kept: Json) -> str:
    """The text of a file."""
    return json.dumps(kept, indent=1, sort_keys=True, ensure_ascii=False) + "\n"


def main() -> None:
    """Write them down."""
    os.environ.update(HERE)
    for path in KEPT.glob("*.json"):
        path.unlink()
    KEPT.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        sources = sources_in(library_in(Path(folder)))
        synthesise = synthesiser(sources)
        for name in CHOICES:
            path_of(name).write_text(text_of(stage_of(synthesise, name)))
        path_of(CONSTRUCTS).write_text(text_of(masked(constructs_of(sources))))


if __name__ == "__main__":
    main()
