"""What users hand to commands: JSON as text, from a file (`@path`) or from standard input (`-`); expected versions. And
what only the command line refuses.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, Final, TypeVar

import click

from epochal.codec import json
from epochal.deciders.codecs import EventCodec
from epochal.errors import EpochalError, InvalidInput
from epochal.http.nodes import Node
from epochal.model.events import Unfold
from epochal.model.expected_version import AtVersion, Expected, ExpectedVersion
from epochal.model.quantities import quantity
from epochal.model.tokens import parse_token
from epochal.named_objects import load_object
from epochal.settings import variable

T = TypeVar("T")

LONGEST: Final = 1_000_000_000
"""Seconds, 31 years: no system sleeps through some centuries."""


class Seconds(click.FloatRange):
    """A click type for a number of seconds of at least `min`, and at most 31 years."""

    name = "seconds"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return the seconds as a float; fail, as click's types do, if they are out of bounds."""
        seconds: float = super().convert(value, param, ctx)
        if not seconds <= LONGEST:
            self.fail(f"{value} is not a number of seconds.", param, ctx)
        return seconds


def load_named(target: str, field: str, what: str) -> Any:
    """Import `module:name`, also from this directory; return what it names, None if the module lacks it.

    Raises:
        InvalidInput: the text is not of that form, or there is no such module; one in a folder of the current directory
            is named in the error.
    """
    module, colon, name = target.partition(":")
    if not (module and colon and name):
        raise InvalidInput(field, f"must be module:name, the name of {what} in a module")
    sys.path.insert(0, str(Path.cwd()))
    try:
        return getattr(load_object(module), name, None)
    except ModuleNotFoundError as error:
        raise InvalidInput(field, f"there is no module {error.name}{_hint(str(error.name))}") from error


def _hint(module: str) -> str:
    """Say in which folder of the current directory a module is that was not found; empty if it is in none."""
    folder = next((path.parent.name for path in sorted(Path.cwd().glob(f"*/{module}.py"))), None)
    if folder is None:
        return " in the current directory or among installed packages"
    return f" in the current directory, but there is one in {folder}: set PYTHONPATH={folder}"


def codec_of(target: str) -> EventCodec[Any]:
    """Import the codec that `module:name` names."""
    codec = load_named(target, "--codec", "a codec")
    if not isinstance(codec, EventCodec):
        raise InvalidInput("--codec", f"{target} is not a codec; name one as module:name")
    return codec


YES = click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
"""Of commands that ask first: `confirm`."""


def confirm(question: str, *, yes: bool) -> None:
    """Ask a question on standard error, and raise unless the answer is yes; with `--yes`, do nothing.

    Raises:
        click.Abort: the answer is no.
        click.UsageError: there is no terminal, as in a script.
    """
    if yes:
        return
    try:
        agreed = click.confirm(question, err=True)
    except click.Abort:
        if sys.stdin.isatty():  # pressed Ctrl-C
            raise
        click.echo(err=True)
        raise click.UsageError("No terminal to confirm on; pass --yes.") from None
    if not agreed:
        raise click.Abort


def text_of(source: str, name: str) -> str:
    """Read the text that an argument stands for: a file for `@path`, standard input for `-`, else itself.

    Raises:
        InvalidInput: the file cannot be read, or is not UTF-8.
    """
    try:
        if source == "-":
            return sys.stdin.read().removeprefix("\ufeff")
        # Some editors begin a file with a byte order mark.
        return Path(source[1:]).read_text("utf-8-sig") if source.startswith("@") else source
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(name, f"cannot be read: {error}") from error


def opened(source: str, name: str, mode: str = "rb") -> IO[Any]:
    """Open the file `source` and return it; raise `InvalidInput` if it cannot be opened.

    Raises:
        InvalidInput: it cannot be opened.
    """
    try:
        return Path(source).open(mode, encoding=None if "b" in mode else "utf-8")
    except OSError as error:
        raise InvalidInput(name, f"cannot be opened: {error}") from error


def json_of(source: str, name: str) -> Any:
    """Read JSON from an argument: `@path`, `-` or the text itself.

    Raises:
        InvalidInput: it is not JSON.
    """
    return parsed(text_of(source, name), name)


def body_of(source: str | None, name: str) -> bytes:
    """Read a body from an argument, as compact JSON with its numbers as written; empty for None."""
    if source is None:
        return b""
    value = json_of(source, name)
    try:
        return json.dumps(value)
    except ValueError as error:
        raise InvalidInput(name, "must be JSON without lone surrogates, which UTF-8 cannot encode") from error


def several_of(source: str, read: Callable[[Node], T], name: str = "--events") -> list[T]:
    """Read events or appends from an argument, as a JSON array or as one JSON document a line."""
    text = text_of(source, name)
    if text.lstrip().startswith("["):
        nodes = Node(parsed(text, name), name.removeprefix("--").lower()).items(most=sys.maxsize)
        return [read(node) for node in nodes]
    return list(_lines(text, read, name))


def unfold_of(text: str) -> Unfold:
    """Read an unfold written `Type=JSON`, whose JSON may be `@path` or `-`."""
    kind, equals, source = text.partition("=")
    if not equals or not kind:
        raise InvalidInput("--unfold", "must be Type=JSON")
    return Unfold(type=kind, data=body_of(source, "--unfold"))


def expected_of(text: str) -> ExpectedVersion:
    """Read an expected version: a version, a token, or `any`, `no_stream` or `stream_exists`."""
    if text in {member.value for member in Expected}:
        return Expected(text)
    try:
        token = parse_token(text, "--expected")
    except InvalidInput as error:
        raise InvalidInput(
            "--expected", "must be a version, a token, or any, no_stream or stream_exists"
        ) from error
    return AtVersion(version=token.version) if token.etag is None else token


def _lines(text: str, read: Callable[[Node], T], name: str) -> Iterator[T]:
    """Parse each line as a JSON document, and name the line in errors."""
    for number, line in enumerate(text.split("\n"), 1):  # JSON may hold what else ends a line
        if line.strip():
            place = f"{name} line {number}"
            yield read(Node(parsed(line, place), place))


def parsed(text: str | bytes, name: str) -> Any:
    """JSON; raises `InvalidInput` naming its place where it is none."""
    try:
        return json.loads(text)
    except ValueError as error:
        raise InvalidInput(name, f"must be JSON: {error}") from error


NAMED: Final = 3
"""Streams that an error names."""


class NotThere(EpochalError, LookupError):
    """What a command is about is not there."""


def there(value: T | None, words: str) -> T:
    """Return what was found, or raise `NotThere` where that is None."""
    if value is None:
        raise NotThere(words)
    return value


class Unsound(EpochalError):
    """A command did what it could, and not all is as it should be."""


class NoStore(EpochalError):
    """Nothing says which store is meant."""

    def __init__(self, why: str) -> None:
        super().__init__(
            f"no store is named: {why}; "
            "name one with --stack epochal-prod-store, or with --streams-table and --index-table"
        )


def must_be_named(why: str, **tables: str) -> None:
    """Raise `TableUnnamed` for a table, by its setting, that nothing names."""
    for setting, table in tables.items():
        if not table:
            raise TableUnnamed(variable(setting), why)


class TableUnnamed(InvalidInput):
    """A command is about a table that nothing names; `variable` is its name in the environment."""

    def __init__(self, variable: str, why: str) -> None:
        option = variable.removeprefix("EPOCHAL_").lower().replace("_", "-")
        super().__init__(f"--{option}", f"{why}; {variable} sets it as well")


class ImportIncomplete(EpochalError):
    """Rows were not brought in, `first` says where and why; streams read otherwise than their source (`unlike`), or
    have events that the codec cannot read (`unread`).
    """

    def __init__(self, rejected: int, first: str, unlike: Sequence[str], unread: Sequence[str] = ()) -> None:
        """Say which rows did not fit, and which streams differ from their source or cannot be read."""
        rows = f"{quantity(rejected, 'row')} did not fit: {first}" if rejected else ""
        other = f"streams differ from their source: {', '.join(unlike[:NAMED])}" if unlike else ""
        codec = (
            f"the codec cannot read {quantity(len(unread), 'stream')}: {'; '.join(unread[:NAMED])}"
            if unread
            else ""
        )
        super().__init__("; ".join(part for part in (rows, other, codec) if part))
        self.rejected = rejected
        self.unlike = unlike
        self.unread = unread


class IndexUnsound(EpochalError):
    """The index is not right, or could not be made right; `found` says by what would mend it how often."""

    def __init__(self, counts: Mapping[str, int]) -> None:
        """Say how many findings need which remedy."""
        advice = {
            "repair": "`epochal index repair` repairs these",
            "rebuild": "only `epochal index rebuild` repairs these",
            "look": "inspect the store itself",
        }
        summary = "; ".join(f"{count:,} × {name}: {advice[name]}" for name, count in sorted(counts.items()))
        super().__init__(f"the index has problems. {summary}")
        self.found = counts
