"""No module of the core imports, at run time, a module that imports it back, not even inside a function."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet

import pytest

from tests.support.named_modules import LIBRARY, module_name

CORE = ("model", "plan", "codec", "dynamo", "pages", "layout", "index", "feed", "store", "scheduling")
CORE_ABOVE = ("deciders", "reactions", "read_models", "aio", "testing")


def imports_of(tree: ast.AST, modules: AbstractSet[str]) -> Iterator[str]:
    """The modules that a module imports at run time: at its top, in functions, and deferred."""
    match tree:
        case ast.If(test=ast.Name(id="TYPE_CHECKING"), orelse=orelse):
            for node in orelse:
                yield from imports_of(node, modules)
            return
        case ast.Import(names=names):
            yield from (alias.name for alias in names if alias.name in modules)
        case ast.ImportFrom(module=str(module), names=names):
            for alias in names:
                inner = f"{module}.{alias.name}"
                yield inner if inner in modules else module
        case ast.Call(func=ast.Name(id="DeferredModule"), args=[ast.Constant(value=str(module))]):
            yield module
    for node in ast.iter_child_nodes(tree):
        yield from imports_of(node, modules)


def cycles(graph: Mapping[str, AbstractSet[str]]) -> set[frozenset[str]]:
    """The largest sets of modules that all reach each other."""
    reached = {module: _reached(module, graph) for module in graph}
    return {
        frozenset(other for other in reached[module] if module in reached.get(other, ()))
        for module in graph
        if module in reached[module]
    }


def _reached(module: str, graph: Mapping[str, AbstractSet[str]]) -> set[str]:
    """The modules that a module reaches by one import or more."""
    reached = set[str]()
    waiting = [module]
    while waiting:
        for target in graph.get(waiting.pop(), ()):
            if target not in reached:
                reached.add(target)
                waiting.append(target)
    return reached


def core() -> dict[str, set[str]]:
    """The core's modules with those of the core that each imports, named below `epochal`."""
    sources = {
        module_name(path): path
        for path in (LIBRARY / "epochal").rglob("*.py")
        if path.relative_to(LIBRARY / "epochal").parts[0].removesuffix(".py") in (*CORE, *CORE_ABOVE)
    }
    return {
        module.removeprefix("epochal."): {
            target.removeprefix("epochal.")
            for target in imports_of(ast.parse(path.read_text("utf-8")), sources.keys())
            if target in sources
        }
        for module, path in sources.items()
    }


def test_no_modules_of_the_core_import_each_other() -> None:
    graph = core()
    assert {name.partition(".")[0] for name in graph} == {*CORE, *CORE_ABOVE}
    assert cycles(graph) == set()


@pytest.mark.parametrize(
    "code",
    [
        "import shop.b",
        "from shop import b",
        "from shop.b import name",
        "def f():\n    from shop.b import name",
        "class C:\n    def f(self):\n        if self:\n            import shop.b",
        "if TYPE_CHECKING:\n    pass\nelse:\n    b = DeferredModule('shop.b')",
    ],
)
def test_an_import_is_found_wherever_it_stands(code: str) -> None:
    assert [*imports_of(ast.parse(code), {"shop.a", "shop.b"})] == ["shop.b"]


@pytest.mark.parametrize("code", ["import os", "if TYPE_CHECKING:\n    from shop.b import name"])
def test_what_runs_no_code_of_ours_is_no_import(code: str) -> None:
    assert [each for each in imports_of(ast.parse(code), {"shop.b"}) if each == "shop.b"] == []


def test_a_cycle_is_found_through_other_modules() -> None:
    graph = {"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a", "e"}, "e": set[str](), "f": {"f"}}
    assert cycles(graph) == {frozenset("abc"), frozenset("f")}
