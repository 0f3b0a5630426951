"""The fields of Pydantic classes, and the names of the members that they are written as and read from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any


def pydantic_fields(
    schema: Any, owner: type, by: Mapping[str, Any] = MappingProxyType({})
) -> Iterator[tuple[type, str, dict[str, Any], Mapping[str, Any]]]:
    """Iterate over the fields in a Pydantic core schema, at any depth.

    Each has its class, name, field and the settings of the class.
    """
    if isinstance(schema, list | tuple):
        for element in schema:
            yield from pydantic_fields(element, owner, by)
    if isinstance(schema, dict):
        owner, by = schema.get("cls", owner), schema.get("config", by)
        for name, field in fields_in(schema):
            yield owner, name, field, by
        for key, part in schema.items():
            if key not in ("config", "metadata", "serialization"):
                yield from pydantic_fields(part, owner, by)


def fields_in(schema: Mapping[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """List the fields of one model, dataclass or typed dictionary in a core schema."""
    fields = schema.get("fields", ())
    if isinstance(fields, dict):
        return [*fields.items()]
    return [(field["name"], field) for field in fields if isinstance(field, dict)]


def written_as(name: str, field: Mapping[str, Any]) -> str:
    """Return the member under which a Pydantic field is written."""
    return str(field.get("serialization_alias", name))


def read_as(name: str, field: Mapping[str, Any], by: Mapping[str, Any]) -> set[str]:
    """Return the names of the JSON members that a Pydantic field can be read from."""
    alias = field.get("validation_alias", name)
    if not by.get("validate_by_alias", True):
        return {name}
    paths = alias if isinstance(alias, list) and isinstance(alias[0], list) else [alias]
    single = {
        path if isinstance(path, str) else path[0]
        for path in paths
        if isinstance(path, str) or len(path) == 1
    }
    by_name = by.get("validate_by_name", by.get("populate_by_name", False))
    return single | ({name} if by_name else set())
