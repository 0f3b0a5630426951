"""The layouts that there are, an entry each, and what each brings: its plug-in.

This outlives the code: names and partitions are stored (FORMATS §4). Nothing of a plug-in is imported before it is
asked for, so a function loads only the layouts that its settings name; nobody but this list names one.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
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

_NOTHING: Mapping[str, Callable[[Any], Any]] = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class Plugin:
    """The parts of a layout, in functions that import what they need when they are called (`deferred`).

    A layout has either `open_streams` or `open_history`. None or an empty text is a part that it does not have.
    Settings load the plug-ins of other packages, so a plug-in that imports more of the library at once than its options
    need is imported in a cycle.

    Attributes:
        port: returns the `layout.port.Port` that the feed, the indexer, care and a deployment use.
        open_streams: opens a deployment's store of named streams, from settings, a driver and a codec.
        open_history: opens the reader of its events for the feed (`feed.history.History`), from the same.
        history_of: returns the reader of the events of a store of a class of its own, and None for any other store.
        options: dataclass of its settings, each declared as those of `settings.Options` are.
        check_options: raises `InvalidInput` if the settings of a stage do not go together.
        stores: functions that open its stores for a `Deployment`, by the attribute that the deployment then has.
        streams: name of its store of named streams in the API and the command line.
        tagged: name of its store of tagged events in the API and the command line, except for pages.
        states: name of its store of states of projections, which the console shows.
        operations: returns the records of its HTTP API beside `streams` (`http.operation`).
        commands: returns the commands of the command line beside `streams`.
        open_source: opens the source of copied streams (`copying.sources`), from a deployment and the type of unfold
            that a snapshot becomes.
        open_writers: opens the writers by which `epochal prove` tests the layout (`proving.writers`).
        spans: returns the calls that get a span (`otel`).
    """

    port: Callable[[], Port]
    open_streams: Callable[..., Any] | None = None
    open_history: Callable[..., Any] | None = None
    history_of: Callable[[object], Any] | None = None
    options: type | None = None
    check_options: Callable[[Any], None] | None = None
    stores: Mapping[str, Callable[[Any], Any]] = field(default_factory=lambda: _NOTHING)
    streams: str = ""
    tagged: str = ""
    states: str = ""
    operations: Callable[[], Iterable[Any]] | None = None
    commands: Callable[[], Iterable[Any]] | None = None
    open_source: Callable[..., Any] | None = None
    open_writers: Callable[..., Iterator[Any]] | None = None
    spans: Callable[[], Iterable[Any]] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """The entry of a layout: its name, partitions, settings and plug-in.

    Attributes:
        name: name of its part of the feed.
        base: first of its partitions; the others follow, up to `base + BASE_DISTANCE - 1`.
        table: name of the setting for the table of its heads; a deployment without a value has no such layout.
        partitions: name of the setting for the number of its partitions.
        of: its plug-in, or the package whose module `plugin` has it as `PLUGIN`.
    """

    name: str
    base: int
    table: str
    partitions: str
    of: Plugin | str

    @property
    def is_there(self) -> bool:
        """Whether the plug-in is installed, since its package may have been deleted."""
        return not isinstance(self.of, str) or is_installed(self.of)

    @property
    def plugin(self) -> Plugin:
        """The layout's plug-in, loaded when needed; raises `InvalidInput` if its package was deleted."""
        if isinstance(self.of, Plugin):
            return self.of
        if not self.is_there:
            raise InvalidInput(self.table, f"needs the package {self.of}, which is not installed")
        plugin: Plugin = load_object(f"{self.of}.plugin:PLUGIN")
        return plugin

    @property
    def port(self) -> Port:
        """The port of the plug-in, which the rest of the library uses."""
        return self.plugin.port()


NATIVE: Final = "pages"
"""Name of Epochal's own layout, which a new store has; the other layouts are those of other libraries."""

LAYOUTS: tuple[Layout, ...] = (
    Layout(
        name="tips", base=0, table="tips_table", partitions="tips_partitions", of="epochal.contrib.equinox"
    ),
    Layout(
        name="journal",
        base=BASE_DISTANCE,
        table="snapshot_table",
        partitions="journal_partitions",
        of="epochal.contrib.event_store_adapter",
    ),
    Layout(
        name="dcb",
        base=2 * BASE_DISTANCE,
        table="tags_table",
        partitions="dcb_partitions",
        of="epochal.contrib.sekiban",
    ),
    Layout(
        name=NATIVE,
        base=3 * BASE_DISTANCE,
        table="streams_table",
        partitions="pages_partitions",
        of="epochal.store",
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
    return tuple(sorted((*LAYOUTS, *brought()), key=lambda layout: layout.base))


def brought() -> tuple[Layout, ...]:
    """Return the layouts of other packages that the environment names."""
    return _loaded(os.environ.get(PLUGINS, ""))


@cache
def _loaded(names: str) -> tuple[Layout, ...]:
    """Return the layouts of other packages by names; raise `InvalidInput` if one is missing or clashes.

    Raises:
        InvalidInput: no package brings one, or its name or first partition is in use.
    """
    layouts = list(LAYOUTS)
    for name in names.split(",") if names else ():
        layouts.append(_require_layout(name, entry_of(name).load(), layouts))
    return tuple(layouts[len(LAYOUTS) :])


def entry_of(name: str) -> EntryPoint:
    """Return the entry point of another package's layout; raise `InvalidInput` unless exactly one has it.

    Raises:
        InvalidInput: there is none of that name, or more than one.
    """
    from importlib.metadata import entry_points  # noqa: PLC0415  takes 10 ms, and few name layouts of others

    entries = [*entry_points(group=GROUP, name=name)]
    if len(entries) != 1:
        raise InvalidInput(
            PLUGINS,
            f"names {name}, which {len(entries)} packages provide as an entry point of {GROUP}; exactly one must",
        )
    entry: EntryPoint = entries[0]
    return entry


def _require_layout(name: str, layout: object, layouts: Sequence[Layout]) -> Layout:
    """Return a loaded object; raise `InvalidInput` unless it is a layout of that name with its own base.

    Raises:
        InvalidInput: it is not.
    """
    if not isinstance(layout, Layout) or layout.name != name:
        raise InvalidInput(PLUGINS, f"names {name}, which is not a layout of that name")
    if layout.base % BASE_DISTANCE or any(
        layout.base == other.base or name == other.name for other in layouts
    ):
        rule = (
            f"names {name}, whose name and first partition must be unique; "
            f"first partitions are multiples of {BASE_DISTANCE:,}"
        )
        raise InvalidInput(PLUGINS, rule)
    return layout


def own_settings(layout: Layout) -> Mapping[str, Setting]:
    """Return the settings that a plug-in declares, by name."""
    kind = layout.plugin.options
    return {} if kind is None else _declared(kind)


@cache
def _declared(kind: type) -> Mapping[str, Setting]:
    """Return the settings that a dataclass declares, by name."""
    return MappingProxyType({option.name: declared(option) for option in fields(kind)})
