"""The folder of a reaction's code: the module's file, and the reaction's name in the decorator.

The code is parsed, not run, since its imports need not be installed on the machine that deploys it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from epochal.cdk.rules import BadSetting, list_alternatives

_OPEN: Final = ("*", "__getattr__", "__dict__", "exec", "globals", "locals", "setattr", "sys", "vars")
"""Words whose use in a module means that it may have names which static analysis does not find."""


def module_of(entry: Path, handler: str) -> Path:
    """Return the file of a handler: `board:departures` and `board.handler` are both in `board.py`."""
    return entry.joinpath(*_parts(handler)[0].split(".")).with_suffix(".py")


def _parts(handler: str) -> tuple[str, str, str]:
    """Split a handler into its module, the separator, and the name within the module."""
    return handler.rpartition(":" if ":" in handler else ".")


def declared_name(entry: Path, handler: str, name: str | None, decorator: str | None) -> str:
    """Return `name`, or else the decorator's name; raise `BadSetting` if the handler does not fit.

    The module is parsed, not imported.

    Args:
        entry: folder of the reaction's code.
        handler: `module:reaction` or `module.function` in that folder.
        name: name of the reaction, checked against the decorator's; None to read the decorator.
        decorator: name of the decorator; None where the handler needs none.

    Raises:
        BadSetting: the handler is not in the module, lacks the decorator, or has another name; or no name is given and
            the decorator has none as plain text.
    """

    def refused(setting: str, rule: str) -> BadSetting:
        """Return the error of a setting of the reaction."""
        return BadSetting(f"{f'reactions.{name}' if name else str(decorator).capitalize()}.{setting}", rule)

    module = module_of(entry, handler)
    if not module.is_file():
        raise refused("entry", f"must be a folder with the handler's module: {module} does not exist")
    name_node, sign, function = _parts(handler)
    try:
        read = ast.parse(module.read_bytes())
    except SyntaxError:  # the module may be for a newer Python
        read = ast.parse("from unread import *")
    nodes, declared_names = [*ast.walk(read)], dict(_reactions(read.body, decorator))
    words = {
        getattr(node, field, "") for node in nodes for field in ("id", "name", "asname", "attr", "value")
    }
    if words.isdisjoint({function, *_OPEN}):
        alternatives = (
            f": {list_alternatives(handler, [f'{name_node}:{name}' for name in declared_names])}"
            if declared_names
            else ""
        )
        raise refused("handler", f"must be in {module}, which has no {function}{alternatives}")
    handler_pattern = re.compile(rf"{re.escape(function)} = [\w.]*lambda_handler\((\w+)\)")
    assigned = [
        handler_pattern.fullmatch(ast.unparse(statement))
        for statement in read.body
        if isinstance(statement, ast.Assign)
    ]
    bound_name = next((match[1] for match in assigned if match and _bound(nodes, function) == [-1]), function)
    if bound_name in declared_names and _bound(nodes, bound_name) == [1]:
        if sign == "." and bound_name == function:
            raise refused(
                "handler", f"must be {name_node}:{function}, with a colon: {handler} is a {decorator}"
            )
        if name not in (None, declared_names[bound_name]):
            raise refused(
                "name",
                f"must be {declared_names[bound_name]}, the name in the decorator in {module}, not {name}",
            )
    if decorator and sign == ":" and _bound(nodes, function) == [0] and words.isdisjoint(_OPEN):
        raise refused("handler", f"must have the decorator {decorator}: {function} in {module} has none")
    names = (
        [declared_names[bound_name]]
        if bound_name in declared_names
        else []
        if sign == ":"
        else list(declared_names.values())
    )
    if not name and len(names) != 1:
        rule = f"must be given: {module} does not contain exactly one {decorator} to take the name from"
        raise refused("name", rule)
    return name or names[0]


def _bound(nodes: Sequence[Any], name: str) -> list[int]:
    """Return the number of decorators of each binding of `name`; -1 for a binding that defines nothing.

    A name that is bound again, or has another decorator, may refer to anything.

    Args:
        nodes: all nodes of the module's syntax tree.
    """
    return [
        len(node.decorator_list) if hasattr(node, "decorator_list") else -1
        for node in nodes
        if name in (getattr(node, field, "") for field in ("id", "name", "asname"))
        and not isinstance(getattr(node, "ctx", None), ast.Load)
    ]


def _reactions(body: Sequence[Any], name: str | None) -> Iterator[tuple[str, str]]:
    """Yield the names of functions and classes with the given decorator, each with the decorator's `name`.

    Args:
        body: statements of the module.
        name: name of the decorator.
    """
    for statement in body:
        for decorator in getattr(statement, "decorator_list", ()):
            called = getattr(decorator, "func", None)
            if name in (getattr(called, "id", ""), getattr(called, "attr", "")):
                for keyword in decorator.keywords:
                    if keyword.arg == "name" and isinstance(keyword.value, ast.Constant):
                        yield statement.name, str(keyword.value.value)
