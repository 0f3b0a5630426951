"""The layouts that there are, an entry each, and what each brings: its plug-in.

This outlives the code: names and partitions are stored (FORMATS §4). Nothing of a plug-in is imported before it is
asked for, so a function loads only the layouts that its settings name; nobody but this list names one.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from epochal.declaration import Setting, declared
from epochal.errors import InvalidInput
from epochal.lazy_dataclasses import dataclass, field, fields

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from epochal.layout.port import Port

BASE_DISTANCE: Final = 10_000
"""From the first partition of a layout to that of the next."""

_NOTHING: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class Plugin:
    """What a layout brings, part by part: each is `module:name` or a module, and empty where there is none.

    Attributes:
        port: what the feed, the indexer, care and a deployment need of it: a `layout.port.Port`.
        history: the module that reads its events for the feed, with `open_history` for a deployment's, and
            `history_of` for a store's where that is a class of its own (`feed.history`). Of named streams the function
            that opens their store, of settings, a driver and a codec.
        options: a dataclass of its settings, each declared as those of `settings.Options` are.
        coherent: looks at the settings of a stage, and raises `InvalidInput` of one that does not go with the others.
        stores: what opens its stores, of a `Deployment`: by the name by which the deployment then has them.
        streams: the name of its store of named streams, by which the API and the command line have them.
        tagged: the name of its store of tagged events, likewise but for pages.
        states: the name of its store of states of projections, which the console shows.
        operations: the module of its HTTP API beside `streams`: `OPERATIONS`, its records. In the modules that these
            name is what they take and answer.
        commands: a tuple of commands of the command line beside `streams`.
        copied: opens what streams are copied from (`copying.sources`), of a deployment and the type of unfold that a
            snapshot becomes.
        proofs: writers by which `epochal prove` tries it (`proving.writers`).
        spans: calls that get a span (`otel`).
    """

    port: str
    history: str
    options: str = ""
    coherent: str = ""
    stores: Mapping[str, str] = field(default_factory=lambda: _NOTHING)
    streams: str = ""
    tagged: str = ""
    states: str = ""
    operations: str = ""
    commands: str = ""
    copied: str = ""
    proofs: str = ""
    spans: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """An entry.

    Attributes:
        name: what its part of the feed is called.
        base: its first partition; the others follow, up to `base + BASE_DISTANCE - 1`.
        table: the setting that names the table of its heads; a deployment without one has no such layout.
        partitions: the setting that says how many partitions it has.
        of: its plug-in, or where that is.
    """

    name: str
    base: int
    table: str
    partitions: str
    of: Plugin | str

    @property
    def is_there(self) -> bool:
        """Whether its plug-in is: the package of one may have been deleted."""
        return not isinstance(self.of, str) or is_there(self.of.partition(":")[0])

    @property
    def plugin(self) -> Plugin:
        """What it brings. Raises `InvalidInput` where its package was deleted."""
        if not self.is_there:
            package, _, _ = str(self.of).partition(":")
            raise InvalidInput(self.table, f"needs the package {package}, which is not there")
        found: Plugin = at(self.of) if isinstance(self.of, str) else self.of
        return found

    @property
    def port(self) -> Port:
        """What it can do."""
        found: Port = at(self.plugin.port)
        return found

    def part(self, name: str) -> Any:
        """A part of its plug-in; None where it has none."""
        where = getattr(self.plugin, name)
        return at(where) if where else None

    def opener(self, store: str) -> Any:
        """What opens a store of its plug-in; None where it has none of that name."""
        where = self.plugin.stores.get(store)
        return None if where is None else at(where)


NATIVE: Final = "pages"
"""Epochal's own, which a new store has; the others are those of other libraries."""

LAYOUTS: tuple[Layout, ...] = (
    Layout(
        name="tips", base=0, table="tips_table", partitions="partitions", of="epochal.contrib.equinox:PLUGIN"
    ),
    Layout(
        name="journal",
        base=BASE_DISTANCE,
        table="snapshot_table",
        partitions="journal_partitions",
        of="epochal.contrib.event_store_adapter:PLUGIN",
    ),
    Layout(
        name="dcb",
        base=2 * BASE_DISTANCE,
        table="tags_table",
        partitions="dcb_partitions",
        of="epochal.contrib.sekiban:PLUGIN",
    ),
    Layout(
        name=NATIVE,
        base=3 * BASE_DISTANCE,
        table="streams_table",
        partitions="pages_partitions",
        of=Plugin(
            port="epochal.pages.port:PORT",
            history="epochal.store.streams:streams_of",
            streams="streams",
            tagged="tagged",
        ),
    ),
)


GROUP: Final = "epochal.layouts"
"""The entry points by which other packages bring a layout: each is a `Layout`, under its name."""

PLUGINS: Final = "EPOCHAL_PLUGINS"
"""The variable of the environment that names the layouts to load of other packages, separated by commas."""


def layouts() -> tuple[Layout, ...]:
    """Those whose plug-ins are there, in the order of their partitions.

    Raises:
        InvalidInput: a package does not bring a layout that the environment names.
    """
    return tuple(layout for layout in entries() if layout.is_there)


def entries() -> tuple[Layout, ...]:
    """All of them, also those whose plug-ins are not there: their names and partitions are stored all the same."""
    return tuple(sorted((*LAYOUTS, *brought()), key=lambda each: each.base))


def brought() -> tuple[Layout, ...]:
    """Those of other packages that the environment names."""
    return _loaded(os.environ.get(PLUGINS, ""))


@cache
def _loaded(names: str) -> tuple[Layout, ...]:
    known = list(LAYOUTS)
    for name in names.split(",") if names else ():
        known.append(_checked(name, entry_of(name).load(), known))
    return tuple(known[len(LAYOUTS) :])


def entry_of(name: str) -> EntryPoint:
    """What a layout of another package is brought by."""
    # 10 ms, for those alone who name some.
    found = [*at("importlib.metadata").entry_points(group=GROUP, name=name)]
    if len(found) != 1:
        raise InvalidInput(PLUGINS, f"names {name}, which {len(found)} packages bring as {GROUP}")
    entry: EntryPoint = found[0]
    return entry


def _checked(name: str, found: object, known: Sequence[Layout]) -> Layout:
    if not isinstance(found, Layout) or found.name != name:
        raise InvalidInput(PLUGINS, f"names {name}, which is no layout of that name")
    if found.base % BASE_DISTANCE or any(found.base == each.base or name == each.name for each in known):
        rule = f"names {name}, whose name and first partition must be its own, in steps of {BASE_DISTANCE:,}"
        raise InvalidInput(PLUGINS, rule)
    return found


def parts(name: str) -> Iterator[Any]:
    """That part of every plug-in which has one."""
    return (found for each in layouts() if (found := each.part(name)) is not None)


def own_settings(layout: Layout) -> Mapping[str, Setting]:
    """The settings that a plug-in declares, by name."""
    kind = layout.part("options")
    return {} if kind is None else _declared(kind)


@cache
def _declared(kind: type) -> Mapping[str, Setting]:
    return MappingProxyType({each.name: declared(each) for each in fields(kind)})


def named_later(package: str, files: Mapping[str, str]) -> Callable[[str], Any]:
    """The `__getattr__` of a package whose names are resolved when they are first used, by the file of each."""

    def resolve(name: str) -> Any:
        if name not in files:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return at(f"{package}.{files[name]}:{name}")

    return resolve


@cache
def is_there(package: str) -> bool:
    """Whether an optional package is there: it may have been deleted, alone or with all of them."""
    try:
        return at("importlib.util:find_spec")(package) is not None
    except ModuleNotFoundError:
        return False


def at(where: str) -> Any:
    """What is there: `module:name`, or a module."""
    module, _, name = where.partition(":")
    found = import_module(module)
    return getattr(found, name) if name else found


def deferred(where: str) -> Callable[..., Any]:
    """The function `module:name`, whose module is imported when it is first called: most functions start without it."""

    def called(*args: Any, **kwargs: Any) -> Any:
        return at(where)(*args, **kwargs)

    return called
