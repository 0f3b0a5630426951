"""The layouts that there are, an entry each, and what each brings: its plug-in.

This outlives the code: names and partitions are stored (FORMATS §4). Nothing of a plug-in is imported before it is
asked for, so a function loads only the layouts that its settings name; nobody but this list names one.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from epochal.declaration import Setting, declared
from epochal.errors import InvalidInput
from epochal.lazy_dataclasses import dataclass, field, fields
from epochal.named_objects import is_installed, load_object

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from epochal.layout.port import Port

BASE_DISTANCE: Final = 10_000
"""Distance from the first partition of a layout to that of the next."""

_NOTHING: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class Plugin:
    """The parts of a layout, each `module:name` or a module; empty where a layout has no such part.

    Attributes:
        port: the `layout.port.Port` that the feed, the indexer, care and a deployment use.
        history: module that reads its events for the feed, with `open_history` for a deployment, and `history_of` for a
            store of a class of its own (`feed.history`). For named streams the function that opens their store, which
            takes settings, a driver and a codec.
        options: dataclass of its settings, each declared as those of `settings.Options` are.
        coherent: function that raises `InvalidInput` if the settings of a stage do not go together.
        stores: functions that open its stores for a `Deployment`, by the attribute that the deployment then has.
        streams: name of its store of named streams in the API and the command line.
        tagged: name of its store of tagged events in the API and the command line, except for pages.
        states: name of its store of states of projections, which the console shows.
        operations: module of its HTTP API beside `streams`, with the records `OPERATIONS`. The modules that these name
            declare their requests and responses.
        commands: tuple of commands of the command line beside `streams`.
        copied: function that opens the source of copied streams (`copying.sources`), from a deployment and the type of
            unfold that a snapshot becomes.
        proofs: writers by which `epochal prove` tests the layout (`proving.writers`).
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
    """The entry of a layout: its name, partitions, settings and plug-in.

    Attributes:
        name: name of its part of the feed.
        base: first of its partitions; the others follow, up to `base + BASE_DISTANCE - 1`.
        table: name of the setting for the table of its heads; a deployment without a value has no such layout.
        partitions: name of the setting for the number of its partitions.
        of: its plug-in, or the plug-in's place `module:name`.
    """

    name: str
    base: int
    table: str
    partitions: str
    of: Plugin | str

    @property
    def is_there(self) -> bool:
        """Whether the plug-in is installed, since its package may have been deleted."""
        return not isinstance(self.of, str) or is_installed(self.of.partition(":")[0])

    @property
    def plugin(self) -> Plugin:
        """The plug-in; raises `InvalidInput` where its package was deleted."""
        if not self.is_there:
            package, _, _ = str(self.of).partition(":")
            raise InvalidInput(self.table, f"needs the package {package}, which is not there")
        plugin: Plugin = load_object(self.of) if isinstance(self.of, str) else self.of
        return plugin

    @property
    def port(self) -> Port:
        """The port of the plug-in, which the rest of the library uses."""
        port: Port = load_object(self.plugin.port)
        return port

    def part(self, name: str) -> Any:
        """Import a part of the plug-in; None where it has none."""
        where = getattr(self.plugin, name)
        return load_object(where) if where else None

    def opener(self, store: str) -> Any:
        """Return the function that opens a store of the plug-in; None where it has no store of that name."""
        where = self.plugin.stores.get(store)
        return None if where is None else load_object(where)


NATIVE: Final = "pages"
"""Name of Epochal's own layout, which a new store has; the other layouts are those of other libraries."""

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
    """Return the layouts whose plug-ins are installed, in the order of their partitions.

    Raises:
        InvalidInput: no package brings a layout that the environment names.
    """
    return tuple(layout for layout in entries() if layout.is_there)


def entries() -> tuple[Layout, ...]:
    """Return all layouts, in the order of their partitions, even if their plug-ins are not installed.

    Names and partitions are stored all the same.
    """
    return tuple(sorted((*LAYOUTS, *brought()), key=lambda each: each.base))


def brought() -> tuple[Layout, ...]:
    """Return the layouts of other packages that the environment names."""
    return _loaded(os.environ.get(PLUGINS, ""))


@cache
def _loaded(names: str) -> tuple[Layout, ...]:
    """Load the layouts of other packages by their names, separated by commas.

    Raises:
        InvalidInput: no package brings one, or its name or first partition is in use.
    """
    known = list(LAYOUTS)
    for name in names.split(",") if names else ():
        known.append(_checked(name, entry_of(name).load(), known))
    return tuple(known[len(LAYOUTS) :])


def entry_of(name: str) -> EntryPoint:
    """Return the entry point of a layout of another package.

    Raises:
        InvalidInput: there is none of that name, or more than one.
    """
    from importlib.metadata import entry_points  # noqa: PLC0415  takes 10 ms, and few name layouts of others

    entries = [*entry_points(group=GROUP, name=name)]
    if len(entries) != 1:
        raise InvalidInput(PLUGINS, f"names {name}, which {len(entries)} packages bring as {GROUP}")
    entry: EntryPoint = entries[0]
    return entry


def _checked(name: str, found: object, known: Sequence[Layout]) -> Layout:
    """Return a loaded object if it is a layout of that name with a name and partitions of its own.

    Raises:
        InvalidInput: it is not.
    """
    if not isinstance(found, Layout) or found.name != name:
        raise InvalidInput(PLUGINS, f"names {name}, which is no layout of that name")
    if found.base % BASE_DISTANCE or any(found.base == other.base or name == other.name for other in known):
        rule = f"names {name}, whose name and first partition must be its own, in steps of {BASE_DISTANCE:,}"
        raise InvalidInput(PLUGINS, rule)
    return found


def parts(name: str) -> Iterator[Any]:
    """Yield a part of every plug-in that has the part."""
    return (part for layout in layouts() if (part := layout.part(name)) is not None)


def own_settings(layout: Layout) -> Mapping[str, Setting]:
    """Return the settings that a plug-in declares, by name."""
    kind = layout.part("options")
    return {} if kind is None else _declared(kind)


@cache
def _declared(kind: type) -> Mapping[str, Setting]:
    """Return the settings that a dataclass declares, by name."""
    return MappingProxyType({option.name: declared(option) for option in fields(kind)})


def deferred(where: str) -> Callable[..., Any]:
    """Make a function that calls `module:name`, whose module is imported at the first call.

    So most functions start without the module.
    """

    def called(*args: Any, **kwargs: Any) -> Any:
        return load_object(where)(*args, **kwargs)

    return called
