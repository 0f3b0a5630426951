"""The folder of a reaction's code: where its module is, and what its decorator calls it.

The code is read, not run: what it imports need not be on the machine that deploys it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from epochal.cdk.stages import BadSetting


def module_of(entry: Path, handler: str) -> Path:
    """The file of a handler: `board:departures` and `board.handler` are both in `board.py`."""
    named = handler.partition(":")[0] if ":" in handler else handler.rpartition(".")[0]
    return entry.joinpath(*named.split(".")).with_suffix(".py")


def declared_name(entry: Path, handler: str) -> str:
    """What the decorator of the reaction that a handler names calls it: `@reaction(name="departures")`.

    Raises:
        BadSetting: there is no such reaction, or its name is no plain text.
    """
    module = module_of(entry, handler)
    reaction = handler.partition(":")[2]
    found = dict(_reactions(ast.parse(module.read_text()))) if module.is_file() else {}
    names = [found[reaction]] if reaction in found else list(found.values())
    if (reaction and reaction not in found) or len(names) != 1:
        rule = f"must be given, as the decorator in {module} has it: no one reaction was found there"
        raise BadSetting("Reaction.name", rule)
    return names[0]


def _reactions(module: ast.Module) -> Iterator[tuple[str, str]]:
    """Functions of a module with the decorator, and their names as reactions."""
    for each in module.body:
        if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef):
            for decorator in each.decorator_list:
                if isinstance(decorator, ast.Call) and _is_called(decorator.func, "reaction"):
                    yield from ((each.name, name) for name in _named(decorator))


def _is_called(function: ast.expr, name: str) -> bool:
    return getattr(function, "id", getattr(function, "attr", "")) == name


def _named(call: ast.Call) -> Iterator[str]:
    for keyword in call.keywords:
        if keyword.arg == "name" and isinstance(keyword.value, ast.Constant):
            yield str(keyword.value.value)
