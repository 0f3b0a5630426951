"""The optional packages that there are, and what each brings to what is not optional.

Nothing outside `epochal.contrib` imports an optional package. Whatever one brings is found here by its name, and
imported when it is needed. A package that was deleted brings nothing. Layouts of other libraries have a list of their
own (`epochal.plugins`), since their names and partitions are stored.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from epochal.errors import InvalidInput
from epochal.lazy_dataclasses import dataclass
from epochal.plugins import at, is_there


@dataclass(frozen=True, slots=True, kw_only=True)
class Extension:
    """An optional package. Each part is written `module:name` or `module`, and empty where the package has none.

    Attributes:
        package: the package, which is looked for before anything of it is imported.
        commands: a tuple of commands of the command line.
        default_store: opens the store that a command is about where none is named, or raises `NoStore`.
        operations: a module with operations of the HTTP API: `OPERATIONS`, and `of_streams`, which makes those of a
            store of streams. It imports nothing: a cold start reads it.
        documented: the module with what these operations take and answer.
        construct: a construct that a store has where its stage says so, by the field of the stage that has its name.
        clock: what lets time go by in a deployment in memory (`testing.feeds.MemoryFeed.advance`).
        fixtures: a module with fixtures of pytest.
        event_schemas: compiles a document of JSON Schemas to a module that checks events by them.
    """

    package: str
    commands: str = ""
    default_store: str = ""
    operations: str = ""
    documented: str = ""
    construct: str = ""
    clock: str = ""
    fixtures: str = ""
    event_schemas: str = ""


EXTENSIONS: Final = (
    Extension(package="epochal.contrib.console", commands="epochal.contrib.console.commands:COMMANDS"),
    Extension(
        package="epochal.contrib.local",
        commands="epochal.contrib.local.commands:COMMANDS",
        default_store="epochal.contrib.local.opened:open_deployed",
        fixtures="epochal.contrib.local.pytest_plugin",
    ),
    Extension(package="epochal.contrib.mcp", commands="epochal.contrib.mcp.commands:COMMANDS"),
    Extension(package="epochal.contrib.proving", commands="epochal.contrib.proving.commands:COMMANDS"),
    Extension(
        package="epochal.contrib.schemas",
        commands="epochal.contrib.schemas.commands:COMMANDS",
        event_schemas="epochal.contrib.schemas.asyncapi:compiled_from",
    ),
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


def places(part: str) -> Iterator[str]:
    """Where that part of every optional package is which is there and has one."""
    for extension in EXTENSIONS:
        if (place := getattr(extension, part)) and is_there(extension.package):
            yield place


def parts(part: str) -> Iterator[Any]:
    """That part of every optional package which is there and has one, imported now."""
    return map(at, places(part))


def part(name: str) -> Any:
    """The part that one optional package alone has; None where that package is not there."""
    return next(parts(name), None)


def needed(name: str, field: str) -> Any:
    """The part that one optional package alone has.

    Raises:
        InvalidInput: the package is not there; `field` is what needs it.
    """
    if (found := part(name)) is None:
        (package,) = (each.package for each in EXTENSIONS if getattr(each, name))
        raise InvalidInput(field, f"needs the optional package {package}, which is not installed")
    return found
