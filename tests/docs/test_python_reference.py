"""docs/reference/python: every name that `epochal` and `epochal.aio` lead to is there once, with a docstring."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import griffe
import pytest

import epochal
from epochal.contrib import equinox, event_store_adapter, sekiban
from tests.docs import awaited_methods

pytestmark = pytest.mark.slow  # all of the library is parsed

ROOT = Path(__file__).resolve().parents[2]
PAGES = ROOT / "docs" / "reference" / "python"
LISTED = Counter(
    name
    for page in PAGES.glob("*.md")
    for name in re.findall(r"^::: (\S+)$", page.read_text("utf-8"), re.MULTILINE)
)
INNER_ROOMS = ("care", "deployment", "index", "layout", "pages", "plan", "settings")
"""What stores are made of, and no program names: a store's attributes and openers lead there."""

PLUGINS = (equinox, event_store_adapter, sekiban)
"""Packages of plug-ins, which have names of their own."""

PLUGIN_INNER = ("items", "port", "reading")
"""Their files that are as those rooms."""

INNER = {
    f"epochal.{name}"
    for name in (
        "contrib.equinox.streams.Tips",
        "aio.bridge.in_thread",
        "store.queueing.Key",
        "aio.bridge.look_at_error",
        "aio.bridge.wait",
        "aio.bridge.in_threads",
        "aio.bridge.finished",
        "aio.bridge.iterates",
        "aio.bridge.reads",
        "aio.bridge.writes",
        "aio.bridge.written",
        "aio.stores.AsyncCarrier",
        "contrib.http_client.aio.AsyncHttpCarrier",
        "contrib.http_client.api.ApiClient",
        "contrib.http_client.api.Pairs",
        "contrib.http_client.api.Reply",
        "contrib.http_client.exchange.HttpAnswer",
        "contrib.http_client.exchange.Send",
        "codec.bodies.Encoded",
        "feed.filters.Predicate",
        "feed.history.History",
        "feed.hydration.Hydrate",
        "feed.hydration.HydrateUnopened",
        "feed.page_filling.PageBounds",
        "model.moments.Ticks",
        "model.outcomes.RefusedAppend",
        "store.encoding.Bodies",
        "store.encoding.Objects",
        "testing.memory.MemoryTables",
        "store.encoding.BodyCodec",
        "store.driver.Driver",
        "deciders.codecs.StoredClass",
        "deciders.folding.Folder",
        "deciders.value_forms.ValueForm",
        "read_models.keys.Declared",
        "read_models.keys.Entries",
        "read_models.keys.Keys",
        "deciders.loading.Loader",
        "contrib.schemas.class_schemas.Schema",
        "contrib.schemas.columns.ColumnType",
        "store.reading.Found",
        "store.reading.Reader",
    )
}
"""Likewise, of rooms that have others."""


SHOWN = (
    "epochal.contrib.sekiban.items.RecordedTaggedEvent",
    "epochal.contrib.sekiban.items.SortableId",
    "epochal.contrib.sekiban.items.TaggedEvent",
    "epochal.index.checkpoints.",
    "epochal.layout.changes.Removal",
    "epochal.layout.changes.Span",
)
"""And what programs get from these."""


GUIDED = (
    "epochal.store.also.put",
    "epochal.store.also.update",
    "epochal.store.also.delete",
    "epochal.store.also.check",
    "epochal.store.also.compare",
    "epochal.store.also.plain",
    "epochal.store.tagged_importer.TaggedImporter",
    "epochal.deciders.loop.WithAlso",
    "epochal.store.listings.listings_of",
    "epochal.contrib.sql.read_models.SqlReadModels",
    "epochal.contrib.sql.read_models.Fold",
    "epochal.contrib.sql.read_models.FoldRemoval",
    "epochal.contrib.processes.process.process",
    "epochal.contrib.processes.process.process_of",
    "epochal.contrib.processes.outputs.Output",
    "epochal.contrib.processes.outputs.CommandRefused",
    "epochal.contrib.processes.outputs.Target",
    "epochal.contrib.schemas.asyncapi.asyncapi",
    "epochal.contrib.schemas.columns.columns",
    "epochal.contrib.schemas.of_events.event_schemas",
    "epochal.contrib.processes.testing.given_process",
    "epochal.contrib.subjects.sealing.open_subjects",
    "epochal.contrib.http_client.credentials.bearer",
    "epochal.contrib.http_client.credentials.sigv4",
    "epochal.contrib.http_client.opening.open_http_streams",
    "epochal.contrib.timers.stores.timers_of",
    "epochal.deciders.on_streams.handle_all",
    "epochal.contrib.subjects.sealing.sealed_codec",
)
"""What guides import from its room, and nothing leads to."""


@cache
def library() -> griffe.Module:
    found = griffe.load(
        "epochal", search_paths=[ROOT / "layers" / "epochal" / "python"], allow_inspection=False
    )
    assert isinstance(found, griffe.Module)
    return found


def found(path: str) -> griffe.Object | None:
    """What a dotted path names: a class, a function or a value of a module of the library."""
    if not path.startswith("epochal."):
        return None
    try:
        named = library()[path.removeprefix("epochal.")]
        named = named.final_target if isinstance(named, griffe.Alias) else named
    except (KeyError, griffe.GriffeError):
        return None
    assert isinstance(named, griffe.Object)
    value = str(getattr(named, "value", ""))
    generic = named.is_attribute and ("TypeVar" in value or "ParamSpec" in value)
    inner = (
        named.is_module
        or generic
        or not isinstance(named.parent, griffe.Module)
        or named.name.startswith("_")
    )
    return None if inner else named


def members(each: griffe.Object) -> Iterator[griffe.Object]:
    """What a page shows of it: the thing, and the public members of a class."""
    yield each
    if isinstance(each, griffe.Class):
        own = (member for member in each.members.values() if isinstance(member, griffe.Object))
        yield from (member for member in own if not member.name.startswith("_"))


def named_in(each: griffe.Object) -> Iterator[str]:
    """The names in its signatures and annotations."""
    for member in members(each):
        written = [getattr(member, name, None) for name in ("annotation", "returns")]
        written += [parameter.annotation for parameter in getattr(member, "parameters", ())]
        written += getattr(member, "bases", [])
        written += [each.value] if isinstance(each, griffe.Attribute) else []
        for expression in written:
            if isinstance(expression, griffe.Expr):
                parts = (expression, *expression.iterate(flat=True))
                yield from (part.canonical_path for part in parts if isinstance(part, griffe.ExprName))


def awaited() -> Iterator[str]:
    """What the modules of `epochal.aio`, and `aio` of optional packages, have for programs."""
    optional = (each.modules.get("aio") for each in library()["contrib"].modules.values())
    for room in (*library()["aio"].modules.values(), *filter(None, optional)):
        wrapped = (each for each in room.attributes.values() if str(each.value).startswith("written("))
        found = (*room.classes.values(), *room.functions.values(), *wrapped)
        yield from (each.canonical_path for each in found if not each.is_alias)


@cache
def reached() -> dict[str, griffe.Object]:
    """Every name that `epochal` has, and every name that one of those leads to."""
    at: dict[str, griffe.Object] = {}
    names = epochal._NAMES.items()  # noqa: SLF001  where they are
    paths = [f"epochal.{room}.{name}" for room, defined in names for name in defined]
    paths += [f"{each.__name__}.{name}" for each in PLUGINS for name in each.__all__ if name != "PLUGIN"]
    paths += [*awaited(), *GUIDED]
    while paths:
        each = found(paths.pop())
        if each is None or each.canonical_path in at or each.canonical_path in INNER:
            continue
        _, room, *within = each.canonical_path.split(".")
        inner = room in INNER_ROOMS or (room == "contrib" and within[1] in PLUGIN_INNER)
        if not inner or each.canonical_path.startswith(SHOWN):
            at[each.canonical_path] = each
            paths.extend(named_in(each))
    return at


@pytest.mark.slow
def test_every_name_that_epochal_leads_to_is_on_one_page() -> None:
    errors = {name for name in LISTED if name.startswith("epochal.errors.")}
    assert {name for name, count in LISTED.items() if count > 1} == set()
    assert set(LISTED) - errors == {name for name in reached() if not name.startswith("epochal.errors.")}


def test_every_error_is_on_its_page() -> None:
    raised = {
        f"epochal.errors.{each.name}"
        for each in library()["errors"].classes.values()
        if not each.name.startswith("_")
    }
    assert {name for name in LISTED if name.startswith("epochal.errors.")} == raised


def test_what_is_shown_has_a_docstring() -> None:
    bare = [
        member.canonical_path
        for name in LISTED
        if (each := found(name))
        for member in members(each)
        if member.docstring is None and (member is each or member.is_function)
    ]
    assert bare == []
    assert all(found(name) for name in LISTED)


def test_methods_of_asynchronous_classes_are_shown_with_their_arguments(tmp_path: Path) -> None:
    awaited_methods.copy(ROOT / "layers" / "epochal" / "python" / "epochal", tmp_path / "epochal")
    classes = griffe.load("epochal.aio.stores", search_paths=[str(tmp_path)])
    append, read = classes["AsyncStreams.append"], classes["AsyncStreams.read"]
    assert [parameter.name for parameter in append.parameters][:3] == ["self", "stream", "events"]
    assert append.docstring.value.startswith("Append events to a stream")
    assert str(read.returns) == "AsyncIterator[Recorded]"
