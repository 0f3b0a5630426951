"""How a setting is declared: once, as a field of `epochal.settings.Settings`, from which everything else is made.

the field itself        what the library's code reads, typed, with its default
variable                of a function's environment, for each function in `functions`
output                  of the store's stack, by which programs and commands find what is stored
option                  of the command line
a stage's field         in `cdk.json`, with the rule of its kind (`cdk.stage_rules`), where it is one of `Options`
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
    """The kind of a setting that is any text; a stage's value must match `pattern`.

    Attributes:
        pattern: regular expression for the whole value.
        meaning: the pattern in words, for error messages.
    """

    pattern: str = r"\S*"
    meaning: str = "text without spaces"


@dataclass(frozen=True, slots=True, kw_only=True)
class Number:
    """The kind of a setting that is a whole number from `least` to `most`."""

    least: int = 1
    most: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Flag:
    """The kind of a setting that is `true` or `false`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OneOf:
    """The kind of a setting that is one of several texts; the code that uses the setting refuses others."""

    of: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Names:
    """The kind of a setting that is a list of names, separated by commas."""


Kind = Text | Number | Flag | OneOf | Names

Broken = Callable[[str, str], str]
"""Function of a setting's text before and after a change, which returns the rule that the change breaks once there are
events; empty if the change is allowed.
"""


def must_stay(before: str, now: str) -> str:
    """Return the rule that a change of a setting breaks, if the setting must keep its value; else "".

    Stored data depends on the value.
    """
    return "" if before == now else f"must stay {before or 'unset'}"


def must_not_fall(before: str, now: str) -> str:
    """Return the rule that a change of a number breaks, if it must not become smaller; else "".

    Stored data may be anywhere below the number.
    """
    return "" if int(now) >= int(before) else f"must stay at least {before}"


def must_keep(before: str, now: str) -> str:
    """Return the rule that a change of names breaks, if none may be removed; else "".

    Stored data depends on each of the names, and on none that is added.
    """
    missing = [name for name in before.split(",") if name and name not in now.split(",")]
    return f"must keep {', '.join(missing)}" if missing else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """A setting, as it was declared.

    Attributes:
        name: name of the setting.
        default: value where nothing else is set.
        kind: kind of its values.
        help: description in a few words, which the command line and the output show.
        functions: names of the functions that get the setting in their environment.
        output: name of the output of the store's stack; empty for none.
        option: whether the command line has an option of this name.
        chosen: for a setting of a plug-in, whether a stage chooses its value; else only its deployment knows it.
        table: kind of the table that it names; empty where it names none.
        broken: function that returns the rule that a change breaks once there are events; None where it may change at
            any time.
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
        """Name of the environment variable of functions and of the command line."""
        return f"{PREFIX}{self.name.upper()}"

    @property
    def flag(self) -> str:
        """The option of the command line."""
        return f"--{self.name.replace('_', '-')}"

    @property
    def table(self) -> str:
        """Kind of the table that the setting names, derived from its own name; empty where it names none."""
        kind, table, _ = self.name.partition("_table")
        return kind.replace("_", "-") if table else ""

    def parse(self, text: str, field: str) -> Any:
        """Parse a text as a value of the setting's kind; raise `InvalidInput` if it is none.

        Of the kinds `Text` and `OneOf`, every text is accepted here.

        Args:
            field: name of the variable, output or option, for error messages.

        Raises:
            InvalidInput: the text is no value of this kind; names `field`.
        """
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
                if any(not name or name != name.strip() for name in names):
                    raise InvalidInput(field, "must be names separated by commas, without spaces")
                return names
            case Text() | OneOf():
                return text

    def text(self, value: Any) -> str:
        """Return a value as environments and outputs have it; empty for None."""
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
    """Return a dataclass field, with this default, that declares a setting.

    Args:
        output: name of the output of the store's stack; True for the field's name in CamelCase, False for none.
        chosen, broken, functions, option: as of `Setting`.
    """
    metadata = {
        "kind": kind,
        "help": help,
        "functions": functions,
        "output": output,
        "option": option,
        "chosen": chosen,
        "broken": broken,
    }
    return field(default=default, metadata=metadata)


of_tables: Final = partial(setting, output=True, option=True)
"""Declares a setting that belongs to the tables: clients read it from an output of the store's stack, or get it as an
option."""


def declared(declaration: Field[Any]) -> Setting:
    """Return the setting that a dataclass field declares."""
    output = declaration.metadata["output"]
    if isinstance(output, bool):
        output = "".join(map(str.capitalize, declaration.name.split("_"))) if output else ""
    return Setting(
        name=declaration.name, default=declaration.default, **{**declaration.metadata, "output": output}
    )
