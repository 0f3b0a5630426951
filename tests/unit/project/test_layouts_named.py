"""Nothing names a layout but its own room, the registry, and those who are its face: a fourth one is one line."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from epochal.layout.registry import layout_of, layouts

ROOT = Path(__file__).parents[3]
LIBRARY = ROOT / "layers" / "epochal" / "python"
LAYOUT = LIBRARY / "epochal" / "layout"

ROOMS = sorted(each.parent.name for each in LAYOUT.glob("*/__init__.py"))
"""Layouts, as the folders are called."""

MODULE = re.compile(rf"epochal\.(?:layout|feed\.histories)\.({'|'.join(ROOMS)})(?:\.|$)")
TABLES = {spec.kind for each in layouts() for spec in each.port.tables}
SETTINGS = {f"{kind}_table" for kind in TABLES} | {each.partitions for each in layouts()} - {"partitions"}
"""The first layout's partitions are called what all are called."""

STORE = "a store is its layout's face: users ask it in the layout's own terms"
ALLOWED = {
    "epochal/layout/registry.py": "the registry",
    "epochal/index/stored.py": "the index is stored as tips are, and this is where it says so",
    "epochal/store/streams.py": STORE,
    "epochal/store/tagged.py": STORE,
    "epochal/store/aggregates.py": STORE,
    "epochal/store/aggregate_pages.py": STORE,
    "epochal/store/dcb_events.py": STORE,
    "epochal/store/tag_listings.py": STORE,
    "epochal/store/tagged_listings.py": STORE,
    "epochal/store/dcb_importing.py": STORE,
    "epochal/store/tagged_importing.py": STORE,
    "epochal/store/projections.py": "states are keyed as the tagged events that they are folded from",
    "epochal/dynamo/stores.py": "users open a store by naming its tables",
    "epochal/aio/place.py": "likewise",
    "epochal/contrib/eventsourcing/factory.py": "an environment names the table of streams",
    "epochal/cdk/stages.py": "says how many partitions of streams a stage begins with that is kept",
    "epochal/cli/aggregates.py": "says which option names the tables of aggregates",
    "tests/support/stream_layouts.py": "says which layouts the contract of streams is asked of",
}


def files() -> Iterator[Path]:
    """All that is deployed, and what tests of every layout share."""
    yield from sorted(LIBRARY.glob("epochal/**/*.py"))
    for folder in ("lambdas", "stacks", "tests/support"):
        yield from sorted((ROOT / folder).glob("**/*.py"))
    yield ROOT / "app.py"


def place_of(path: Path) -> str:
    return str(path.relative_to(LIBRARY if path.is_relative_to(LIBRARY) else ROOT))


def named(code: str) -> set[str]:
    """Layouts, or their tables and settings, that a file names: what it imports, asks a deployment for, or spells."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(code)):
        match node:
            case ast.Import(names=names):
                modules = [each.name for each in names]
            case ast.ImportFrom(module=str(module), names=names):
                modules = [module, *(f"{module}.{each.name}" for each in names)]
            case ast.Constant(value=str(text)):
                modules = [text]
                found |= {text} & SETTINGS
            case ast.keyword(arg=str(name)):
                modules = []
                found |= {name} & SETTINGS
            case ast.Call(func=ast.Attribute(attr="table"), args=[ast.Constant(value=kind)]):
                modules = []
                found |= {kind} & TABLES
            case _:
                continue
        found |= {match[1] for module in modules if (match := MODULE.match(module))}
    return found


def is_own(path: Path, names: set[str]) -> bool:
    """Whether a file is in the room of the one layout that it names, or reads its events for the feed."""
    if path.is_relative_to(LAYOUT) and path.parent != LAYOUT:
        return not (names & set(ROOMS)) - {path.relative_to(LAYOUT).parts[0]}
    return path.parent == LIBRARY / "epochal" / "feed" / "histories"


def test_no_file_names_a_layout_but_its_own_room_the_registry_and_its_face() -> None:
    naming = {path: named(path.read_text()) for path in files()}
    foreign = {place_of(path): names for path, names in naming.items() if names and not is_own(path, names)}
    assert {place: names for place, names in foreign.items() if place not in ALLOWED} == {}


@pytest.mark.parametrize("place", ALLOWED)
def test_each_place_that_may_name_a_layout_does(place: str) -> None:
    (path,) = (each for each in files() if place_of(each) == place)
    assert named(path.read_text())


@pytest.mark.parametrize(
    "code",
    [
        "import epochal.layout.tips.items",
        "from epochal.layout import journal",
        "from epochal.layout.dcb.tables import TAGS",
        "def f():\n    from epochal.feed.histories.tips import open_history",
        "import_module('epochal.layout.tips.port')",
        "settings.table('snapshot')",
        "Settings.of(tips_table='t')",
        "variable('dcb_partitions')",
    ],
)
def test_a_file_that_names_one_is_found_out(code: str) -> None:
    assert named(code)


def test_what_all_layouts_have_in_common_names_none() -> None:
    assert not named(
        "from epochal.layout.port import Port\nfrom epochal.feed.histories.streams import StreamHistory"
    )


def test_an_example_that_names_a_partition_names_one_of_streams() -> None:
    """A reaction's function that is asked about partition 0 looks at tips, where most stores have nothing."""
    pages = [
        *(ROOT / "docs").rglob("*.md"),
        *LIBRARY.joinpath("epochal", "cli").rglob("*.py"),
        ROOT / "README.md",
    ]
    named = {
        (page.name, int(number))
        for page in pages
        if "decisions" not in page.parts
        for number in re.findall(r'"partition": (\d+)|/feed/(\d+)', page.read_text())
        for number in number
        if number
    }
    assert len(named) > 1
    assert {each for each in named if layout_of(each[1]).name != "pages"} == set()
