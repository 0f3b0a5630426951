"""The core, the feed, the service and the tools know no layout of another library: its plug-in alone names it.

A plug-in is all that belongs to one such library: modules, tables, settings, and the words that its users know.
What named a plug-in when this guard was written is in `OFFENDERS`, which only shrinks: what stops is taken off.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

import pytest

from epochal.layout.registry import layout_of

ROOT = Path(__file__).parents[2]
LIBRARY = ROOT / "layers" / "epochal" / "python"


@dataclass(frozen=True, kw_only=True, eq=False)
class Plugin:
    """What belongs to one layout.

    Attributes:
        home: files and folders of the library that are its own.
        words: what an identifier, or a text that is no docstring, spells of it; of a name in capitals and underscores
            each part is a word.
        exact: names and texts that are its own as a whole.
    """

    home: tuple[str, ...]
    words: str = ""
    exact: frozenset[str] = frozenset()

    @cached_property
    def modules(self) -> re.Pattern[str]:
        """Modules of its home."""
        names = (re.escape(each.removesuffix(".py").rstrip("/").replace("/", ".")) for each in self.home)
        return re.compile(rf"epochal\.(?:{'|'.join(names)})(?:[.:]|$)")

    def owns(self, place: str) -> bool:
        """Whether a file is its own."""
        return any(
            place == f"epochal/{each}" or (each[-1] == "/" and place.startswith(f"epochal/{each}"))
            for each in self.home
        )


PLUGINS = {
    "event_store_adapter": Plugin(
        home=("contrib/event_store_adapter/",),
        words=r"aggregates?|journal",
        exact=frozenset({"snapshot_table", "snapshot_copies", "snapshot_ttl_days"}),
    ),
    "sekiban": Plugin(
        home=("contrib/sekiban/",),
        words=r"sekiban|dcb|projections?[ _-]?(?:states?|missing|not found|behind)",
        exact=frozenset(
            {
                "PROJECTIONS",
                "events_table",
                "tags_table",
                "StoredState",
                "write_shards",
                "consistent_reads",
                "state_inline_bytes",
                "states_prefix",
            }
        ),
    ),
    "equinox": Plugin(
        home=("contrib/equinox/",),
        # That a Tip's events are calved the index knows as well, which is stored so.
        words=r"equinox|tips|calving",
        exact=frozenset({"archive_table"}),
    ),
}
"""The layouts of others, by the libraries that they are of."""

PAGES = Plugin(
    home=("pages/", "care/partial_replication.py", "care/torn_pages.py", "care/torn_keys.py"),
    exact=frozenset({"streams_table", "pages_partitions"}),
)
"""The layout that is Epochal's own."""

NATIVE = re.compile(r"contrib\.eventsourcing|PRAGMA journal_mode")
"""What spells a plug-in's word and is not its: events with tags are Epochal's own, too."""

OFFENDERS: dict[str, tuple[str, str]] = {
    "epochal/plugins.py": ("equinox event_store_adapter sekiban", "the list of what ships"),
    "epochal/cdk/store_options.py": (
        "equinox event_store_adapter sekiban",
        "type checkers know the arguments of a store, whose names are those of the settings in cdk.json",
    ),
}
"""Files that name a plug-in today, with the plug-ins, and why."""

STORE = "a store is its layout's face: users ask it in the layout's own terms"
FACES = {
    "epochal/plugins.py": "the list of what ships",
    "epochal/store/plugin.py": "the plug-in of pages",
    "epochal/store/streams.py": STORE,
    "epochal/store/appending.py": STORE,
    "epochal/store/encoding.py": "an event with tags has a label of theirs",
    "epochal/store/tagged_pages.py": STORE,
    "epochal/store/listings.py": STORE,
    "epochal/store/tagged_importer.py": STORE,
    "epochal/store/seals.py": "a seal is made of what a token names of a page",
    "epochal/dynamo/stores.py": "users open a store by naming its tables",
    "epochal/contrib/eventsourcing/__init__.py": "an environment names the table of streams",
    "epochal/contrib/console/overview.py": "the stamp of an append of pages says when it was made",
    "epochal/cli/stats.py": "a command tells what a replica of the table of streams has in part",
    "epochal/cdk/store_options.py": "type checkers know the arguments of a store by their names",
    "epochal/cdk/stages.py": "says how many partitions of streams a stage begins with that is kept",
    "tests/support/stream_layouts.py": "says which layouts the contract of streams is asked of",
}
"""Files that name pages, and why: all others know a layout of streams by its protocol."""


def files() -> Iterator[Path]:
    """All that is deployed."""
    yield from sorted(LIBRARY.glob("epochal/**/*.py"))
    for folder in ("lambdas", "stacks"):
        yield from sorted((ROOT / folder).glob("**/*.py"))
    yield ROOT / "app.py"


def shared() -> Iterator[Path]:
    """What tests of every layout share."""
    yield from sorted((ROOT / "tests" / "support").glob("**/*.py"))


def place_of(path: Path) -> str:
    return str(path.relative_to(LIBRARY if path.is_relative_to(LIBRARY) else ROOT))


@cache
def spelled(code: str) -> frozenset[str]:
    """Every name that a file imports, defines, asks for or passes, and every text that is no docstring."""
    return frozenset(_spelled(ast.parse(code)))


def _spelled(tree: ast.Module) -> Iterator[str]:
    nodes = [*ast.walk(tree)]
    documents = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    for node in nodes:
        match node:
            case ast.Call(func=ast.Attribute(attr="table"), args=[ast.Constant(value=str(kind))]):
                yield f"{kind.replace('-', '_')}_table"
            case ast.Import(names=names):
                yield from (each.name for each in names)
            case ast.ImportFrom(module=str(module), names=names):
                yield from (f"{module}.{each.name}" for each in names)
                yield from (each.name for each in names)
            case ast.Constant(value=str(text)) if id(node) not in documents:
                yield text
            case (
                ast.Name(id=name) | ast.Attribute(attr=name) | ast.arg(arg=name) | ast.keyword(arg=str(name))
            ):
                yield name
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield name


@cache
def belongs(text: str, plugin: Plugin) -> bool:
    """Whether a name or a text is a plug-in's."""
    if text in plugin.exact or plugin.modules.match(text):
        return True
    if not plugin.words or NATIVE.match(text):
        return False
    # `AggregateTypes` and `AGGREGATE_TYPES` are two words each, as `aggregate types` is.
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|_", " ", text)
    return re.search(rf"\b(?:{plugin.words})\b", words, re.IGNORECASE) is not None


def named(code: str) -> set[str]:
    """The plug-ins that a file names."""
    return {name for name, plugin in PLUGINS.items() if any(belongs(text, plugin) for text in spelled(code))}


def foreign(path: Path) -> set[str]:
    """The plug-ins that a file names and that are not its own."""
    place = place_of(path)
    if place.startswith(
        ("epochal/contrib/eventsourcing/", "epochal/contrib/transfer/importing/databases.py")
    ):
        return set()  # their words are those of further libraries
    return {name for name in named(path.read_text()) if not PLUGINS[name].owns(place)}


@pytest.mark.slow
def test_no_file_names_a_plugin_but_its_own_and_those_that_have_always_done() -> None:
    known = {place: set(plugins.split()) for place, (plugins, _) in OFFENDERS.items()}
    offending = {place_of(path): foreign(path) for path in files()}
    new = {place: found - known.get(place, set()) for place, found in offending.items()}
    assert {place: found for place, found in new.items() if found} == {}


@pytest.mark.parametrize("place", OFFENDERS)
def test_a_file_that_names_a_plugin_no_longer_is_taken_off_the_list(place: str) -> None:
    path = (LIBRARY if place.startswith("epochal/") else ROOT) / place
    assert path.exists(), f"{place} is gone: take it off OFFENDERS"
    assert foreign(path) == set(OFFENDERS[place][0].split())


def test_no_file_names_pages_but_its_own_and_their_faces() -> None:
    naming = {
        place_of(path)
        for path in (*files(), *shared())
        if any(belongs(e, PAGES) for e in spelled(path.read_text()))
    }
    assert {place for place in naming if not PAGES.owns(place)} == set(FACES)


@pytest.mark.parametrize(
    ("plugin", "code"),
    [
        ("equinox", "import epochal.contrib.equinox.port"),
        ("event_store_adapter", "from epochal.contrib import event_store_adapter"),
        ("sekiban", "from epochal.contrib.sekiban.items import TAGS"),
        ("equinox", "def f():\n    from epochal.contrib.equinox.streams import tips_of"),
        ("equinox", "import_module('epochal.contrib.equinox')"),
        ("event_store_adapter", "settings.table('snapshot')"),
        ("equinox", "Settings.of(tips_table='t')"),
        ("sekiban", "variable('dcb_partitions')"),
        ("event_store_adapter", "from epochal.contrib.event_store_adapter.model import MAX_VALUE"),
        ("event_store_adapter", "import_module('epochal.contrib.event_store_adapter.plugin:PLUGIN')"),
        ("event_store_adapter", "class AggregateMissing(Exception): ..."),
        ("event_store_adapter", "AGGREGATE_NOT_FOUND = 1"),
        ("event_store_adapter", "place.aggregates.append"),
        ("event_store_adapter", "option('--type', help='The type of an aggregate.')"),
        ("sekiban", "from epochal.contrib.sekiban.projections import Stored"),
        ("sekiban", "from epochal.contrib import sekiban"),
        ("sekiban", "raise ProjectionMissing(name)"),
        ("sekiban", "path = '/dcb/events'"),
        ("sekiban", "settings.projection_states_table"),
        ("equinox", "def f(*, calving_max_bytes: int): ..."),
    ],
)
def test_a_file_that_names_one_is_noticed(plugin: str, code: str) -> None:
    assert named(code) == {plugin}


@pytest.mark.parametrize(
    "code",
    [
        "from epochal.layout.port import Port\nfrom epochal.feed.stream_history import StreamHistory",
        "from epochal.model.tags import Query",
        "from epochal.deciders.projections import projection",
        '"""Reads aggregates as event-store-adapter does."""',
        'def f():\n    "The Tip of Equinox\'s stream."',
    ],
)
def test_what_is_the_cores_own_names_none(code: str) -> None:
    assert not named(code)


def test_an_example_that_names_a_partition_names_one_of_streams() -> None:
    """A reaction's function that is asked about partition 0 looks at tips, where most stores have nothing."""
    pages = [
        *(ROOT / "docs").rglob("*.md"),
        *LIBRARY.joinpath("epochal", "cli").rglob("*.py"),
        ROOT / "README.md",
    ]
    partitions = {
        (page.name, int(number))
        for page in pages
        if "decisions" not in page.parts
        for numbers in re.findall(r'"partition": (\d+)|/feed/(\d+)', page.read_text())
        for number in numbers
        if number
    }
    assert len(partitions) > 1
    assert {each for each in partitions if layout_of(each[1]).name != "pages"} == set()
