"""How a setting is declared: once, as a field of `epochal.settings.Settings`, from which everything else is made.

the field itself        what the library's code reads, typed, with its default
variable                of a function's environment, for each function in `functions`
output                  of the store's stack, by which programs and commands find what is stored
option                  of the command line
a stage's field         in `cdk.json`, with the rule of its kind (`epochal.cdk.stages`), where it is one of `Options`
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import Field
from functools import partial
from typing import Any, Final

from epochal.errors import InvalidInput
from epochal.lazy_dataclasses import dataclass, field

PREFIX = "EPOCHAL_"
"""Begins the names of variables."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """Any text; what a stage chooses must match `pattern`, which `meaning` says in words."""

    pattern: str = r"\S*"
    meaning: str = "text without spaces"


@dataclass(frozen=True, slots=True, kw_only=True)
class Number:
    """A whole number."""

    least: int = 1
    most: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Flag:
    """`true` or `false`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OneOf:
    """One of several texts. The code that uses it refuses others."""

    of: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Names:
    """Names separated by commas."""


Kind = Text | Number | Flag | OneOf | Names

Broken = Callable[[str, str], str]
"""The rule that a change of a setting breaks once there are events: of its text before and after; empty where it breaks
none.
"""


def must_stay(before: str, now: str) -> str:
    """What is stored was written with this value."""
    return "" if before == now else f"must stay {before or 'unset'}"


def must_not_fall(before: str, now: str) -> str:
    """What is stored may be anywhere below this number."""
    return "" if int(now) >= int(before) else f"must stay at least {before}"


def must_keep(before: str, now: str) -> str:
    """What is stored depends on each of these names, and on none that is added."""
    missing = [each for each in before.split(",") if each and each not in now.split(",")]
    return f"must keep {', '.join(missing)}" if missing else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """A setting, as it was declared.

    Attributes:
        help: what it is, in a few words: the command line and the output show them.
        functions: those that get it in their environment; the others do not.
        output: of the store's stack; empty for none.
        option: whether the command line has an option of this name.
        chosen: of what a plug-in declares: by a stage; else its deployment alone knows it.
        table: the kind of the table that it names; empty where it names none.
        broken: says which rule a change breaks once there are events; None where it may change at any time.
    """

    name: str
    default: Any
    kind: Kind
    help: str
    functions: tuple[str, ...]
    output: str
    option: bool
    chosen: bool = True
    broken: Broken | None = None

    @property
    def variable(self) -> str:
        """Of the environment of functions and of the command line."""
        return f"{PREFIX}{self.name.upper()}"

    @property
    def flag(self) -> str:
        """The option of the command line."""
        return f"--{self.name.replace('_', '-')}"

    @property
    def table(self) -> str:
        """The kind of the table that it names, which its own name tells; empty where it names none."""
        kind, table, _ = self.name.partition("_table")
        return kind.replace("_", "-") if table else ""

    def parse(self, text: str, field: str) -> Any:
        """Read a value as `text` writes it; raises `InvalidInput` naming `field`."""
        match self.kind:
            case Number(least=least, most=most):
                if not (text.isascii() and text.isdigit() and least <= int(text) <= most):
                    raise InvalidInput(field, f"must be a whole number from {least} to {most:,}")
                return int(text)
            case Flag():
                if text not in ("true", "false"):
                    raise InvalidInput(field, "must be true or false")
                return text == "true"
            case Names():
                names = tuple(text.split(",")) if text else ()
                if any(not each or each != each.strip() for each in names):
                    raise InvalidInput(field, "must be names separated by commas, without spaces")
                return names
            case Text() | OneOf():
                return text

    def text(self, value: Any) -> str:
        """A value as environments and outputs have it; empty where there is nothing to say."""
        if value is None:
            return ""
        if isinstance(value, bool):
            return "true" if value else "false"
        return ",".join(value) if isinstance(value, tuple) else str(value)


def setting(
    default: Any,
    kind: Kind,
    help: str,  # noqa: A002  the word that commands have for it
    functions: tuple[str, ...],
    *,
    output: bool | str = False,
    option: bool = False,
    chosen: bool = True,
    broken: Broken | None = None,
) -> Any:
    """Declare a setting, as the default of a field of a dataclass. An output has the field's name, or the one given."""
    told = {
        "kind": kind,
        "help": help,
        "functions": functions,
        "output": output,
        "option": option,
        "chosen": chosen,
        "broken": broken,
    }
    return field(default=default, metadata=told)


of_tables: Final = partial(setting, output=True, option=True)
"""Declares a setting that belongs to the tables: clients find it in an output of the store's stack, or are told it."""


def declared(each: Field[Any]) -> Setting:
    """What a field declares."""
    output = each.metadata["output"]
    if isinstance(output, bool):
        output = "".join(map(str.capitalize, each.name.split("_"))) if output else ""
    return Setting(name=each.name, default=each.default, **{**each.metadata, "output": output})
