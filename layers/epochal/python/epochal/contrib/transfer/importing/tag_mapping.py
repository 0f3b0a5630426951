"""Tags in mappings and in the cells of columns. Pure.

    book:{book},member:{member}    a template: a comma separates tags, and a comma in a cell stays in its tag
    ["book:{book}", "due today"]   a list, in a mapping file: a column, a template or a constant for each tag
    labels                         a column: a JSON array of tags, or tags with commas between them

A tag may hold blanks. But `book:1 member:2` is nearly always two tags whose comma was forgotten, and as one tag it
would match no condition. So a blank is refused where it looks like that.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any, Final

from epochal.errors import InvalidInput

_BLANK: Final = re.compile(r"\s")
_COLUMN: Final = re.compile(r"\{[^{}]+\}")

_TWO: Final = re.compile(r"\S:.*\s\S+:")
"""A text with a group, a blank, and another group behind it."""


def parse_tags(where: str | Sequence[str]) -> tuple[str, ...]:
    """Split a mapping's entry for tags into one column or constant, or a template for each tag.

    Args:
        where: text of a mapping, or list of a mapping file

    Raises:
        InvalidInput: a part is empty, or a text with a comma between tags has a blank in a tag.
    """
    if not isinstance(where, str):
        parts: Sequence[object] = where  # from a mapping file
        if not where or not all(isinstance(part, str) and part for part in parts):
            raise InvalidInput(
                "map", "tags: a list must contain at least one tag, and only non-empty strings"
            )
        return tuple(where)
    constant = where.startswith("=")
    if where.startswith("=[") or not (constant or "{" in where):
        return (where,) if where else ()
    texts = tuple(part.strip() for part in where.removeprefix("=").split(","))
    if not all(texts):
        raise InvalidInput("map", f"tags: {where!r} has a comma without a tag before or after it")
    for text in texts:
        if _BLANK.search(_COLUMN.sub("", text)):
            rule = (
                f"tags: {text!r} contains a space; separate tags with commas, or use a list in a mapping file"
            )
            raise InvalidInput("map", rule)
    return (f"={','.join(texts)}",) if constant else texts


def tags_in(value: Any) -> tuple[str, ...]:
    """Return the tags of a cell, each once; it holds a list, a JSON array as text, or text with commas.

    Raises:
        InvalidInput: the value is none of these, or a tag looks like two.
    """
    if not value:
        return ()
    if isinstance(value, str):
        value = _array(value) if value.startswith("[") else [_one_tag(part) for part in value.split(",")]
    if not isinstance(value, Sequence) or not all(isinstance(tag, str) for tag in value):
        raise InvalidInput("tags", "must be a list of strings")
    return tuple(dict.fromkeys(value))


def _array(text: str) -> Any:
    """Parse a cell's JSON array of tags; raise `InvalidInput` if it is not JSON.

    Raises:
        InvalidInput: the text is not JSON.
    """
    try:
        return json.loads(text)
    except ValueError:
        raise InvalidInput("tags", "must be a JSON array of strings") from None


def _one_tag(part: str) -> str:
    """Return a tag without blanks around it; raise `InvalidInput` if the text looks like two tags.

    Raises:
        InvalidInput: the text looks like two tags.
    """
    tag = part.strip()
    if _TWO.search(tag):
        raise InvalidInput(
            "tags", f"{tag!r} looks like two tags: separate them with a comma, or give a JSON array"
        )
    return tag
