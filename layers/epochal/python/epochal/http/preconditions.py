"""What a writer expects of a stream, and which state a reader already has (RFC 9110, sections 8.8.3 and 13.1).

An ETag is a token between quotes: it names the exact state of a stream, unfolds included, so it is a strong validator.
A writer names its expectation in one place: `If-Match`, `If-None-Match: *`, or `expected` in the body.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Generic, Literal, TypeVar

from epochal.errors import InvalidInput
from epochal.http.fields import Node
from epochal.http.operation import Request
from epochal.model.versions import ANY, MAX_VERSION, NO_STREAM, STREAM_EXISTS, AtVersion, Expected, Token

Named = TypeVar("Named")
"""What an ETag names: an exact state."""

EXPECTATIONS: Final = tuple(sorted(member.value for member in Expected))

_TAG: Final = r'(?:W/)?"[\x21\x23-\x7e\x80-\xff]*"'
_TAGS: Final = re.compile(rf"[\s,]*{_TAG}(?:[ \t]*,[\s,]*{_TAG})*[\s,]*", re.ASCII)
_KEY: Final = re.compile(r"[\x21-\x7e]{1,255}", re.ASCII)
_EACH: Final = re.compile(r'"([^"]*)"')


# No slots: a frozen, slotted, generic class cannot be called with its parameters, `X[Y](...)`, on Python 3.11.
@dataclass(frozen=True, kw_only=True)
class Precondition(Generic[Named]):
    """What is expected; in a header its failure is 412, in the body it is 409."""

    expected: Expected | AtVersion | Named = ANY
    in_header: bool = False


def etag(token: Token) -> str:
    """The ETag of the state that a token names."""
    return f'"{token.text()}"'


def precondition(
    request: Request, in_body: Node | None, parse: Callable[[str, str], Named | AtVersion]
) -> Precondition[Named]:
    """The writer's expectation, wherever it is given; `ANY` where it is not.

    Args:
        parse: reads an ETag; raises `InvalidInput` naming the header, which is its second argument.
    """
    in_headers = _headers(request, in_body)
    if in_headers is not None:
        expected = in_headers if isinstance(in_headers, Expected) else parse(in_headers, "If-Match")
        return Precondition(expected=expected, in_header=True)
    return Precondition() if in_body is None else Precondition(expected=expectation_of(in_body))


def _headers(request: Request, in_body: Node | None) -> Expected | str | None:
    """What a writer's headers expect: an ETag comes without its quotes; None where the headers say nothing.

    Raises:
        InvalidInput: the expectation is in more than one place, or is malformed.
    """
    if_match, if_none_match = request.header("If-Match"), request.header("If-None-Match")
    given = [
        name
        for name, value in (("If-Match", if_match), ("If-None-Match", if_none_match), ("expected", in_body))
        if value is not None
    ]
    if len(given) > 1:
        raise InvalidInput(given[-1], f"may not be given together with {given[0]}")
    if if_none_match not in (None, "*"):
        raise InvalidInput("If-None-Match", "must be * when writing: the stream must not exist")
    if if_none_match is not None:
        return NO_STREAM
    return None if if_match is None else _if_match(if_match)


def unchanged(request: Request, token: Token) -> bool:
    """Whether `If-None-Match` names the state that `token` does."""
    named = _named(request)
    return named == "*" or token.bare in {_bare(each) for each in named}


def is_named(request: Request, tag: str) -> bool:
    """Whether `If-None-Match` names the ETag `tag`, given without quotes (weak comparison, as RFC 9110 asks)."""
    named = _named(request)
    return named == "*" or tag in named


def _named(request: Request) -> list[str] | Literal["*"]:
    """The ETags of `If-None-Match`, without quotes."""
    value = request.header("If-None-Match")
    if value is None:
        return []
    if value == "*":
        return "*"
    if not _TAGS.fullmatch(value):
        raise InvalidInput("If-None-Match", "must be * or a list of ETags in double quotes")
    return _EACH.findall(value)


def _bare(tag: str) -> str:
    """What names the state: a seal says who made the ETag, and a low-water mark may lag."""
    return ".".join(tag.split(".")[:7])


def expectation_of(node: Node) -> Expected | AtVersion:
    """An expectation in a body: a version, or a word."""
    if isinstance(node.value, str) and node.value in EXPECTATIONS:
        return Expected(node.value)
    if not isinstance(node.value, int) or isinstance(node.value, bool):
        raise InvalidInput(node.name, f"must be a version or one of {', '.join(EXPECTATIONS)}")
    return AtVersion(version=node.whole(0, MAX_VERSION))


def _if_match(value: str) -> Expected | str:
    if value == "*":
        return STREAM_EXISTS
    match = _EACH.fullmatch(value)
    if match is None:
        raise InvalidInput("If-Match", "must be * or one strong ETag in double quotes")
    return match[1]


def idempotency_key(request: Request) -> str | None:
    """The request's idempotency key, if it has one."""
    key = request.header("Idempotency-Key")
    if key is not None and not _KEY.fullmatch(key):
        raise InvalidInput("Idempotency-Key", "must be 1 to 255 visible ASCII characters")
    return key
