"""What code names in strings is there: nothing else notices such a string when a module moves or is renamed."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.support.named_modules import (
    LAMBDAS,
    LIBRARY,
    OTHERS,
    PREFIXES,
    ROOT,
    NamedPlace,
    module_name,
    named_places,
    resolves,
    run_modules,
)

SOURCES = {
    **{path: module_name(path) for path in sorted(LIBRARY.rglob("*.py"))},
    **{path: module_name(path, ROOT) for path in sorted(ROOT.glob("stacks/*.py"))},
    **{path: path.stem for path in sorted(ROOT.glob("lambdas/*/*.py"))},
    ROOT / "app.py": "app",
}
TESTS = {
    path: module_name(path, ROOT)
    for top in ("bench", "tests", "examples")
    for path in sorted((ROOT / top).rglob("*.py"))
}
PAGES = [
    ROOT / "Makefile",
    *ROOT.glob("*.md"),
    *ROOT.glob(".github/**/*.yml"),
    *ROOT.glob("docs/**/*.md"),
    *SOURCES,
    *TESTS,
]

NOT_THERE = frozenset(
    {
        "epochal.aio.stores.AsyncStreams.nothing",
        "epochal.cli.gone",
        "epochal.contrib.gone",
        "epochal.contrib.publish.cdk.Webhook.sign_with",
        "epochal.contrib.transfer.export.commands.SECRET",
        "epochal.gone.x",
        "epochal.module",
        "epochal.module.PageOptions",
        "epochal.module.Shop.open",
        "epochal.module.Shop.orders",
        "epochal.module.Shop.size",
        "epochal.timers_of",
        "epochal.ts",
    }
)
"""What a test names because it is not there, or puts there itself."""


@cache
def named() -> dict[Path, list[NamedPlace]]:
    """By file; of tests and benchmarks only modules, since they use other strings of these forms as data."""
    return {
        path: [*named_places(path.read_text("utf-8"), module, pairs=path in SOURCES)]
        for path, module in (SOURCES | TESTS).items()
    }


def unresolved(sources: dict[Path, str]) -> str:
    lines = [
        f"{path.relative_to(ROOT)}:{place.line}: {place.text}"
        for path, module in sources.items()
        for place in named()[path]
        if place.text not in NOT_THERE and not resolves(place.text, module)
    ]
    return "\n".join(lines)


@pytest.mark.slow
def test_every_place_that_the_library_and_its_stacks_name_in_a_string_is_there() -> None:
    missing = unresolved(SOURCES)
    assert not missing, f"{missing}\n\nname what is there, or add the string to OTHERS or PREFIXES"


@pytest.mark.slow
def test_every_module_that_tests_and_benchmarks_name_in_a_string_is_there() -> None:
    """A test that a module is not loaded passes for a module that has moved."""
    missing = unresolved(TESTS)
    assert not missing, f"{missing}\n\nname what is there, or add the string to OTHERS or NOT_THERE"


@pytest.mark.slow
def test_the_search_finds_the_strings_of_each_form() -> None:
    texts = {place.text for path in SOURCES for place in named()[path]}
    assert sum(":" in text for text in texts) > 10
    assert sum(text.startswith("epochal.") and ":" not in text for text in texts) > 8
    assert "handler.handler" in texts


def test_every_exception_is_still_needed() -> None:
    here = {"named_modules", "test_named_modules"}
    sources = [path.read_text("utf-8") for path in (*SOURCES, *TESTS) if path.stem not in here]
    assert [text for text in OTHERS | NOT_THERE if not any(f'"{text}"' in each for each in sources)] == []
    assert [each for each in PREFIXES if not any(f'"{each}:' in source for source in sources)] == []


@pytest.mark.parametrize("name", ["scripts", "entry points"])
def test_every_entry_point_of_the_package_is_there(name: str) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    groups = {"scripts": [project["scripts"]], "entry points": [*project["entry-points"].values()]}[name]
    places = [place for group in groups for place in group.values()]
    assert places
    assert [place for place in places if not resolves(place, "epochal")] == []


def test_every_module_that_pytest_loads_is_there() -> None:
    options = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["pytest"]["ini_options"]["addopts"]
    ours = [option for option in options if option.startswith("epochal")]
    assert ours
    assert [name for name in ours if find_spec(name) is None] == []


def test_every_function_has_its_handler() -> None:
    folders = [path.name for path in LAMBDAS.iterdir() if any(path.glob("*.py"))]
    assert len(folders) > 8
    for folder in folders:
        place = LAMBDAS / folder / "handler.py"
        assert "\nhandler = " in place.read_text() or "\ndef handler(" in place.read_text(), folder


def test_every_package_has_what_its_list_of_names_says() -> None:
    """Some resolve their names at first use; what they name then must be there."""
    packages = [
        module_name(path) for path in LIBRARY.rglob("*.py") if "\n__all__ = " in path.read_text("utf-8")
    ]
    plain = [import_module(name) for name in packages if not name.startswith("epochal.cdk")]
    assert len(plain) > 3
    missing = [
        f"{module.__name__}.{name}"
        for module in plain
        for name in module.__all__
        if not hasattr(module, name)
    ]
    assert missing == []


def test_every_module_that_a_command_runs_is_there() -> None:
    """In pages, makefiles, workflows and docstrings: `python -m module`."""
    ran = {name: path for path in PAGES for name in run_modules(path.read_text("utf-8"))}
    assert len(ran) > 20
    assert {name: path.name for name, path in ran.items() if find_spec(name) is None} == {}


@pytest.mark.parametrize(
    "text",
    [
        '"epochal.errors:EpochalErrors"',
        '"epochal.error:EpochalError"',
        '"errors:EpochalErrors"',
        '"stores.streams:streams_of"',
        '"stream:opened"',
        'f"{__name__}.streams:opened_of"',
        'f"{__name__}.stream:opened"',
        '"epochal.store.stream"',
        '"epochal.errors.EpochalError.nothing"',
        'f"epochal.imports.{kind}"',
        'f"epochal.imports.{kind}:{name}"',
        '"arm.handler"',
    ],
)
def test_a_string_that_names_what_is_not_there_is_noticed(text: str) -> None:
    (place,) = named_places(f"kind = name = ''\n\nvalue = {text}\n", "epochal.contrib.equinox")
    assert place.line == 3
    assert not resolves(place.text, "epochal.contrib.equinox")


@pytest.mark.parametrize(
    "text",
    [
        '"epochal.errors:EpochalError"',
        '"errors:EpochalError"',
        '"store.streams:streams_of"',
        '"streams:opened"',
        'f"{__name__}.streams:opened"',
        '"epochal.store.streams"',
        '"epochal.errors.EpochalError.__doc__"',
        'f"epochal.contrib.transfer.importing.{kind}"',
        '"epochal.hosting.function.handler"',
        '"arming.handler"',
    ],
)
def test_a_string_that_names_what_is_there_resolves(text: str) -> None:
    (place,) = named_places(f"kind = ''\nvalue = {text}\n", "epochal.contrib.equinox")
    assert resolves(place.text, "epochal.contrib.equinox")


@pytest.mark.parametrize(
    "text", ['"iam:PassRole"', '"epochal.kind"', '"a sentence: with words"', "b'a:b'", '""']
)
def test_a_string_that_names_no_module_is_left_alone(text: str) -> None:
    assert list(named_places(f"value = {text}\n", "epochal")) == []


def test_a_handler_is_looked_for_in_the_folders_of_functions(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    (tmp_path / "one" / "waking.py").write_text("def handler(event, context):\n    return None\n")
    (tmp_path / "one" / "other.py").write_text("handle = print\n")
    assert resolves("waking.handler", "epochal", lambdas=tmp_path)
    assert not resolves("other.handler", "epochal", lambdas=tmp_path)


def test_a_command_that_runs_a_module_is_read_to_its_end() -> None:
    assert run_modules("`python -m tests.frozen`, $(BIN)/python -m bench.load.") == {
        "tests.frozen",
        "bench.load",
    }
    assert run_modules("python -m pytest, python -m benchmarks") == set()
