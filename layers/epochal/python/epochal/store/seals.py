"""Seals: signatures of tokens, so that a token from outside can begin a new page without a read (FORMATS §8).

The condition of an append to an open page names the exact state of the page, so a false token is refused. But a new
page is begun where no item exists, and only the token says that the stream ends there: a forged token would leave a
permanent hole or fork in the stream. So the token of a full page carries an HMAC. Its key is an item of the table,
which no response of the API contains:

    p       i   k
    $seal   0   32 random bytes, put once, by the first append that seals a token, and never changed

A seal is valid for one table name, one stream and one state. So it is invalid in a restored table, which has another
name, and for another stream. Whoever may read the table's items can forge a seal; a caller of the API cannot. With a
token without a valid seal, the last page is read before an append.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from epochal.errors import EpochalError
from epochal.lazy_dataclasses import dataclass, replace
from epochal.model.moments import PER_SECOND, Ticks, from_unix_nanoseconds
from epochal.model.stream_names import SEALS
from epochal.model.tokens import Token
from epochal.pages.items import origin
from epochal.pages.reading import query
from epochal.pages.writes import is_own, known_state
from epochal.plan.conditions import Absent
from epochal.plan.ops import Done, Put, Steps
from epochal.plan.tables import PlacedName
from epochal.plan.values import Item, Key, binary, number, text
from epochal.store.driver import Driver

if TYPE_CHECKING:
    from epochal.store.streams import Streams

KEY_BYTES: Final = 32
_SEAL_BYTES: Final = 16

ASK_AGAIN: Final = 60 * PER_SECOND
"""Time after which a reader that found no key looks for one again."""

_KEY: Final[Key] = {"p": text(SEALS), "i": number(0)}

_known: Final[dict[tuple[int, str], bytes]] = {}
_missed: Final[dict[tuple[int, str], Ticks]] = {}
"""Keys by place and table, and times at which a table had no key."""


def seal_token(
    table: str, stream: str, token: Token, now: Ticks, fresh: Callable[[int], bytes] | None
) -> Steps[Token]:
    """Return the token with a seal, if this process made it for a full page; otherwise unchanged.

    A seal lets the token go outside and come back. Any other token stays as it is.

    Args:
        fresh: function that returns random bytes, for a key where the table has none; None for readers.
    """
    if not is_own(table, stream, token) or not _is_full(token):
        return token
    key = yield from _load_or_create_key(table, now, fresh)
    return token if key is None else replace(token, seal=_seal(key, table, stream, token))


def verify_token(table: str, stream: str, token: Token, now: Ticks) -> Steps[Token]:
    """Return the token, marked as one of this process if its seal is valid; otherwise unchanged."""
    if not token.seal or not _is_full(token):
        return token
    key = yield from _load_or_create_key(table, now, None)
    if key is None or not hmac.compare_digest(_seal(key, table, stream, token), token.seal):
        return token
    return replace(token, of=origin(table, stream))


def _is_full(token: Token) -> bool:
    """Whether a token is of a full page."""
    state = known_state(token)
    return state is not None and state.full


def _seal(key: bytes, table: str, stream: str, token: Token) -> str:
    """Compute the seal of a token: the first 16 bytes of an HMAC, in hex."""
    content = "\0".join(("token", table, stream, token.bare, str(token.low_water)))
    return hmac.digest(key, content.encode(), "sha256")[:_SEAL_BYTES].hex()


def _load_or_create_key(table: str, now: Ticks, fresh: Callable[[int], bytes] | None) -> Steps[bytes | None]:
    """Return a table's key, read once per process and made if `fresh` is given; None if there is none.

    With `fresh` a key is put where there is none. Without it, a missing key is looked for again after 60 seconds.
    """
    place = (table.place if isinstance(table, PlacedName) else 0, str(table))
    if place in _known:
        return _known[place]
    if fresh is None and 0 <= now - _missed.get(place, Ticks(-ASK_AGAIN)) < ASK_AGAIN:
        return None
    # A query, because readers of pages are allowed queries.
    records = (yield query(table, SEALS, 0, 0, limit=1, consistent=False)).items
    item: Item | None = records[0] if records else None
    if item is None and fresh is not None:
        put = Put(table=table, item={**_KEY, "k": binary(fresh(KEY_BYTES))}, condition=Absent("i"))
        reply = yield put
        item = put.item if isinstance(reply, Done) else reply.item
    if item is None:
        _missed[place] = now
        return None
    _known[place] = bytes(item["k"]["B"])
    return _known[place]


PATIENCE: Final = 1.0
"""Largest number of seconds to wait for the key. Without the key, the next append reads the last page first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seals:
    """Seals tokens that go outside, and checks tokens that come back, within one request.

    A token that is not of a page stays as it is, and costs nothing.

    Attributes:
        driver: runs the requests for the key.
        table: name of the table, which seals are of.
        now: time of the request.
        fresh: function that returns random bytes, for the key of a table that has none; None for readers.
    """

    driver: Driver
    table: str
    now: Ticks
    fresh: Callable[[int], bytes] | None = None

    @classmethod
    def of(cls, store: Streams, *, writes: bool) -> Seals:
        """Make the seals of a store's table.

        Args:
            writes: whether a missing key may be put.
        """
        now = from_unix_nanoseconds(store.now())
        return cls(driver=store.driver, table=store.table, now=now, fresh=store.fresh if writes else None)

    def seal_token(self, stream: str, token: Token) -> Token:
        """Return the token with its seal; without, if the key cannot be read.

        An append does not fail because its token cannot be sealed.
        """
        return self._run(seal_token(self.table, stream, token, self.now, self.fresh)) or token

    def verify_token(self, stream: str, token: Token) -> Token:
        """Return the token, marked as one of this process if its seal is valid."""
        return self._run(verify_token(self.table, stream, token, self.now)) or token

    def _run(self, steps: Steps[Token]) -> Token | None:
        """Run steps for at most a second; return None if they fail."""
        try:
            return self.driver.within(PATIENCE).run(steps)
        except EpochalError:
            return None
