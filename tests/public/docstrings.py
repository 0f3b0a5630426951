"""The arguments that public docstrings describe, read from the source: nothing is imported.

A function describes its arguments in the section `Args:`. A class describes those of its constructor there, or in
`Attributes:`, in its own docstring, in that of `__init__`, or in that of a base class of the library. A method that a
base class of the library has too may leave its arguments to that. A typed dictionary may leave its members to the
function that takes them. One entry may describe several arguments: `types, since: as for ...`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Final

from tests.public.library_names import Module, decorators, keywords_of, modules, place_of, roots

Function = ast.FunctionDef | ast.AsyncFunctionDef

SECTIONS: Final = ("Args:", "Attributes:")
ENTRY: Final = 4
"""Depth of an entry in a section."""


def entries_of(docstring: str, sections: tuple[str, ...] = SECTIONS) -> Iterator[str]:
    """The entries of these sections, each as one line."""
    entry, inside = "", False
    for line in docstring.splitlines():
        depth = len(line) - len(line.lstrip())
        if line.strip() and depth == 0:
            inside = line.strip() in sections
        elif inside and depth == ENTRY:
            yield entry
            entry = line.strip()
        elif inside:
            entry = f"{entry} {line.strip()}"
    yield entry


def described_names(docstring: str, sections: tuple[str, ...] = SECTIONS) -> set[str]:
    """The names that these sections of a docstring describe."""
    entries = entries_of(docstring, sections)
    matches = (re.match(r"(\*{0,2}\w+(?:, \*{0,2}\w+)*): \S", entry) for entry in entries)
    return {name.lstrip("*") for match in matches if match for name in match[1].split(", ")}


def declared_with_words(field: ast.AnnAssign) -> bool:
    """Whether a field is a setting, whose declaration says what it is: `of_tables(False, Flag(), "Whether ...")`."""
    declaration = field.value if isinstance(field.value, ast.Call) else None
    arguments = [] if declaration is None else declaration.args
    texts = [each.value for each in arguments if isinstance(each, ast.Constant)]
    return any(isinstance(text, str) and " " in text for text in texts)


def documented_by(node: ast.ClassDef | Function) -> set[str]:
    """The names that the docstring of a definition describes, with fields that have words of their own."""
    names = described_names(ast.get_docstring(node) or "")
    for statement, following in zip(node.body, [*node.body[1:], None], strict=True):
        is_text = isinstance(following, ast.Expr) and isinstance(following.value, ast.Constant)
        if not isinstance(statement, ast.AnnAssign) or not isinstance(statement.target, ast.Name):
            continue
        if is_text or declared_with_words(statement):
            names.add(statement.target.id)
    return names


def argument_names(function: Function, *, bound: bool) -> list[str]:
    """The arguments of a function, without `self`, private ones, and keywords that a typed dictionary names."""
    arguments = function.args
    plain = [*arguments.posonlyargs, *arguments.args][int(bound) :]
    keywords = arguments.kwarg
    named_elsewhere = keywords and keywords.annotation and "Unpack[" in ast.unparse(keywords.annotation)
    every = [*plain, arguments.vararg, *arguments.kwonlyargs, None if named_elsewhere else keywords]
    return [argument.arg for argument in every if argument and not argument.arg.startswith("_")]


def bases(module: Module, node: ast.ClassDef) -> Iterator[tuple[Module, ast.ClassDef]]:
    """The base classes that the library defines, nearest first."""
    for base in node.bases:
        place = place_of(f"{module.name}.{ast.unparse(base).partition('[')[0]}")
        definition = place[0].defined[place[1]] if place else None
        if place and isinstance(definition, ast.ClassDef):
            yield place[0], definition
            yield from bases(place[0], definition)


def method_of(node: ast.ClassDef, name: str) -> Function | None:
    """A method that a class itself defines; of overloads, the last."""
    methods = [each for each in node.body if isinstance(each, Function) and each.name == name]
    return methods[-1] if methods else None


def field_names(node: ast.ClassDef) -> list[str]:
    """The fields of a dataclass, named tuple or typed dictionary that its constructor takes."""
    decorated = " ".join(map(ast.unparse, node.decorator_list))
    kinds = {ast.unparse(base).partition("[")[0] for base in node.bases}
    if "dataclass" not in decorated and not kinds & {"NamedTuple", "TypedDict"}:
        return []
    fields = [
        each for each in node.body if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name)
    ]
    taken = [
        each
        for each in fields
        if not re.match(r"(typing\.)?ClassVar|KW_ONLY|Final\[.*ClassVar", ast.unparse(each.annotation))
        and not (each.value and re.search(r"\binit=False", ast.unparse(each.value)))
    ]
    names = [each.target.id for each in taken if isinstance(each.target, ast.Name)]
    return [name for name in names if not name.startswith("_")]


def constructor_names(lineage: list[ast.ClassDef]) -> tuple[list[str], set[str]]:
    """The arguments of a constructor, and what the docstrings of a class and its bases describe."""
    known = {name for each in lineage for name in documented_by(each)}
    for each in lineage:
        if constructor := method_of(each, "__init__"):
            return argument_names(constructor, bound=True), known | documented_by(constructor)
    return [name for each in lineage for name in field_names(each)], known


def undescribed(module: Module, name: str) -> dict[str, list[str]]:
    """The arguments that a definition does not describe, by the dotted names of functions, classes and methods."""
    node, dotted = module.defined[name], f"{module.name}.{name}"
    lacking: dict[str, list[str]] = {}
    if isinstance(node, Function):
        lacking[dotted] = [
            each for each in argument_names(node, bound=False) if each not in documented_by(node)
        ]
    elif isinstance(node, ast.ClassDef):
        lineage = [node, *(base for _, base in bases(module, node))]
        wanted, known = constructor_names(lineage)
        lacking[dotted] = [each for each in wanted if each not in known]
        for method in dict.fromkeys(each.name for each in node.body if isinstance(each, Function)):
            function = method_of(node, method)
            if function is None or method.startswith("_") or decorators(function) & {"property", "setter"}:
                continue
            known = {
                word for each in lineage if (same := method_of(each, method)) for word in documented_by(same)
            }
            arguments = argument_names(function, bound="staticmethod" not in decorators(function))
            lacking[f"{dotted}.{method}"] = [each for each in arguments if each not in known]
    return {place: names for place, names in lacking.items() if names and "._" not in place}


def places() -> Iterator[tuple[Module, str]]:
    """What public names stand for: modules, and names that they define; constructs too."""
    waiting, seen = list(roots()), set[str]()
    while waiting:
        dotted = waiting.pop()
        if dotted in seen:
            continue
        seen.add(dotted)
        if dotted in modules():
            waiting += [f"{dotted}.{name}" for name in modules()[dotted].exported]
        elif place := place_of(dotted):
            module, name = place
            yield place
            node = module.defined[name]
            waiting += keywords_of(module, node)
            if isinstance(node, ast.ClassDef):
                waiting += [f"{base.name}.{definition.name}" for base, definition in bases(module, node)]


def described_by_takers(node: ast.AST) -> Iterator[tuple[str, set[str]]]:
    """The typed dictionaries whose members functions take as keywords, with the names that those describe."""
    for function in ast.walk(node):
        keywords = function.args.kwarg if isinstance(function, Function) else None
        annotation = ast.unparse(keywords.annotation) if keywords and keywords.annotation else ""
        if isinstance(function, Function) and (written := re.fullmatch(r"Unpack\[(\w+)\]", annotation)):
            yield written[1], documented_by(function)


def all_undescribed() -> dict[str, list[str]]:
    """The arguments of the whole library that no docstring describes, by the dotted name of what takes them."""
    lacking: dict[str, list[str]] = {}
    taken: dict[str, set[str]] = {}
    for module, name in places():
        lacking |= undescribed(module, name)
        for dictionary, names in described_by_takers(module.defined[name]):
            taken[dictionary] = taken.get(dictionary, set()) | names
    described = {place: taken.get(place.rpartition(".")[2], set()) for place in lacking}
    rest = {place: [name for name in lacking[place] if name not in described[place]] for place in lacking}
    return {place: names for place, names in sorted(rest.items()) if names}


def invented(module: Module, name: str) -> dict[str, list[str]]:
    """The names below `Args:` that a function or method does not take, by its dotted name."""
    node, dotted = module.defined[name], f"{module.name}.{name}"
    functions = {dotted: (node, False)} if isinstance(node, Function) else {}
    if isinstance(node, ast.ClassDef):
        methods = (method for method in node.body if isinstance(method, Function))
        functions = {
            f"{dotted}.{each.name}": (each, "staticmethod" not in decorators(each)) for each in methods
        }
    excess: dict[str, list[str]] = {}
    for place, (function, bound) in functions.items():
        if not any(True for _ in described_by_takers(function)):
            excess[place] = sorted(documented_by(function) - set(argument_names(function, bound=bound)))
    return {place: names for place, names in excess.items() if names}
