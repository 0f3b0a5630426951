"""How values of a class become JSON values, by the library that the class is made with.

    dataclass, attrs      the hints of their fields, as `type_hints` reads them
    pydantic              `model_dump` and `model_validate_json`: validators, aliases and defaults are the model's; a
                          class is refused if a field cannot be read by the alias that it is written under
    msgspec.Struct        `to_builtins` and `json.decode`

Pydantic and msgspec are imported where they are used: a program that has such a class has loaded its library. A value
that could not be read back is not written.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from epochal.codec import json
from epochal.codec.json import TooDeep
from epochal.deciders.mismatch import MISSING, Mismatch
from epochal.deciders.round_trips import must_come_back
from epochal.deciders.type_hints import shape_of


class ValueForm(NamedTuple):
    """How values of one class are written and read.

    All three functions raise `ValueError`, and `Mismatch` if a field is known.

    Attributes:
        write: converts a value into what JSON can hold.
        read: converts what JSON holds into a value.
        parse: converts JSON text into a value, directly if the library has a parser of its own.
    """

    write: Callable[[Any], Any]
    read: Callable[[Any], Any]
    parse: Callable[[bytes], Any]


def form_of(kind: type, *, event: bool = False) -> ValueForm:
    """Return how values of a class are written and read, by the library the class is made with.

    The times of an `event` have an offset, and it has no member named like its version.

    Raises:
        TypeError: something in it has no form in JSON.
    """
    if hasattr(kind, "__pydantic_validator__"):
        return _parsed_by(*_pydantic(kind, event))
    if hasattr(kind, "__struct_config__"):
        return _parsed_by(*_msgspec(kind, event))
    shape = shape_of(kind, aware=event)
    return ValueForm(shape.write, shape.read, lambda data: shape.read(json.loads(data)))


def _parsed_by(write: Callable[[Any], Any], parse: Callable[[bytes], Any]) -> ValueForm:
    """Build a form from a function that writes and one that parses JSON."""
    return ValueForm(write, lambda value: parse(json.dumps(value)), parse)


_LACKS: Final = re.compile(r"Object missing required field `([^`]*)`.*")
"""Pattern of msgspec's error message for a missing field."""


def _compared(
    write: Callable[[Any], Any],
    parse: Callable[[bytes], Any],
    as_json: Callable[[Any], bytes],
    *,
    aware: bool,
) -> Callable[[Any], Any]:
    """Wrap a write function so that it reads back and compares each value before it is stored."""

    def write_readable(value: Any) -> Any:
        """Write a value; raise `Mismatch` if it could not be read back as it was."""
        try:
            written = write(value)
            try:
                back = parse(as_json(written))
            except Mismatch as mismatch:
                raise Mismatch(f"could not be read back: {mismatch.rule}", mismatch.path) from None
            must_come_back(value, back, aware=aware)
        except RecursionError as error:
            raise TooDeep("nested too deep") from error
        return written

    return write_readable


def _pydantic(kind: type, event: bool) -> tuple[Callable[[Any], Any], Callable[[bytes], Any]]:
    """Return functions that write and parse values of a Pydantic class, after checking the class."""
    import pydantic  # noqa: PLC0415  as above
    from pydantic_core import to_json  # noqa: PLC0415  as above

    from epochal.deciders.pydantic_checks import check_fields  # noqa: PLC0415  needs Pydantic

    adapter: pydantic.TypeAdapter[Any] = pydantic.TypeAdapter(kind)
    check_fields(adapter.core_schema, kind, event=event)

    def write(value: Any) -> Any:
        # What it would warn of does not come back as it was.
        return adapter.dump_python(value, mode="json", by_alias=True, round_trip=True, warnings="none")

    def parse(data: bytes) -> Any:
        """Parse a value, converting Pydantic's first error into a `Mismatch`."""
        try:
            return adapter.validate_json(data)
        except pydantic.ValidationError as error:
            first = error.errors(include_url=False, include_context=False, include_input=False)[0]
            rule = MISSING if first["type"] == "missing" else first["msg"]
            raise Mismatch(rule, ".".join(map(str, first["loc"]))) from None

    return _compared(write, parse, to_json, aware=event), parse


def _msgspec(kind: Any, event: bool) -> tuple[Callable[[Any], Any], Callable[[bytes], Any]]:
    """Return functions that write and parse values of a msgspec class, after checking the class."""
    import msgspec  # noqa: PLC0415  as above

    from epochal.deciders.msgspec_checks import check_struct  # noqa: PLC0415  needs msgspec

    check_struct(kind, event=event)
    decode = msgspec.json.Decoder(kind).decode

    def write(value: Any) -> Any:
        return msgspec.to_builtins(value, str_keys=True)

    def parse(data: bytes) -> Any:
        """Parse a value, converting msgspec's error into a `Mismatch`."""
        try:
            return decode(data)
        except msgspec.MsgspecError as error:
            lacks = _LACKS.fullmatch(str(error))
            raise (Mismatch(MISSING, lacks[1]) if lacks else Mismatch(str(error))) from None

    return _compared(write, parse, msgspec.json.encode, aware=event), parse
