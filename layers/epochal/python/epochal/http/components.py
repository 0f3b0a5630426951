"""Objects of the OpenAPI document, each declared once: the declaration reads requests, writes answers and is published.

    Component   a named schema of the document; `read` returns the members of an object that was sent
    Shown       a schema of an answer; called with a value, it returns the members

A refusal names the member that breaks a rule, by its place in what was sent.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property, partial
from operator import attrgetter
from types import MappingProxyType
from typing import Any, Final

from epochal.errors import InvalidInput
from epochal.http.nodes import Node
from epochal.http.schemas import Schema, only_one, record

Read = Callable[["Node"], Any]
"""Function that reads a value of a request; raises `InvalidInput` naming the place of a value that breaks a rule."""

_BY_SCHEMA: Final[Mapping[str, Read]] = MappingProxyType({})

Members = Mapping[str, "Schema | tuple[Schema, str]"]


class Component:
    """A JSON schema of the OpenAPI document, which also reads requests.

    Without a name it is only part of other schemas.
    """

    def __init__(
        self,
        name: str,
        schema: Schema,
        *,
        reads: Mapping[str, Read] = _BY_SCHEMA,
        one_of: tuple[tuple[str, ...], ...] = (),
    ) -> None:
        """Declare the schema of an object.

        Args:
            name: name of the schema in the document; empty for none.
            schema: JSON schema of the object.
            reads: readers of members whose schemas do not say all, by name; of an array, the reader of each item.
            one_of: groups of member names; of each group at most one may be sent.
        """
        self.name, self.special, self._one_of = name, reads, one_of
        self.schema = {**schema, "allOf": [only_one(*names) for names in one_of]} if one_of else schema

    @property
    def names(self) -> Mapping[str, Schema]:
        """Schemas of the members that the object may have, by name."""
        properties: Mapping[str, Schema] = self.schema["properties"]
        return properties

    @cached_property
    def _reads(self) -> dict[str, Read]:
        """Reader of each member, by name."""
        return {name: _read(schema, self.special.get(name)) for name, schema in self.names.items()}

    @cached_property
    def _defaults(self) -> dict[str, Any]:
        """Default value of each member that has one, by name."""
        return {name: schema["default"] for name, schema in self.names.items() if "default" in schema}

    def read(self, node: Node) -> dict[str, Any]:
        """Check an object that was sent; return its members by name, with defaults for missing ones.

        Raises:
            InvalidInput: naming the member that breaks a rule.
        """
        reads = self._reads
        fields = node.members(reads)
        for name in self.schema["required"]:
            if name not in fields:
                raise InvalidInput(node.below(name), "is required")
        for names in self._one_of:
            if len(fields.keys() & names) > 1:
                first, second, *_ = (fields[name].name for name in names if name in fields)
                raise InvalidInput(second, f"may not be given together with {first}")
        values = {name: reads[name](field) for name, field in fields.items()}
        return {**self._defaults, **values} if self._defaults else values


def _read(schema: Schema, special: Read | None) -> Read:
    """Return a function that reads a value as its schema says.

    A value of no known kind is returned as its node.

    Args:
        special: the reader of the value, or of an array's items; None to go by the schema.
    """
    match schema:
        case {"type": "array", "items": items, "maxItems": most}:
            item_of, least = _read(items, special), schema.get("minItems", 0)
            return lambda node: tuple(map(item_of, node.items(most, least)))
        case _ if special is not None:
            return special
        case {"enum": choices}:
            return partial(Node.choice, choices=choices)
        case {"type": "integer", "minimum": least, "maximum": most}:
            return partial(Node.whole, least=least, most=most)
        case {"type": "boolean"}:
            return Node.flag
        case {"contentEncoding": "base64"}:
            return Node.base64
        case {"maxLength": most}:
            return lambda node: node.text(most)
        case _:
            return lambda node: node


class Shown(Component):
    """A JSON schema of an answer, which is called to build the object.

    A member is a schema, whose value is passed with each call, or a schema and the name of the attribute that has the
    value. Members named `optional` may be missing.
    """

    def __init__(self, name: str, members: Members, *, optional: tuple[str, ...] = (), **more: Any) -> None:
        """Declare the members of an answer.

        Args:
            name: name of the schema in the document; empty for none.
            members: schema of each member, or its schema and the attribute that has its value.
            optional: names of members that may be missing.
            more: further arguments of `schemas.record`.
        """
        schemas = {name: value[0] if isinstance(value, tuple) else value for name, value in members.items()}
        required = tuple(name for name in schemas if name not in optional)
        super().__init__(name, record(schemas, required=required, **more))
        self._members = [
            (name, attrgetter(value[1]) if isinstance(value, tuple) else None)
            for name, value in members.items()
        ]

    def __call__(self, subject: object = None, /, **members: Any) -> dict[str, Any]:
        """Build the object, from attributes of `subject` and the values given by name."""
        return {
            name: members[name] if get is None else get(subject)
            for name, get in self._members
            if get is not None or name in members
        }
