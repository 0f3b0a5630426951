"""The public names of the library, read from its source: nothing is imported, so no construct starts Node.

Public is what docs/stability.md says: what `epochal` and its packages list in `__all__`, the Python reference, and what
pages import. A class brings its public attributes and methods, with those of its bases in the library, and a function
its parameters.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
LIBRARY: Final = ROOT / "layers" / "epochal" / "python"
READMES: Final = sorted((LIBRARY / "epochal").rglob("README.md"))

Definition = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef | ast.Assign | ast.AnnAssign


class Module:
    """A module of the library.

    Attributes:
        name: its dotted name.
        is_package: whether it is an `__init__.py`.
        has_constructs: whether it imports the constructs of AWS CDK.
        defined: what it defines, by name. Of a function with overloads this is the last definition.
        imported: dotted names of what it imports from the library, by the names that they have here.
        exported: its `__all__`; where that is computed, what it imports under the same name (`import Feed as Feed`).
    """

    def __init__(self, name: str, path: Path) -> None:
        """Read a module."""
        self.name: Final = name
        self.is_package: Final = path.name == "__init__.py"
        self.defined: Final[dict[str, Definition]] = {}
        self.imported: Final[dict[str, str]] = {}
        tree = ast.parse(path.read_text("utf-8"))
        blocks = [node for node in tree.body if isinstance(node, ast.If | ast.With)]  # TYPE_CHECKING, extras
        below = [each for node in blocks for each in node.body]
        imports = [node for node in (*tree.body, *below) if isinstance(node, ast.ImportFrom)]
        self.has_constructs: Final = any(node.module == "constructs" for node in imports)
        for node in imports:
            if (node.module or "").partition(".")[0] == "epochal":
                self.imported |= {
                    alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names
                }
        for node in tree.body:
            if isinstance(node, Definition):
                self.defined |= dict.fromkeys(names_of(node), node)
        listed = self.defined.get("__all__")
        value = listed.value if isinstance(listed, ast.Assign | ast.AnnAssign) else None
        elements = value.elts if isinstance(value, ast.List) else []
        constants = [each.value for each in elements if isinstance(each, ast.Constant)]
        self.exported: Final = [each for each in constants if isinstance(each, str)] or [
            alias.name for node in imports for alias in node.names if alias.asname == alias.name
        ]


def names_of(node: Definition) -> list[str]:
    """What a statement defines."""
    if isinstance(node, ast.Assign):
        return [target.id for target in node.targets if isinstance(target, ast.Name)]
    if isinstance(node, ast.AnnAssign):
        return [node.target.id] if isinstance(node.target, ast.Name) else []
    return [node.name]


@cache
def modules() -> Mapping[str, Module]:
    """All modules of the library."""
    paths = sorted((LIBRARY / "epochal").rglob("*.py"))
    dotted = {
        ".".join(path.relative_to(LIBRARY).with_suffix("").parts).removesuffix(".__init__"): path
        for path in paths
        if "shipped" not in path.parts
    }
    return {name: Module(name, path) for name, path in dotted.items()}


def place_of(dotted: str) -> tuple[Module, str] | None:
    """The module that defines a name, and the name there; None where the library has no such name."""
    package, _, name = dotted.rpartition(".")
    module = modules().get(package)
    if module is None:
        return None
    if name in module.defined:
        return module, name
    return place_of(module.imported[name]) if name in module.imported else None


def pages() -> Iterator[Path]:
    """The pages that users read."""
    yield ROOT / "README.md"
    yield from sorted((ROOT / "docs").rglob("*.md"))
    yield from READMES


def imports_of(code: str) -> Iterator[str]:
    """What an example imports from the library."""
    one = re.findall(r"^ *from (epochal[\w.]*) import ([^(\n#]+)", code, re.MULTILINE)
    several = re.findall(r"^ *from (epochal[\w.]*) import \(([^)]*)\)", code, re.MULTILINE)
    for module, listed in (*one, *several):
        for part in listed.split(","):
            if words := part.split():
                yield f"{module}.{words[0]}"


def roots() -> Iterator[str]:
    """The dotted names that users are told of."""
    for page in pages():
        text = page.read_text("utf-8")
        yield from re.findall(r"^::: (\S+)$", text, re.MULTILINE)
        for block in re.findall(r"^ *```py(?:thon)?\n(.*?)^ *```", text, re.MULTILINE | re.DOTALL):
            yield from imports_of(block)
    for module in modules().values():
        if module.is_package:
            yield from (f"{module.name}.{name}" for name in module.exported)
        elif re.fullmatch(r"epochal\.contrib\.\w+\.cdk", module.name) and module.has_constructs:
            classes = (name for name, node in module.defined.items() if isinstance(node, ast.ClassDef))
            yield from (f"{module.name}.{name}" for name in classes if not name.startswith("_"))


def parameters(function: ast.FunctionDef | ast.AsyncFunctionDef, *, bound: bool) -> str:
    """The parameters of a function, as they are called; `=` stands for a default."""
    given = function.args
    plain = [*given.posonlyargs, *given.args]
    required = len(plain) - len(given.defaults)
    words = [f"{each.arg}{'=' if number >= required else ''}" for number, each in enumerate(plain)]
    if given.posonlyargs:
        words.insert(len(given.posonlyargs), "/")
    if bound:
        del words[0]
        words = words[1:] if words[:1] == ["/"] else words
    if given.vararg:
        words.append(f"*{given.vararg.arg}")
    elif given.kwonlyargs:
        words.append("*")
    words += [
        f"{each.arg}{'' if default is None else '='}"
        for each, default in zip(given.kwonlyargs, given.kw_defaults, strict=True)
    ]
    if given.kwarg:
        words.append(f"**{given.kwarg.arg}")
    return f"({', '.join(words)})"


def decorators(node: ast.FunctionDef | ast.AsyncFunctionDef) -> set[str]:
    """The names of its decorators, without the modules that they are of."""
    called = [each.func if isinstance(each, ast.Call) else each for each in node.decorator_list]
    return {ast.unparse(each).rpartition(".")[2] for each in called}


def attributes_set_by(function: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[str]:
    """The attributes that a method gives its object."""
    for node in ast.walk(function):
        targets = node.targets if isinstance(node, ast.Assign) else []
        if isinstance(node, ast.AnnAssign):
            targets = [node.target]
        for target in targets:
            if isinstance(target, ast.Attribute) and ast.unparse(target.value) == "self":
                yield target.attr


def members(module: Module, node: ast.ClassDef) -> dict[str, str]:
    """What a class has for users, and how each is written; what bases in the library have comes first."""
    found: dict[str, str] = {}
    for base in node.bases:
        place = place_of(f"{module.name}.{ast.unparse(base).partition('[')[0]}")
        definition = place[0].defined[place[1]] if place else None
        if place and isinstance(definition, ast.ClassDef):
            found |= members(place[0], definition)
    for statement in node.body:
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
            named = decorators(statement)
            bound = "staticmethod" not in named
            if statement.name == "__init__":
                found["__init__"] = parameters(statement, bound=bound)
                found |= {name: name for name in attributes_set_by(statement)}
            elif named & {"property", "cached_property"}:
                found[statement.name] = statement.name
            else:
                found[statement.name] = f"{statement.name}{parameters(statement, bound=bound)}"
        elif isinstance(statement, Definition):
            found |= {name: name for name in names_of(statement)}
    return {name: text for name, text in found.items() if name == "__init__" or not name.startswith("_")}


def described(module: Module, name: str) -> Iterator[str]:
    """The lines of something that a module defines."""
    node, dotted = module.defined[name], f"{module.name}.{name}"
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        yield f"{dotted}{parameters(node, bound=False)}"
    elif isinstance(node, ast.ClassDef):
        inside = members(module, node)
        yield f"{dotted}{inside.pop('__init__', '')}"
        yield from (f"{dotted}.{text}" for text in inside.values())
    else:
        yield dotted


def keywords_of(module: Module, node: ast.AST) -> Iterator[str]:
    """The typed dictionaries that name the keywords of functions: `**options: Unpack[StoreOptions]`."""
    for each in ast.walk(node):
        if isinstance(each, ast.arguments) and each.kwarg and each.kwarg.annotation:
            written = re.fullmatch(r"Unpack\[(\w+)\]", ast.unparse(each.kwarg.annotation))
            if written:
                yield f"{module.name}.{written[1]}"


def library() -> list[str]:
    """All public names of the library but its constructs."""
    return sorted(line for line in set(_lines()) if not _is_construct(line))


def constructs() -> list[str]:
    """The constructs, with their arguments and what they offer."""
    return sorted(line for line in set(_lines()) if _is_construct(line))


def fixtures() -> list[str]:
    """The fixtures of pytest, by the names that tests ask for."""
    found = []
    for module in modules().values():
        if module.name.rpartition(".")[2] == "pytest_plugin":
            for name, node in module.defined.items():
                if isinstance(node, ast.FunctionDef) and "fixture" in decorators(node):
                    called = re.search(r"name='(\w+)'", " ".join(map(ast.unparse, node.decorator_list)))
                    found.append(called[1] if called else name)
    return sorted(found)


def _is_construct(line: str) -> bool:
    return "cdk" in re.split(r"[.( ]", line.partition(" = ")[2] or line.partition("(")[0])


@cache
def _lines() -> tuple[str, ...]:
    lines, waiting, seen = [], list(roots()), set()
    while waiting:
        dotted = waiting.pop()
        if dotted in seen:
            continue
        seen.add(dotted)
        if dotted in modules():
            lines.append(dotted)
            waiting += [f"{dotted}.{name}" for name in modules()[dotted].exported]
        elif place := place_of(dotted):
            module, name = place
            lines += described(module, name)
            if f"{module.name}.{name}" != dotted:
                lines.append(f"{dotted} = {module.name}.{name}")
            waiting += keywords_of(module, module.defined[name])
    return tuple(lines)
