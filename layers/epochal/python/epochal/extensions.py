"""The optional packages, and the parts that each adds to the core and to the surfaces.

Nothing outside `epochal.contrib` imports an optional package. Its parts are looked up here, and imported when they are
used. A package that was deleted has no parts. The layouts of other libraries are listed in `epochal.plugins` instead,
with their stored names, which stay reserved when their package is deleted.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from epochal.errors import InvalidInput
from epochal.lazy_dataclasses import dataclass
from epochal.named_objects import is_installed, load_object


@dataclass(frozen=True, slots=True, kw_only=True)
class Extension:
    """An optional package, and the places of its parts in the library.

    Each part is written `module:name` or `module`, and empty where the package has none.

    Attributes:
        package: its import name.
        commands: a tuple of commands for the command line.
        default_store: a function that opens the store to use when a command names none, or raises `NoStore`.
        operations: a module of HTTP operations: the tuple `OPERATIONS`, and the function `of_streams`, which makes the
            operations of one store of streams. Every cold start imports it, so it must import little.
        documented: the module that declares what these operations take and answer.
        construct: the CDK construct that a store adds when the stage's setting `timers` is true.
        process: the CDK construct of a stage's reaction that is declared as a process.
        clock: the function behind `MemoryStore.advance`, which moves the clock of a deployment in memory.
        fixtures: a module of pytest fixtures.
        proofs: a function that yields the checks that `epochal prove` makes of the package.
        event_schemas: a function that compiles a document of JSON Schemas to the source of a module that checks events.
    """

    package: str
    commands: str = ""
    default_store: str = ""
    operations: str = ""
    documented: str = ""
    construct: str = ""
    process: str = ""
    clock: str = ""
    fixtures: str = ""
    event_schemas: str = ""
    proofs: str = ""


EXTENSIONS: Final = (
    Extension(package="epochal.contrib.console", commands="epochal.contrib.console.commands:COMMANDS"),
    Extension(
        package="epochal.contrib.local",
        commands="epochal.contrib.local.commands:COMMANDS",
        default_store="epochal.contrib.local.opened:open_deployed",
        fixtures="epochal.contrib.local.pytest_plugin",
    ),
    Extension(package="epochal.contrib.lake", proofs="epochal.contrib.lake.proofs:trials"),
    Extension(package="epochal.contrib.mcp", commands="epochal.contrib.mcp.commands:COMMANDS"),
    Extension(package="epochal.contrib.processes", process="epochal.contrib.processes.cdk:Process"),
    Extension(package="epochal.contrib.proving", commands="epochal.contrib.proving.commands:COMMANDS"),
    Extension(package="epochal.contrib.publish", proofs="epochal.contrib.publish.proofs:trials"),
    Extension(
        package="epochal.contrib.schemas",
        commands="epochal.contrib.schemas.commands:COMMANDS",
        event_schemas="epochal.contrib.schemas.body_checks:compiled_from",
    ),
    Extension(package="epochal.contrib.sql", proofs="epochal.contrib.sql.proofs:trials"),
    Extension(
        package="epochal.contrib.timers",
        commands="epochal.contrib.timers.commands:COMMANDS",
        operations="epochal.contrib.timers.operations",
        documented="epochal.contrib.timers.http",
        construct="epochal.contrib.timers.cdk:Timers",
        clock="epochal.contrib.timers.testing:advance",
    ),
    Extension(package="epochal.contrib.transfer", commands="epochal.contrib.transfer.commands:COMMANDS"),
)


def places(kind: str) -> Iterator[str]:
    """Yield the places of the parts of one kind, an attribute of `Extension`, of installed packages."""
    for extension in EXTENSIONS:
        if (place := getattr(extension, kind)) and is_installed(extension.package):
            yield place


def parts(kind: str) -> Iterator[Any]:
    """Yield the parts of one kind of all installed packages, each imported when it is reached."""
    return map(load_object, places(kind))


def part(kind: str) -> Any:
    """Return the part of a kind that only one package has; None if that package is not installed."""
    return next(parts(kind), None)


def required_part(kind: str, needed_by: str) -> Any:
    """Return the part of a kind that only one package has; raise `InvalidInput` if it is not installed.

    Args:
        needed_by: the field or method that cannot work without it, for the error.

    Raises:
        InvalidInput: the package is not installed.
    """
    value = part(kind)
    if value is None:
        (package,) = (extension.package for extension in EXTENSIONS if getattr(extension, kind))
        raise InvalidInput(needed_by, f"needs the optional package {package}, which is not installed")
    return value
