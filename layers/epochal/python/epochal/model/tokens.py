"""Tokens: the exact state of a stream, with which its next append is one request.

A version counts events: a stream of n events is at version n, and the next event gets index n. A token is a version
with the etag of the stream's last item, and the sizes by which a layout decides whether to begin a new item, so that a
writer that holds a token need not read.
"""

from __future__ import annotations

import re
from typing import Any, Final

from epochal.errors import InvalidInput
from epochal.lazy_dataclasses import dataclass, field

MAX_VERSION: Final = 2_147_483_646
"""Highest version of a stream. The next number is the Tip's sort key in tables of Tips (FORMATS §1); all layouts share
the limit."""

_TOKEN: Final = re.compile(
    r"(0|[1-9]\d{0,9})"
    r"(?:\.([0-9a-f]{32})\.(\d{1,7})\.(\d{1,7})\.(\d{1,7})\.(\d{1,7})\.(\d{1,7})"
    r"(?:\.(0|[1-9]\d{0,9})(?:\.([0-9a-f]{32}))?)?)?",
    re.ASCII,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Token:
    """The exact state of a stream. An append that expects it is refused after any other write, of events or unfolds.

    Take it from an answer, and pass it back unchanged: its parts may change in a later release.

    Attributes:
        version: index of the stream's next event.
        etag: etag of the latest write to the head (the stream's last item); None if the token is only a version.
        size: number of bytes of the head (the stream's last item), accurate to a few bytes.
        carried: number of bytes of the events in the head (the stream's last item), included in `size`.
        unfolds: number of bytes of the unfolds in the head (the stream's last item), included in `size`.
        events: number of events in the head (the stream's last item).
        appends: number of appends whose events are in the head (the stream's last item).
        of: stream and table that the token belongs to. Set only on tokens that this process created, since others may
            be forged. Ignored when tokens are compared, and not part of the text.
        low_water: index of the first event that is not pruned, as far as the stream's last item shows. Ignored when
            tokens are compared.
        seal: signature by which the stage recognizes tokens that it created (`store.seals`); empty without one. Ignored
            when tokens are compared.
        refused: number of consecutive appends that had been refused when the token was made. Ignored when tokens are
            compared, and not part of the text.
    """

    version: int
    etag: str | None = None
    size: int = 0
    carried: int = 0
    unfolds: int = 0
    events: int = 0
    appends: int = 0
    of: str = field(default="", compare=False, repr=False)
    low_water: int = field(default=0, compare=False, repr=False)
    seal: str = field(default="", compare=False, repr=False)
    refused: int = field(default=0, compare=False, repr=False)

    def text(self) -> str:
        """Encode the token as text of at most 127 ASCII bytes, or as its version if it has no etag.

        The parts are `version.etag.size.carried.unfolds.events.appends`, then the low-water mark if there is one or a
        seal follows, then the seal.
        """
        if self.etag is None:
            return str(self.version)
        mark = f".{self.low_water}" if self.low_water or self.seal else ""
        return f"{self.bare}{mark}.{self.seal}" if self.seal else f"{self.bare}{mark}"

    @property
    def bare(self) -> str:
        """Text of the token without its optional last parts, the low-water mark (for pruning) and the seal (a
        signature). It identifies the stream's state.
        """
        figures = (self.version, self.etag, self.size, self.carried, self.unfolds, self.events, self.appends)
        return ".".join(map(str, figures))


def parse_token(text: str, field: str = "If-Match") -> Token:
    """Decode the text of a token, or a plain version, as a token; raise `InvalidInput` naming `field`.

    Args:
        text: text of a token, or a plain version.
        field: name of the argument that holds the text, for error messages.
    """
    match = _TOKEN.fullmatch(text)
    if match is None or int(match[1]) > MAX_VERSION:
        raise InvalidInput(field, "must be a token that an append or load returned, or a version")
    if match[2] is None:
        return Token(version=int(match[1]))
    size, carried, unfolds, events, appends = map(int, match.groups()[2:7])
    return Token(
        version=int(match[1]),
        etag=match[2],
        size=size,
        carried=carried,
        unfolds=unfolds,
        events=events,
        appends=appends,
        low_water=int(match[8] or 0),
        seal=match[9] or "",
    )


NO_EVENTS: Final = Token(version=0)
"""The token of a stream that does not exist."""


def version_of(head: Any) -> int:
    """Return the next index of a stream by its head or token; 0 for no stream."""
    return 0 if head is None else head.version
