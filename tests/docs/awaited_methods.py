"""The library's sources as the site's reference reads them: with the methods of the asynchronous classes written out.

The library builds them, as in `append = writes(Streams.append)`, which says nothing to a reader of the reference. The
copy that the site is made from has the signature and the docstring of the awaited method in their place.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import shutil
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

BUILDERS: Final = ("reads", "writes", "iterates")
"""The functions of `epochal.aio.bridge` that build a method."""


def copy(library: Path, target: Path) -> None:
    """Copy the library's sources, with the built methods written out."""
    shutil.copytree(library, target, ignore=shutil.ignore_patterns("__pycache__"))
    for path in target.rglob("*.py"):
        if "aio" in (path.stem, path.parent.name):
            _write_out(path, target)


def _write_out(path: Path, root: Path) -> None:
    """Write out the built methods of every class of a module."""
    source = path.read_text("utf-8")
    name = ".".join((root.name, *path.relative_to(root).with_suffix("").parts))
    module = importlib.import_module(name.removesuffix(".__init__"))
    lines = source.split("\n")
    built = [
        (node, getattr(getattr(module, owner.name), name))
        for owner in ast.parse(source).body
        if isinstance(owner, ast.ClassDef)
        for node in owner.body
        if isinstance(node, ast.Assign) and (name := _name_if_built(node))
    ]
    for node, method in reversed(built):
        lines[node.lineno - 1 : node.end_lineno] = [*_definition(method).split("\n"), ""]
    path.write_text("\n".join(lines), "utf-8")


def _name_if_built(node: ast.Assign) -> str:
    """Return the name of the method that an assignment builds; empty if it builds none."""
    target, call = node.targets[0], node.value
    is_built = isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id in BUILDERS
    return target.id if is_built and isinstance(target, ast.Name) else ""


def _definition(method: Callable[..., Any]) -> str:
    """Return the source of a method with the signature and the docstring of the one that it awaits."""
    [definition] = ast.parse(textwrap.dedent(inspect.getsource(inspect.unwrap(method)))).body
    assert isinstance(definition, ast.FunctionDef)
    returns = ast.unparse(definition.returns) if definition.returns else "None"
    if inspect.isasyncgenfunction(method):
        returns = f"Async{returns}"
    head = f"async def {definition.name}({ast.unparse(definition.args)}) -> {returns}:"
    docstring = f'"""{inspect.getdoc(method) or ""}\n"""\nraise NotImplementedError'
    return textwrap.indent(f"{head}\n{textwrap.indent(docstring, ' ' * 4)}", " " * 4)
