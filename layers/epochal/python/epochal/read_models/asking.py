"""Queries of a read model: pages of its documents in the order of a key, and how many there are.

A question is a range of entries, in one partition or in as many as the key is spread over; those are read side by
side and merged. A page reads the entries that it shows, strongly consistent, and of each its document, unless the
entries hold what is shown: it costs by what it returns, however much there is. A document that has changed between the
two reads and has no such entry any more is left out.

A continuation is the place of the last entry, and a digest of the question: it goes on with that question alone, and a
place outside of it is refused.
"""

from __future__ import annotations

import binascii
import hashlib
from base64 import b64decode, urlsafe_b64encode
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any, Final

from epochal.codec import json
from epochal.errors import InvalidInput
from epochal.lazy_dataclasses import dataclass, field, replace
from epochal.model.kinds import must_be, must_be_text, must_be_whole
from epochal.plan.batches import get_all, side_by_side
from epochal.plan.ops import Query, Steps
from epochal.plan.values import Item, Key, text
from epochal.read_models.keys import ALL, DeclaredKey, document_of, partition_of, stored_values
from epochal.read_models.value_texts import Value, escaped, part, written

MAX_LIMIT: Final = 1_000
"""Documents of one page."""

_DIGEST: Final = 9
"""Bytes of a continuation that say of which question it is."""

_NUMBERS: Final = "n"
_BEYOND: Final = "u"
"""Texts of values are between these two."""


@dataclass(frozen=True, slots=True)
class FoundDocument:
    """One document of a page of query results, with its key.

    Attributes:
        key: key of the document.
        value: the document; if the secondary key has `holds`, the value that this function returned for the document.
    """

    key: str
    value: Any


@dataclass(frozen=True, slots=True)
class Page:
    """One page of documents that a query of a read model found, in the order of the key that it used.

    Attributes:
        items: documents of the page: `limit` of them, or fewer on the last page and if documents changed meanwhile.
        next: value for `after` of the next page; None at the end.
    """

    items: tuple[FoundDocument, ...]
    next: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """Entries of one key between two texts, neither of which any entry has.

    Attributes:
        values: the text of the values that are equal.
    """

    model: str
    name: str
    declared: DeclaredKey
    values: str
    low: str
    high: str

    @property
    def partitions(self) -> list[str]:
        """Partitions that contain the question's entries."""
        first = self.values.partition(" ")[0]
        return [partition_of(self.model, self.name, shard, first) for shard in range(self.declared.spread)]

    def encode_continuation(self, sort: str, *, backward: bool) -> str:
        """Encode the continuation after an entry."""
        return urlsafe_b64encode(self._digest(backward) + sort.encode()).decode().rstrip("=")

    def decode_continuation(self, after: str, *, backward: bool) -> str:
        """Decode a continuation into a sort key; raise `InvalidInput` if malformed or of another question."""
        must_be(str, after, "after", "a continuation: `next` of a page")
        try:
            raw = b64decode(after + "=" * (-len(after) % 4), altchars=b"-_", validate=True)
            sort = raw[_DIGEST:].decode()
        except (binascii.Error, ValueError) as error:
            raise InvalidInput("after", "is no continuation") from error
        if raw[:_DIGEST] != self._digest(backward) or not self.low < sort < self.high:
            raise InvalidInput("after", "is the continuation of another question")
        return sort

    def _digest(self, backward: bool) -> bytes:
        """Return the digest by which a continuation names its question."""
        content = "\n".join((self.model, self.name, self.values, self.low, self.high, str(backward)))
        return hashlib.sha256(content.encode()).digest()[:_DIGEST]


def question(
    model: str,
    declared: Mapping[str, DeclaredKey],
    name: str | None,
    values: Sequence[Value],
    *,
    prefix: str,
    since: Value | None,
    below: Value | None,
) -> Question:
    """Build the question for documents by the first values of a key and bounds on the next one.

    Without a name it asks for documents by their own keys.
    """
    name = ALL if name is None else name
    if name not in declared:
        names = ", ".join(key_name for key_name in declared if key_name != ALL) or "no secondary key"
        raise InvalidInput("name", f"is no key of {model}, which has {names}")
    must_be(str, prefix, "prefix", "text")
    if prefix and (since is not None or below is not None):
        raise InvalidInput("prefix", "must not be given with since or below")
    if (name == ALL) == bool(values):
        raise InvalidInput("values", "must begin with the key's first value")
    equal = written(tuple(values), "values")
    base = equal.partition(" ")[2]
    if prefix:
        must_be_text(prefix, 1_024, "prefix")
        low = f"{base}t{escaped(prefix)}"
        high = _following(low)
    else:
        low = base + (_NUMBERS if since is None else part(since, "since"))
        high = base + (_BEYOND if below is None else part(below, "below"))
    return Question(model=model, name=name, declared=declared[name], values=equal, low=low, high=high)


def value_from(given: str) -> Value:
    """Parse a value that somebody typed: JSON if it is a number or a JSON string, else the text itself."""
    try:
        value = json.loads(given)
    except ValueError:
        return given
    return value if isinstance(value, str | int | Decimal) and not isinstance(value, bool) else given


def _following(prefix: str) -> str:
    """Return the least text above all that begin with this prefix."""
    stripped = prefix.rstrip("\U0010ffff")
    above = ord(stripped[-1]) + 1
    return stripped[:-1] + ("\ue000" if above == 0xD800 else chr(above))  # noqa: PLR2004  halves of pairs are no characters


def page(
    table: str,
    question: Question,
    *,
    limit: int,
    after: str | None,
    backward: bool,
    shown: Callable[[Item], Any],
    place: Callable[[str], Key],
) -> Steps[Page]:
    """Read a page of the documents that a question asks for.

    Args:
        shown: converts a document's item into what the page shows.
        place: returns the key of a document's item.
    """
    must_be_whole(limit, "limit", least=1, most=MAX_LIMIT)
    start = None if after is None else question.decode_continuation(after, backward=backward)
    if question.low >= question.high:
        return Page(())
    entries = yield from _entries(table, question, limit + 1, start, backward=backward)
    more, entries = len(entries) > limit, entries[:limit]
    following = question.encode_continuation(entries[-1]["sk"]["S"], backward=backward) if more else None
    keys = [document_of(entry["sk"]["S"]) for entry in entries]
    if question.declared.holds:
        page_documents = [
            FoundDocument(key, json.loads(entry["d"]["S"])) for key, entry in zip(keys, entries, strict=True)
        ]
        return Page(tuple(page_documents), following)
    documents = yield from _documents(table, [place(key) for key in dict.fromkeys(keys)])
    items = []
    for key, entry in zip(keys, entries, strict=True):
        document = documents.get(place(key)["pk"]["S"])
        if document is not None and _has(question, document, key, entry):
            items.append(FoundDocument(key, shown(document)))
    return Page(tuple(items), following)


def _documents(table: str, places: list[Key]) -> Steps[dict[str, Item]]:
    """Read the items of documents, by their keys."""
    items = yield from get_all(table, places)
    return {item["pk"]["S"]: item for item in items}


def _has(question: Question, document: Item, key: str, entry: Item) -> bool:
    """Return whether a document still has this entry; what has no document any more has none."""
    if question.name == ALL or "e" not in document:
        return "e" in document
    first = question.values.partition(" ")[0]
    rest = entry["sk"]["S"].removesuffix(f"t{escaped(key)} ")
    return f"{first} {rest}" in stored_values(document).get(question.name, ())


@dataclass(slots=True)
class _Run:
    """The entries of one partition in order: those that were read but not taken, and whether more may follow."""

    partition: str
    after: Key | None
    rows: deque[Item] = field(default_factory=deque)
    ended: bool = False


def _entries(
    table: str, question: Question, limit: int, start: str | None, *, backward: bool
) -> Steps[list[Item]]:
    """Read up to `limit` next entries of a question from all of its partitions, merged in order."""
    runs = [
        _Run(partition, None if start is None else {"pk": text(partition), "sk": text(start)})
        for partition in question.partitions
    ]
    share = limit if len(runs) == 1 else -(-limit // len(runs)) + 1
    taken: list[Item] = []
    choose = max if backward else min
    while len(taken) < limit:
        behind = [run for run in runs if not run.rows and not run.ended]
        if behind:
            queries = [_query(table, question, run, backward=backward, limit=share) for run in behind]
            for run, reply in zip(behind, (yield from side_by_side(queries)), strict=True):
                run.rows.extend(reply.items)
                run.after, run.ended = reply.last, reply.last is None
            continue
        waiting = [run for run in runs if run.rows]
        if not waiting:
            break
        taken.append(choose(waiting, key=lambda run: run.rows[0]["sk"]["S"]).rows.popleft())
    return taken


def _query(table: str, question: Question, run: _Run, *, backward: bool, limit: int | None = None) -> Query:
    """Build the query for a partition's next entries."""
    return Query(
        table=table,
        partition=("pk", text(run.partition)),
        sort=("sk", text(question.low), text(question.high)),
        forward=not backward,
        limit=limit,
        after=run.after,
    )


def count(table: str, question: Question, at_most: int | None) -> Steps[int]:
    """Count the entries of a question, up to `at_most`, without reading documents."""
    if at_most is not None:
        must_be_whole(at_most, "at_most", least=1)
    counted = 0
    for partition in question.partitions if question.low < question.high else ():
        run = _Run(partition, None)
        while not run.ended and (at_most is None or counted < at_most):
            limit = None if at_most is None else at_most - counted
            query = _query(table, question, run, backward=False, limit=limit)
            reply = yield replace(query, only_count=True)
            counted += reply.counted
            run.after, run.ended = reply.last, reply.last is None
    return counted
