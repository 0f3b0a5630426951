"""Expected versions of writers, and states that readers already have (RFC 9110, sections 8.8.3 and 13.1).

An ETag is a token between quotes: it names the exact state of a stream, unfolds included, so it is a strong validator.
A writer names its expectation in one place: `If-Match`, `If-None-Match: *`, or `expected` in the body.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, Literal, TypeVar

from epochal.errors import InvalidInput
from epochal.http.nodes import Node
from epochal.http.operation import Request
from epochal.model.expected_version import ANY, NO_STREAM, STREAM_EXISTS, AtVersion, Expected
from epochal.model.tokens import MAX_VERSION, Token

Named = TypeVar("Named")
"""Type of the exact state that an ETag names."""

EXPECTATIONS: Final = tuple(sorted(member.value for member in Expected))

_TAG: Final = r'(?:W/)?"[\x21\x23-\x7e\x80-\xff]*"'
_TAGS: Final = re.compile(rf"[\s,]*{_TAG}(?:[ \t]*,[\s,]*{_TAG})*[\s,]*", re.ASCII)

_EACH: Final = re.compile(r'"([^"]*)"')


def etag(token: Token) -> str:
    """Return the ETag of the stream state that a token names."""
    return f'"{token.text()}"'


def precondition(
    request: Request,
    in_body: Expected | AtVersion | Named | None,
    parse: Callable[[str, str], Named | AtVersion],
) -> tuple[Expected | AtVersion | Named, bool]:
    """Return a write's expected version, `ANY` where there is none, and whether a header named it.

    `ANY` where neither a header nor the body names one. A failed expectation is answered with 412 if it was in a
    header and with 409 if it was in the body.

    Args:
        in_body: the expectation in the body; None for none.
        parse: parser of an ETag without its quotes; its second argument is the header's name, for errors.

    Raises:
        InvalidInput: there is more than one expectation, or a malformed one.
    """
    headers = {name: request.header(name) for name in ("If-Match", "If-None-Match")}
    expectations = {
        name: value for name, value in (*headers.items(), ("expected", in_body)) if value is not None
    }
    if len(expectations) > 1:
        first, *_, last = expectations
        raise InvalidInput(last, f"may not be given together with {first}")
    if headers["If-None-Match"] not in (None, "*"):
        raise InvalidInput("If-None-Match", "must be * when writing: the stream must not exist")
    match headers["If-Match"]:
        case None if in_body is not None:
            return in_body, False
        case None:
            return (NO_STREAM, True) if expectations else (ANY, False)
        case "*":
            return STREAM_EXISTS, True
        case value if match := _EACH.fullmatch(value):
            return parse(match[1], "If-Match"), True
        case _:
            raise InvalidInput("If-Match", "must be * or one strong ETag in double quotes")


def unchanged(request: Request, token: Token) -> bool:
    """Whether `If-None-Match` names the stream state that a token names."""
    tags = _tags_in(request)
    return tags == "*" or token.bare in {_bare(tag) for tag in tags}


def is_named(request: Request, tag: str) -> bool:
    """Whether `If-None-Match` names the ETag `tag`, given without quotes.

    The comparison is weak, as RFC 9110 asks.
    """
    etags = _tags_in(request)
    return etags == "*" or tag in etags


def _tags_in(request: Request) -> list[str] | Literal["*"]:
    """Return the ETags of `If-None-Match` without quotes, or `*`; empty where the header is missing.

    Raises:
        InvalidInput: the header is malformed.
    """
    value = request.header("If-None-Match")
    if value is None:
        return []
    if value == "*":
        return "*"
    if not _TAGS.fullmatch(value):
        raise InvalidInput("If-None-Match", "must be * or a list of ETags in double quotes")
    return _EACH.findall(value)


def _bare(tag: str) -> str:
    """Return the part of an ETag that identifies the state.

    Left out are the seal, which says who made the ETag, and the low-water mark, which may lag.
    """
    return ".".join(tag.split(".")[:7])


def expectation_of(node: Node) -> Expected | AtVersion:
    """Read an expected version in a body: a version number or a word such as `any`.

    Raises:
        InvalidInput: it is neither.
    """
    if isinstance(node.value, str) and node.value in EXPECTATIONS:
        return Expected(node.value)
    if not isinstance(node.value, int) or isinstance(node.value, bool):
        raise InvalidInput(node.name, f"must be a version or one of {', '.join(EXPECTATIONS)}")
    return AtVersion(version=node.whole(0, MAX_VERSION))
