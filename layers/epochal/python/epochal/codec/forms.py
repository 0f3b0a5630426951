"""How events of a class become JSON values: by the library that the class is made with.

    dataclass, attrs      their fields' hints, as `codec.hints` reads them
    pydantic              `model_dump` and `model_validate_json`: validators, aliases and defaults are the model's
    msgspec.Struct        `to_builtins` and `json.decode`

Whoever made the class has loaded its library, so it is imported where it is used. What could not be read back is not
written.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from epochal.codec import json
from epochal.codec.hints import shape_of
from epochal.codec.shapes import MISSING, Mismatch


class ValueForm(NamedTuple):
    """How values of one class are written and read. All three raise `ValueError`, `Mismatch` where a field is known.

    Attributes:
        write: a value as what JSON can hold.
        read: a value from what JSON holds.
        parse: a value from JSON itself, which spares those a detour who parse on their own.
    """

    write: Callable[[Any], Any]
    read: Callable[[Any], Any]
    parse: Callable[[bytes], Any]


def form_of(kind: type) -> ValueForm:
    """The form of a class; raises `TypeError` where something in it has no form in JSON."""
    if hasattr(kind, "__pydantic_validator__"):
        return _parsed_by(*_pydantic(kind))
    if hasattr(kind, "__struct_config__"):
        return _parsed_by(*_msgspec(kind))
    shape = shape_of(kind)
    return ValueForm(shape.write, shape.read, lambda data: shape.read(json.loads(data)))


def _parsed_by(write: Callable[[Any], Any], parse: Callable[[bytes], Any]) -> ValueForm:
    return ValueForm(write, lambda value: parse(json.dumps(value)), parse)


_LACKS: Final = re.compile(r"Object missing required field `([^`]*)`.*")
"""How msgspec says that an object lacks a field."""


def _pydantic(kind: type) -> tuple[Callable[[Any], Any], Callable[[bytes], Any]]:
    import pydantic  # noqa: PLC0415  as above

    adapter: pydantic.TypeAdapter[Any] = pydantic.TypeAdapter(kind)

    def write(value: Any) -> Any:
        return adapter.dump_python(value, mode="json", by_alias=True, round_trip=True)

    def parse(data: bytes) -> Any:
        try:
            return adapter.validate_json(data)
        except pydantic.ValidationError as error:
            first = error.errors(include_url=False, include_context=False, include_input=False)[0]
            rule = MISSING if first["type"] == "missing" else first["msg"]
            raise Mismatch(rule, ".".join(map(str, first["loc"]))) from None

    return write, parse


def _msgspec(kind: Any) -> tuple[Callable[[Any], Any], Callable[[bytes], Any]]:
    import msgspec  # noqa: PLC0415  as above

    if kind.__struct_config__.array_like:
        raise TypeError(f"{kind.__name__} is an array in JSON; events are objects")
    decode = msgspec.json.Decoder(kind).decode

    def write(value: Any) -> Any:
        return msgspec.to_builtins(value, str_keys=True)

    def parse(data: bytes) -> Any:
        try:
            return decode(data)
        except msgspec.MsgspecError as error:
            lacks = _LACKS.fullmatch(str(error))
            raise (Mismatch(MISSING, lacks[1]) if lacks else Mismatch(str(error))) from None

    return write, parse
