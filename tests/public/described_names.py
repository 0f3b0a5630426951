"""The names that docstrings of the whole library describe, private ones too, and that are not there.

A function or method has in `Args:` only its parameters. A class has there, and in `Attributes:`, only what its body or
a base class of the library declares, what a method sets on `self`, and parameters of its constructor.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from tests.public.docstrings import Function, bases, described_names
from tests.public.library_names import Module, modules, names_of, place_of


def misdescribed(module: Module) -> dict[str, list[str]]:
    """The names that the docstrings of a module describe and that are not there, by the definition's name."""
    missing: dict[str, list[str]] = {}
    for name, definition in module.defined.items():
        for node in ast.walk(definition):
            if isinstance(node, ast.ClassDef | Function):
                place = name if node is definition else f"{name}: {node.name}"
                missing[f"{module.name}.{place}"] = sorted(_missing(module, node))
    return {place: names for place, names in missing.items() if names}


def all_misdescribed() -> dict[str, list[str]]:
    """The same of all modules of the library."""
    return {place: names for module in modules().values() for place, names in misdescribed(module).items()}


def _missing(module: Module, node: ast.ClassDef | Function) -> set[str]:
    docstring = ast.get_docstring(node) or ""
    if isinstance(node, ast.ClassDef):
        lineage = [node, *(base for _, base in bases(module, node))]
        return described_names(docstring) - {name for each in lineage for name in _members(each)}
    parameters = _parameters(node) | _keywords(module, node)
    return described_names(docstring, ("Attributes:",)) | (
        described_names(docstring, ("Args:",)) - parameters
    )


def _members(node: ast.ClassDef) -> Iterator[str]:
    """What a class declares, defines, and sets on `self`, and the parameters of its constructor."""
    for statement in node.body:
        if isinstance(statement, ast.Assign | ast.AnnAssign | Function):
            yield from names_of(statement)
        if isinstance(statement, Function):
            yield from _parameters(statement) if statement.name in ("__init__", "__new__") else ()
            yield from (
                inner.attr
                for inner in ast.walk(statement)
                if isinstance(inner, ast.Attribute)
                and isinstance(inner.ctx, ast.Store)
                and ast.unparse(inner.value) == "self"
            )


def _parameters(function: Function) -> set[str]:
    arguments = function.args
    plain = [
        *arguments.posonlyargs,
        *arguments.args,
        *arguments.kwonlyargs,
        arguments.vararg,
        arguments.kwarg,
    ]
    return {argument.arg for argument in plain if argument}


def _keywords(module: Module, function: Function) -> set[str]:
    """The members of the typed dictionary that a function takes as keywords."""
    annotation = function.args.kwarg.annotation if function.args.kwarg else None
    written = re.fullmatch(r"Unpack\[(\w+)\]", ast.unparse(annotation)) if annotation else None
    place = place_of(f"{module.name}.{written[1]}") if written else None
    definition = place[0].defined[place[1]] if place else None
    if place is None or not isinstance(definition, ast.ClassDef):
        return set()
    lineage = [definition, *(base for _, base in bases(place[0], definition))]
    return {name for each in lineage for name in _members(each)}
