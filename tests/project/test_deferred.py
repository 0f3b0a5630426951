"""Deferred imports lead where type checkers see that they do."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest

from epochal.deferred import DeferredFunction, DeferredModule, deferred_names, loaded_function
from tests.support.named_modules import LIBRARY, module_name

FILES = {path: ast.parse(path.read_text("utf-8")) for path in sorted(LIBRARY.rglob("*.py"))}
OWN = LIBRARY / "epochal" / "deferred.py"


def seen_by_type_checkers(tree: ast.Module) -> dict[str, str]:
    """What a module imports for type checkers only, by the name that it gets: `module.name`."""
    return {
        alias.asname or alias.name: f"{node.module}.{alias.name}"
        for block in tree.body
        if isinstance(block, ast.If) and ast.unparse(block.test) == "TYPE_CHECKING"
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }


def deferred_modules(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """The names that a module assigns to deferred modules, each with the module's name."""
    for node in ast.walk(tree):
        match node:
            case ast.Assign(
                targets=[ast.Name(id=name)],
                value=ast.Call(func=ast.Name(id="DeferredModule"), args=[ast.Constant(value=str(module))]),
            ):
                yield name, module


@cache
def packages() -> list[Path]:
    return [path for path, tree in FILES.items() if path != OWN and "deferred_names" in ast.unparse(tree)]


def test_every_deferred_module_is_the_one_that_type_checkers_see() -> None:
    found = {
        path: (dict(deferred_modules(tree)), seen_by_type_checkers(tree)) for path, tree in FILES.items()
    }
    wrong = [
        f"{path.relative_to(LIBRARY)}: {name} is {module}"
        for path, (modules, seen) in found.items()
        for name, module in modules.items()
        if seen.get(name) != module
    ]
    assert wrong == []


def test_every_use_of_a_deferred_module_is_one_that_this_test_reads() -> None:
    calls = [
        path.name
        for path, tree in FILES.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("DeferredModule")
    ]
    assert len(calls) == sum(len([*deferred_modules(tree)]) for tree in FILES.values())


def test_no_package_defers_a_module_in_its_init() -> None:
    """`from package import name` would give the deferred module."""
    hidden = [
        str(path.relative_to(LIBRARY))
        for path, tree in FILES.items()
        if path.name == "__init__.py" and any(deferred_modules(tree))
    ]
    assert hidden == []


@pytest.mark.parametrize("package", ["event_store_adapter", "sekiban"])
def test_the_operations_of_a_layout_are_imported_as_a_module(package: str) -> None:
    code = f"from epochal.contrib.{package}.http import operations; print(type(operations).__name__)"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "module"


def test_every_package_offers_the_names_that_type_checkers_see() -> None:
    assert len(packages()) > 3
    for path in packages():
        package = module_name(path)
        seen = {
            name: place
            for name, place in seen_by_type_checkers(FILES[path]).items()
            if place.startswith(f"{package}.") and place.rpartition(".")[2] == name
        }
        offered = [name for name in import_module(package).__all__ if name not in _defined(FILES[path])]
        assert set(offered) == set(seen), package
        if package == "epochal.cdk":
            continue  # its names need Node
        for name, place in seen.items():
            module, _, _ = place.rpartition(".")
            assert getattr(import_module(package), name) is getattr(import_module(module), name), place


def _defined(tree: ast.Module) -> set[str]:
    """The names of a module's own classes, functions and constants."""
    names = set[str]()
    for node in tree.body:
        match node:
            case ast.ClassDef(name=name) | ast.FunctionDef(name=name):
                names.add(name)
            case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
                names.add(name)
            case _:
                pass
    return names


@pytest.fixture
def lazy_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The name of a module that nobody has imported."""
    (tmp_path / "lazily_imported.py").write_text("def double(number):\n    return 2 * number\n")
    monkeypatch.syspath_prepend(tmp_path)
    yield "lazily_imported"
    sys.modules.pop("lazily_imported", None)


def test_a_deferred_function_imports_its_module_at_the_first_call(lazy_module: str) -> None:
    function = DeferredModule(lazy_module).double
    assert (function.__module__, function.__name__) == (lazy_module, "double")
    assert lazy_module not in sys.modules
    assert function(4) == 8
    assert loaded_function(function) is sys.modules[lazy_module].double


def test_a_function_of_a_deferred_module_is_the_same_object_each_time(lazy_module: str) -> None:
    module = DeferredModule(lazy_module)
    assert module.double is module.double
    assert isinstance(module.double, DeferredFunction)


def test_a_function_that_is_not_deferred_is_loaded_as_it_is() -> None:
    assert loaded_function(module_name) is module_name


def test_a_package_imports_a_name_when_it_is_used_and_knows_no_others() -> None:
    resolve = deferred_names("epochal", {"errors": ("EpochalError",)})
    assert resolve("EpochalError") is import_module("epochal.errors").EpochalError
    with pytest.raises(AttributeError, match="module 'epochal' has no attribute 'Nothing'"):
        resolve("Nothing")
