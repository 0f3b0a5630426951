"""The size of the library, measured: how much there is to read, and how many files one operation passes."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from dataclasses import dataclass, field
from io import StringIO
from math import inf
from pathlib import Path
from types import FrameType
from typing import Any, Final

from epochal import Event, FeedEvent
from epochal.deployment import Deployment
from epochal.http.gateway import serve
from epochal.indexer import Record
from epochal.layout.port import READ_MODELS, store_tables
from epochal.reactions.handling import Member
from epochal.reactions.reaction import Delivery, Reaction, reaction
from epochal.reactions.reactor import Reactor
from epochal.read_models.documents import Documents
from epochal.store.driver import Driver, Meter
from epochal.testing.memory import MemoryTables
from epochal.testing.stores import MemoryBucket, memory_settings
from tests.support.api import Context, gateway_event
from tests.support.inline import Inline
from tests.unit.project.test_layouts_named import OFFENDERS, PLUGINS

ROOT: Final = Path(__file__).resolve().parents[3]
LIBRARY: Final = ROOT / "layers" / "epochal" / "python" / "epochal"

CORE: Final = ("model", "plan", "codec", "layout", "pages", "store", "dynamo")
"""Rooms of the core; what is a plug-in's in them is none of it."""

PARTITION: Final = 30_000
"""Of the streams in a feed of one partition each."""


@dataclass(slots=True)
class Source:
    """What is counted of a file."""

    path: Path
    lines: int = 0
    forwarding: list[str] = field(default_factory=list)
    inner_imports: int = 0

    @property
    def place(self) -> str:
        """Where it is, as the list of plug-ins has it."""
        return f"epochal/{self.path.relative_to(LIBRARY)}"

    @property
    def in_core(self) -> bool:
        """Whether it is the core's, and no plug-in's."""
        room = self.path.relative_to(LIBRARY).parts[0]
        return room in CORE and not any(each.owns(self.place) for each in PLUGINS.values())


def sources() -> list[Source]:
    """All files of the library."""
    return [source_of(path) for path in sorted(LIBRARY.rglob("*.py"))]


def source_of(path: Path) -> Source:
    """A file, counted."""
    code = path.read_text()
    found = Source(path)
    documents: set[int] = set()

    def visit(node: ast.AST, function: str) -> None:
        """Statements alone: no expression has any in it but a lambda's, which is none."""
        for child in _statements(node):
            match child:
                case ast.Expr(value=ast.Constant(value=str())):
                    documents.update(range(child.lineno, (child.end_lineno or child.lineno) + 1))
                case ast.Import() | ast.ImportFrom() if function:
                    found.inner_imports += 1
                case ast.FunctionDef() | ast.AsyncFunctionDef():
                    if _only_forwards(child):
                        found.forwarding.append(f"{path.relative_to(LIBRARY)}:{child.lineno} {child.name}")
                    visit(child, child.name)
                case _:
                    visit(child, function)

    visit(ast.parse(code), "")
    found.lines = sum(
        1
        for number, line in enumerate(code.splitlines(), 1)
        if number not in documents and (bare := line.strip()) and not bare.startswith("#")
    )
    return found


def _statements(node: ast.AST) -> Iterator[ast.AST]:
    for name in ("body", "orelse", "finalbody", "handlers", "cases"):
        yield from getattr(node, name, ())


def _only_forwards(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether a function is one call, with nothing but what it was given and attributes of that.

    A function that is decorated forwards for a reason: it is a property, or one of a kind.
    """
    body = [each for each in function.body if not isinstance(each, ast.Expr) or not _is_text(each.value)]
    if function.decorator_list or len(body) != 1 or not isinstance(body[0], ast.Return | ast.Expr):
        return False
    value = body[0].value
    if isinstance(value, ast.YieldFrom | ast.Await):
        value = value.value
    taken = function.args
    parameters = {each.arg for each in (*taken.posonlyargs, *taken.args, *taken.kwonlyargs)}
    match value:
        case ast.Call(func=called, args=args, keywords=keywords):
            given = [*args, *(each.value for each in keywords)]
            return _root(called) is not None and all(_root(each) in parameters for each in given)
        case _:
            return False


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _root(node: ast.AST) -> str | None:
    """The name that attributes are looked up from."""
    while isinstance(node, ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else None


def words() -> int:
    """In all pages of the repository."""
    listed = subprocess.run(
        ["git", "ls-files", "*.md"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.splitlines()
    return sum(len((ROOT / each).read_text().split()) for each in listed if (ROOT / each).exists())


def decisions() -> int:
    """Those that live."""
    pages = (ROOT / "docs" / "decisions").glob("*.md")
    return sum(len(re.findall(r"^## \d+\. ", page.read_text(), re.MULTILINE)) for page in pages)


# ---------------------------------------------------------------------------------------------------- files crossed


def crossed(operation: Callable[[], object], prepare: Callable[[], object] = lambda: None) -> int:
    """Files of the library that execute a function in an operation, which has been done before.

    Importing a module is none, nor is the table in memory.
    """
    files: set[str] = set()
    library, testing = f"{LIBRARY}/", f"{LIBRARY}/testing/"

    def called(frame: FrameType, event: str, _: Any) -> None:
        name = frame.f_code.co_filename
        if event == "call" and name.startswith(library) and frame.f_code.co_name != "<module>":
            files.add(name)

    prepare()
    operation()
    prepare()
    threading.setprofile(called)
    sys.setprofile(called)
    try:
        operation()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return sum(not name.startswith(testing) for name in files)


class World:
    """A deployment in memory, and the operations that are looked at."""

    def __init__(self) -> None:
        """With a stream that has begun."""
        self.tables = MemoryTables({spec.kind: spec for spec in (*store_tables(), READ_MODELS)})
        self.on = Deployment(
            settings=memory_settings(read_models_table=READ_MODELS.kind),
            driver=Driver(execute=self.tables.execute, meter=Meter()),
            bucket=MemoryBucket(),
        )
        self.streams, self.indexer = self.on.streams, self.on.indexer
        self.counts = self.on.read_models.open("counts", 1)
        self.handler = serve("append", self.on)
        self.indexer.register()
        self.token = self.streams.append("Order-1", [Event.json("Placed", {"n": 1})]).token
        member = Member(reaction=self._reaction(), reader=self.on.feed)
        self.reactor = Reactor(member=member, executor=Inline)

    def crossed(self) -> dict[str, int]:
        """By the operation."""
        return {
            "append over HTTP": crossed(self.append_over_http),
            "append with a token": crossed(self.append),
            "replay": crossed(self.replay),
            "index one append": crossed(self.index, self.append),
            "one delivery": crossed(self.deliver, self.append_and_index),
        }

    def append_over_http(self) -> None:
        """As API Gateway hands it on."""
        body = b'{"events": [{"type": "Placed", "data": {"n": 1}}]}'
        with redirect_stdout(StringIO()):  # metrics
            answer = self.handler(gateway_event("POST", "/streams/Order-2/events", body), Context())
        assert answer["statusCode"] == 201

    def append(self) -> None:
        """One request."""
        self.token = self.streams.append("Order-1", [Event.json("Paid", {"n": 1})], expected=self.token).token

    def replay(self) -> None:
        """Every event of a stream."""
        assert list(self.streams.read("Order-1"))

    def index(self) -> None:
        """The latest append."""
        changes = self.tables.changes(self.streams.table)
        record = Record(table=self.streams.table, sequence_number=f"{len(changes):021d}", image=changes[-1])
        assert not self.indexer.index([record]).failed

    def append_and_index(self) -> None:
        """What a delivery needs."""
        self.append()
        self.index()

    def deliver(self) -> None:
        """What was indexed since the last time, to a reaction that keeps a read model."""
        assert self.reactor.run(PARTITION, seconds=inf).events

    def _reaction(self) -> Reaction:
        def count(documents: Documents, event: FeedEvent) -> None:
            documents.put(event.type, documents.get(event.type, 0) + 1)

        @reaction(name="counts", categories=["Order"], attempts=1)
        def counting(delivery: Delivery) -> None:
            self.counts.apply(delivery, count)

        return counting


def measured() -> dict[str, int]:
    """All figures, by name."""
    found = sources()
    core = [each for each in found if each.in_core]
    return {
        "code lines of the library": sum(each.lines for each in found),
        "code lines of the core": sum(each.lines for each in core),
        "modules": len(found),
        "modules of the core": len(core),
        **{f"files crossed by: {name}": count for name, count in World().crossed().items()},
        "files of the core that name a plug-in": sum(each.place in OFFENDERS for each in core),
        "files that name a plug-in": len(OFFENDERS),
        "functions that only forward": sum(len(each.forwarding) for each in found),
        "imports inside functions": sum(each.inner_imports for each in found),
        "words in all pages": words(),
        "decisions that live": decisions(),
    }
