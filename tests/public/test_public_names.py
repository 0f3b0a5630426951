"""Every public name is what it was: a renaming is a line of `names` that changes."""

from __future__ import annotations

import ast
import difflib
from pathlib import Path

import pytest

from tests.public import http_names, library_names
from tests.public.__main__ import FILES, KEPT

RENEW = "if that is meant: .venv/bin/python -m tests.public, and a line in CHANGELOG.md for users"


@pytest.mark.slow
@pytest.mark.parametrize("name", FILES)
def test_public_names_are_what_they_were(name: str) -> None:
    kept = (KEPT / f"{name}.txt").read_text("utf-8").splitlines()
    changed = "\n".join(difflib.unified_diff(kept, FILES[name](), "kept", "today", n=0, lineterm=""))
    assert not changed, f"{changed}\n\n{RENEW}"


def test_every_file_of_names_is_compared() -> None:
    assert {path.stem for path in KEPT.iterdir()} == set(FILES)


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("library", "epochal.Event = epochal.model.events.Event"),
        ("library", "epochal.model.events.Event.type"),
        ("library", "epochal.contrib.timers.stores.timers_of(store)"),
        ("constructs", "epochal.cdk.EventStore = epochal.cdk.store.EventStore"),
        ("constructs", "epochal.contrib.publish.cdk.Webhook.sign_with"),
        ("constructs", "epochal.contrib.subjects.cdk.SubjectKeys(scope, id_, *, store)"),
        ("fixtures", "epochal_streams"),
        ("http", "GET /health is checkHealth"),
        ("http", "schema Link.url"),
        ("commands", "epochal append --later"),
        ("commands", "epochal prune BEFORE"),
    ],
)
def test_each_kind_of_name_is_listed(name: str, line: str) -> None:
    assert line in (KEPT / f"{name}.txt").read_text("utf-8").splitlines()


def module_of(folder: Path, source: str) -> library_names.Module:
    path = folder / "module.py"
    path.write_text(source, "utf-8")
    return library_names.Module("epochal.module", path)


def test_a_class_is_listed_with_its_fields_and_methods_and_their_parameters(tmp_path: Path) -> None:
    module = module_of(
        tmp_path,
        "class Shop:\n"
        "    orders: int\n"
        "    _secret: str\n"
        "    def __init__(self, name, *, size=1):\n"
        "        self.size: Final = size\n"
        "        self._name = name\n"
        "    @property\n"
        "    def open(self): ...\n"
        "    @staticmethod\n"
        "    def of(text): ...\n"
        "    def sell(self, item, /, price=0, *more, tax, **others): ...\n"
        "    def _count(self): ...\n",
    )
    assert list(library_names.described(module, "Shop")) == [
        "epochal.module.Shop(name, *, size=)",
        "epochal.module.Shop.orders",
        "epochal.module.Shop.size",
        "epochal.module.Shop.open",
        "epochal.module.Shop.of(text)",
        "epochal.module.Shop.sell(item, /, price=, *more, tax, **others)",
    ]


def test_keywords_that_a_typed_dictionary_names_are_followed(tmp_path: Path) -> None:
    module = module_of(tmp_path, "def read(**options: Unpack[PageOptions]): ...\n")
    assert list(library_names.keywords_of(module, module.defined["read"])) == ["epochal.module.PageOptions"]


def test_imports_of_examples_are_read_however_they_are_written() -> None:
    code = "from epochal import Event, after as within\nfrom epochal.cdk import (\n    Reaction,\n    Store,\n)\n"
    assert list(library_names.imports_of(code)) == [
        "epochal.Event",
        "epochal.after",
        "epochal.cdk.Reaction",
        "epochal.cdk.Store",
    ]


def test_every_name_that_pages_import_is_found_in_the_source() -> None:
    """A page that imports a name which has moved would drop it from the list without a word."""
    lost = {
        root
        for root in library_names.roots()
        if root not in library_names.modules() and library_names.place_of(root) is None
    }
    assert lost == set()


def test_fields_in_fields_of_the_http_api_are_listed_with_their_places() -> None:
    schema = {
        "properties": {"a": {"items": {"properties": {"b": {}}}}, "c": {"oneOf": [{"properties": {"d": {}}}]}}
    }
    assert list(http_names.fields("schema S", schema)) == [
        "schema S.a",
        "schema S.a[].b",
        "schema S.c",
        "schema S.c.d",
    ]


def test_no_construct_is_imported_to_read_its_name() -> None:
    tree = ast.parse(Path(library_names.__file__).read_text("utf-8"))
    imported = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert not {name for name in imported if name and name.startswith("epochal")}
