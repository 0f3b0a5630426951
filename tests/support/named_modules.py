"""Modules and functions that code names in strings, which neither mypy nor ruff follows when a module moves.

A string names a place in one of these ways:

    "epochal.store.streams:streams_of"      a module and a name in it
    "store.streams:streams_of"              the same, read below `epochal` or below the package of the file
    f"{__name__}.port:PORT"                 the same, below the module that says it
    "epochal.http.streams"                  a module, or something in one
    f"epochal.contrib.transfer.importing.{kind}"             a package, and the rest at run time
    "arming.handler"                        a file of a Lambda function, and its handler

A string of one of these forms that names something else is in `OTHERS`, or begins with one of `PREFIXES`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parents[2]
LIBRARY: Final = ROOT / "layers" / "epochal" / "python"
LAMBDAS: Final = ROOT / "lambdas"

PREFIXES: Final = frozenset(
    {
        # Actions and condition keys of AWS's policies.
        *(
            "AWS",
            "ForAllValues",
            "aws",
            "cloudformation",
            "dynamodb",
            "events",
            "firehose",
            "iam",
            "kinesis",
            "kms",
        ),
        *("lambda", "s3", "scheduler", "secretsmanager", "sqs"),
        # What an option of the command line shows in place of a module.
        "MODULE",
    }
)
"""What stands before the colon of a string that names no module."""

OTHERS: Final = frozenset(
    {
        "epochal:stage",  # a tag of AWS resources
        "epochal.layouts",  # a group of entry points
        "epochal.metadata",  # a context variable
        *("epochal.kind", "epochal.contrib.transfer.rows"),  # keys of Parquet metadata
        # Attributes of spans.
        *("epochal.attempt", "epochal.category", "epochal.events", "epochal.outcome", "epochal.partition"),
        *("epochal.reaction", "epochal.read_units", "epochal.requests", "epochal.write_units"),
    }
)
"""Strings that look like the name of a module of ours, and are none."""

_PAIR: Final = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")
_DOTTED: Final = re.compile(r"epochal(\.[A-Za-z_]\w*)+")
_OPEN: Final = re.compile(r"(epochal\.[\w.]*)\{")
_MENTIONED: Final = re.compile(r"[\"']epochal\.")
_HANDLER: Final = re.compile(r"\w+\.handler")
_RUN: Final = re.compile(r"python3? -m ((?:bench|epochal|examples|tests)\b(?:\.\w+)*)")


@dataclass(frozen=True, slots=True, order=True)
class NamedPlace:
    """A string that names a place.

    Attributes:
        line: its line in the file.
        text: the string. What an f-string fills in at run time is `{}`, except for `__name__`.
    """

    line: int
    text: str


def module_name(file: Path, top: Path = LIBRARY) -> str:
    """Return the name of the module in a file below `top`."""
    parts = file.relative_to(top).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def named_places(source: str, module: str, *, pairs: bool = True) -> Iterator[NamedPlace]:
    """Yield the strings of a module's source that name a module or a name of one.

    Args:
        module: what `__name__` is in the source.
        pairs: whether `module:name` and handlers count. Tests also use such strings as data.
    """
    if not pairs and not _MENTIONED.search(source):
        return  # most tests name none, and parsing them all takes seconds
    tree = ast.parse(source)
    inside = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    for node in ast.walk(tree):
        text = _text(node, module) if id(node) not in inside else None
        if text is None or text in OTHERS:
            continue
        if _DOTTED.fullmatch(text) or _OPEN.match(text):
            yield NamedPlace(node.lineno, text)  # type: ignore[attr-defined]  # it is an expression
        elif pairs and _is_pair(text):
            yield NamedPlace(node.lineno, text)  # type: ignore[attr-defined]


def _is_pair(text: str) -> bool:
    if _HANDLER.fullmatch(text):
        return True
    return _PAIR.fullmatch(text) is not None and text.partition(":")[0] not in PREFIXES


def run_modules(text: str) -> set[str]:
    """Return the modules that a page, a makefile or a docstring runs with `python -m`."""
    return set(_RUN.findall(text))


def _text(node: ast.AST, module: str) -> str | None:
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=values):
            return "".join(_part(value, module) for value in values)
        case _:
            return None


def _part(value: ast.expr, module: str) -> str:
    match value:
        case ast.Constant(value=text):
            return str(text)
        case ast.FormattedValue(value=ast.Name(id="__name__")):
            return module
        case _:
            return "{}"


def resolves(text: str, module: str, *, lambdas: Path = LAMBDAS) -> bool:
    """Return whether the place that a string of `module` names exists."""
    if (opened := _OPEN.match(text)) is not None:
        return _is_module(opened[1].rpartition(".")[0])
    if ":" in text:
        where, _, name = text.partition(":")
        below = module if _is_package(module) else module.rpartition(".")[0]
        candidates = (where, f"epochal.{where}", f"{below}.{where}")
        return any(_is_module(each) and _has(import_module(each), name) for each in candidates)
    if _DOTTED.fullmatch(text):
        return _leads_somewhere(text)
    return _is_handler(text, lambdas)


def _leads_somewhere(dotted: str) -> bool:
    """Return whether a name is a module, or a chain of attributes of one."""
    if _is_module(dotted):
        return True
    where, _, name = dotted.rpartition(".")
    if not where or not _leads_somewhere(where):
        return False
    if _is_module(where):
        return _has(import_module(where), name)
    return hasattr(_value(where), name)


def _value(dotted: str) -> Any:
    if _is_module(dotted):
        return import_module(dotted)
    where, _, name = dotted.rpartition(".")
    return getattr(_value(where), name)


def _has(module: Any, name: str) -> bool:
    """Return whether a module has a name; True if only the environment for computing it is missing."""
    try:
        getattr(module, name)
    except AttributeError:
        return False
    except KeyError:
        return True
    return True


def _is_module(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except (ModuleNotFoundError, ValueError):
        return False


def _is_package(name: str) -> bool:
    spec = find_spec(name) if _is_module(name) else None
    return spec is not None and spec.submodule_search_locations is not None


def _is_handler(text: str, lambdas: Path) -> bool:
    file, _, name = text.partition(".")
    return any(name in _defined(path) for path in lambdas.glob(f"*/{file}.py"))


def _defined(path: Path) -> set[str]:
    """Return the names that a file assigns or defines at its top level."""
    names = set[str]()
    for node in ast.parse(path.read_text()).body:
        match node:
            case ast.Assign(targets=targets):
                names |= {each.id for each in targets if isinstance(each, ast.Name)}
            case ast.FunctionDef(name=name):
                names.add(name)
            case _:
                pass
    return names
