"""Refuses classes of Pydantic whose values could not be read back as they were written.

The class is checked when a codec is built from it. What depends on values, such as serializers and members of
subclasses, is checked when a value is written (`round_trips`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, get_args, get_origin, get_type_hints

import pydantic

from epochal.deciders.pydantic_fields import pydantic_fields, read_as, written_as
from epochal.model.body_marks import VERSION

_SECRETS = (pydantic.SecretStr, pydantic.SecretBytes, pydantic.Secret)
_SERIALIZERS = (pydantic.PlainSerializer, pydantic.WrapSerializer)


def check_fields(schema: Any, kind: type, *, event: bool) -> None:
    """Raise `TypeError` unless all fields of a Pydantic class, at any depth, can be read back as written.

    Those of an `event` are checked by the rules of events, too.

    Raises:
        TypeError: a field that could not be read as it is written.
    """
    names: dict[tuple[type, str], str] = {}
    for owner, name, field, by in pydantic_fields(schema, kind):
        where = f"{owner.__name__}.{name}"
        written, read = written_as(name, field), read_as(name, field, by)
        if event and any(_is_naive(part) for part in _parts(field["schema"])):
            raise TypeError(f"{where} accepts only times without a zone, but an event's need one")
        if field.get("serialization_exclude"):
            if field["schema"]["type"] != "default":
                raise TypeError(f"{where} is excluded from what is written, and has no default")
            continue
        if written not in read:
            names_read = " or ".join(sorted(read)) or "something deeper"
            raise TypeError(f"{where} is written as {written}, but read as {names_read}: use one alias")
        if names.setdefault((owner, written), name) != name:
            other = names[owner, written]
            raise TypeError(f"{where} and {owner.__name__}.{other} are both written as {written}")
        if event and owner is kind and written == VERSION:
            raise TypeError(f"{where} is written as {VERSION}, which is reserved for the event's version")
        if _is_secret(owner, name):
            raise TypeError(
                f"{where} is a secret, and would be written as asterisks: use another type, seal it, or "
                "give the field a serializer that reveals the secret"
            )


def _parts(schema: Any) -> Iterator[Mapping[str, Any]]:
    """Iterate over the schemas of a field's values, down to fields of other classes."""
    if isinstance(schema, list | tuple):
        for part in schema:
            yield from _parts(part)
    elif isinstance(schema, dict) and "fields" not in schema:
        yield schema
        for key, part in schema.items():
            if key not in ("config", "metadata", "serialization"):
                yield from _parts(part)


def _is_naive(schema: Mapping[str, Any]) -> bool:
    """Return whether a schema accepts only times without a time zone."""
    return schema.get("type") == "datetime" and schema.get("tz_constraint") == "naive"


def _is_secret(owner: Any, name: str) -> bool:
    """Return whether a field contains secrets, and nothing says how to write them."""
    fields = getattr(owner, "__pydantic_fields__", {})
    if name in fields:
        hint, metadata = fields[name].annotation, fields[name].metadata
    else:
        hint, metadata = get_type_hints(owner, include_extras=True).get(name), []
    decorators = getattr(owner, "__pydantic_decorators__", None)
    if decorators is not None:
        serialized = {field for item in decorators.field_serializers.values() for field in item.info.fields}
        if decorators.model_serializers or serialized & {name, "*"}:
            return False
    if getattr(owner, "model_config", {}).get("json_encoders"):
        return False
    return not any(isinstance(item, _SERIALIZERS) for item in metadata) and _has_secret(hint)


def _has_secret(hint: Any) -> bool:
    """Return whether a type contains a secret without a serializer."""
    hint = getattr(hint, "__value__", hint)
    origin, parts = get_origin(hint), get_args(hint)
    if any(isinstance(part, _SERIALIZERS) for part in getattr(hint, "__metadata__", ())):
        return False
    kind = origin or hint
    return (isinstance(kind, type) and issubclass(kind, _SECRETS)) or any(_has_secret(part) for part in parts)
