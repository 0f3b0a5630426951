"""Whether two revisions have the same code, wherever it stands and whatever it is called.

    python -m tests.support.same_code BASE HEAD [--names FILE] [PATH ...]

Exits with 0 where the commits between them only move and rename. Otherwise it prints what differs, function by
function, and exits with 1.

Code is compared in units: a function with its signature and decorators, the head of a class, and every other statement
of a module or class. The units of both revisions must be equal as multisets, so that their files and their order do not
count. Imports, docstrings and comments do not count either.

FILE has a line `old new` for each renaming; `#` begins a comment. An identifier is renamed wherever it stands: as a
name, an attribute, an argument or a keyword. A dotted name is a module: it is renamed in strings, alone or before a dot
or a colon. The table does not know where a name is bound, so one that renames `told` to `notify` renames every `told`.
"""

from __future__ import annotations

import argparse
import ast
import difflib
import io
import re
import subprocess
import sys
import tarfile
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, cast

PATHS: Final = ("layers/epochal/python", "lambdas", "stacks", "app.py")
"""Where the code of the library and its deployment is."""

Sources = Mapping[str, str]
"""Texts of Python files, by their paths."""


@dataclass(frozen=True, slots=True)
class Unit:
    """A piece of code.

    Attributes:
        path: its file.
        line: where it begins.
        name: the function or class, or what it assigns; with the names of the classes around it.
        code: its normal form: renamed, without what does not count.
    """

    path: str
    line: int
    name: str
    code: str

    @property
    def place(self) -> str:
        """Where it is, for a reader."""
        return f"{self.path}:{self.line} {self.name}"


def names_in(text: str) -> dict[str, str]:
    """The renamings of a table.

    Raises:
        ValueError: a line does not have two names, or renames a name for the second time.
    """
    names = dict[str, str]()
    for number, line in enumerate(text.splitlines(), 1):
        words = line.partition("#")[0].split()
        if words and (len(words) != 2 or names.get(words[0], words[1]) != words[1]):
            raise ValueError(f"line {number}: must be an old name and its one new name, not {line!r}")
        if words:
            names[words[0]] = words[1]
    return names


class _Normal(ast.NodeTransformer):
    """Renames, and takes out what does not count."""

    def __init__(self, names: Mapping[str, str]) -> None:
        self._names = names
        dotted = sorted((name for name in names if "." in name), key=len, reverse=True)
        self._dotted = re.compile(rf"({'|'.join(map(re.escape, dotted)) or '(?!)'})(?![\w])")

    def generic_visit(self, node: ast.AST) -> ast.AST:
        for name, value in ast.iter_fields(node):
            if isinstance(value, str) and not isinstance(node, ast.Constant):
                setattr(node, name, self._names.get(value, value))
            elif isinstance(value, list) and all(isinstance(each, str) for each in value):
                setattr(node, name, [self._names.get(each, each) for each in value])
        super().generic_visit(node)
        if getattr(node, "body", None) == []:
            cast("Any", node).body = [ast.Pass()]
        return node

    def visit_Constant(self, node: ast.Constant) -> ast.Constant:
        if isinstance(node.value, str):
            text = self._names.get(node.value, node.value)
            node.value = self._dotted.sub(lambda match: self._names[match[1]], text)
        return node

    def visit_Expr(self, node: ast.Expr) -> ast.AST | None:
        if isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            return None  # a docstring
        return self.generic_visit(node)

    def visit_Import(self, _: ast.Import) -> None:
        """Imports follow what they name."""

    def visit_ImportFrom(self, _: ast.ImportFrom) -> None:
        """Imports follow what they name."""

    def visit_If(self, node: ast.If) -> ast.AST | None:
        normal = cast("ast.If", self.generic_visit(node))
        only_imports = all(isinstance(each, ast.Pass) for each in normal.body) and not normal.orelse
        return None if only_imports and ast.unparse(normal.test) == "TYPE_CHECKING" else normal


def units_of(sources: Sources, names: Mapping[str, str] | None = None) -> Iterator[Unit]:
    """The units of all files."""
    normal = _Normal(names or {})
    for path, text in sources.items():
        tree = normal.visit(ast.parse(text))
        yield from _units(path, "", [each for each in tree.body if not isinstance(each, ast.Pass)])


def _units(path: str, around: str, body: Sequence[ast.stmt]) -> Iterator[Unit]:
    for node in body:
        name = around + _name_of(node)
        if isinstance(node, ast.ClassDef):
            inside, node.body = node.body, [ast.Pass()]
            yield Unit(path, node.lineno, name, ast.unparse(node))
            yield from _units(path, f"{name}.", [each for each in inside if not isinstance(each, ast.Pass)])
        else:
            code = ast.unparse(node)
            yield Unit(path, node.lineno, name, f"in {around.rstrip('.')}\n{code}" if around else code)


def _name_of(node: ast.stmt) -> str:
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return name
        case ast.Assign(targets=[target, *_]) | ast.AnnAssign(target=target):
            return ast.unparse(target)
        case _:
            return type(node).__name__.lower()


def differences(base: Sources, head: Sources, names: Mapping[str, str] | None = None) -> Iterator[str]:
    """What only one of the revisions has, function by function; nothing where their code is the same."""
    before, after = [*units_of(base, names)], [*units_of(head)]
    gone, new = _more(before, after), _more(after, before)
    for name in sorted(gone.keys() | new.keys()):
        left, right = gone.get(name, []), new.get(name, [])
        for one, other in zip(left, right, strict=False):
            yield f"changed  {one.place} -> {other.place}\n{_diff(one.code, other.code)}"
        yield from (f"gone     {each.place}\n{_diff(each.code, '')}" for each in left[len(right) :])
        yield from (f"new      {each.place}\n{_diff('', each.code)}" for each in right[len(left) :])


def _more(these: Sequence[Unit], those: Sequence[Unit]) -> dict[str, list[Unit]]:
    """By name, the units of which there are more among `these`."""
    rest = Counter(each.code for each in these)
    rest.subtract(each.code for each in those)
    found = defaultdict[str, list[Unit]](list)
    for each in these:
        if rest[each.code] > 0:
            rest[each.code] -= 1
            found[each.name].append(each)
    return found


def _diff(before: str, after: str) -> str:
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), n=1, lineterm="")
    return "\n".join(f"    {line}" for line in [*lines][3:])


def sources_at(revision: str, paths: Sequence[str], folder: Path) -> dict[str, str]:
    """The Python files of a revision of the repository in `folder`, below those of the paths that it has."""
    listed = subprocess.run(
        ["git", "ls-tree", "-r", "--name-only", revision, "--", *paths],
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    wanted = [path for path in listed if path.endswith(".py")]
    if not wanted:
        raise ValueError(f"{revision} has no Python files in {', '.join(paths)}")
    packed = subprocess.run(
        ["git", "archive", "--format=tar", revision, "--", *wanted],
        cwd=folder,
        capture_output=True,
        check=True,
    ).stdout
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        files = [(member.name, archive.extractfile(member)) for member in archive if member.isfile()]
        return {name: file.read().decode() for name, file in files if file is not None}


def main(arguments: Sequence[str] | None = None, folder: Path = Path()) -> int:
    """Compare as the command line says; the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.support.same_code")
    parser.add_argument("base")
    parser.add_argument("head")
    parser.add_argument("--names", type=Path, help="a table of renamings, `old new` in each line")
    parser.add_argument("paths", nargs="*", default=[*PATHS])
    asked = parser.parse_intermixed_args(arguments)
    names = names_in(asked.names.read_text("utf-8")) if asked.names else {}
    base, head = (sources_at(revision, asked.paths, folder) for revision in (asked.base, asked.head))
    found = [*differences(base, head, names)]
    for each in found:
        sys.stdout.write(f"{each}\n\n")
    sys.stdout.write(f"{len(found)} differences\n" if found else "the same code\n")
    return 1 if found else 0


if __name__ == "__main__":
    raise SystemExit(main())
