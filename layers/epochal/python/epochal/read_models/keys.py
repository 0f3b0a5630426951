"""Keys by which a read model is queried: values of its documents, as entries that DynamoDB keeps in order.

    models.open("loans", 1, keys={"by_member": lambda loan: (loan["member"], loan["due"])})

A document has an entry for each of its values, and one in the list of all documents. Entries are items of their own,
written with the document in one transaction, and only where they change. So they are exact, and there as soon as the
document is; an index of DynamoDB's would come later. The document's item says which entries it has: what a function
derives today need not be what it derived when they were written.

Texts of values have the order of the values: numbers by size, before texts by code points. A text is `t` and its
characters, a number `n` and its figures; a space ends each, which is below every character that may be in one.
Entries and their texts are stored (FORMATS §6): they outlive the code.
"""

from __future__ import annotations

import binascii
import hashlib
import re
from base64 import b64decode, urlsafe_b64encode
from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal
from typing import Any, Final, NamedTuple, TypeAlias

from epochal.codec import json
from epochal.errors import InvalidInput, TooLarge
from epochal.lazy_dataclasses import dataclass
from epochal.model.kinds import must_be, must_be_done, must_be_plain, must_be_text, must_be_whole
from epochal.plan.batches import side_by_side
from epochal.plan.conditions import AnyOf, BeginsWith
from epochal.plan.ops import Delete, Scan, Set, Steps, Update
from epochal.plan.values import AttributeValue, Item, Key, mapping, number, sequence, text

Value: TypeAlias = str | int | float | Decimal
"""What documents are ordered by: texts, and numbers, which come before them."""

MAX_SPREAD: Final = 64
MAX_SORT_BYTES: Final = 1_024
"""Bytes of an entry's sort key, which has the values but the first, and the document's key: DynamoDB's limit."""

MAX_PARTITION_BYTES: Final = 2_048
MAX_EXPONENT: Final = 4_999
ALL: Final = "*"
"""Names the list of all documents, where secondary keys have their names."""

_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}", re.ASCII)
_LOW: Final = re.compile("[\x00-!]")
_NINES: Final = str.maketrans("0123456789", "9876543210")


@dataclass(frozen=True, slots=True)
class SecondaryKey:
    """What documents are found by beside their own keys.

    Attributes:
        of: takes a document. Its value is a text or a number, or a tuple of these, which is compared from the left;
            a list has several such values, None has none.
        spread: in how many partitions the entries of one first value lie. One takes some 500 new entries a second; to
            read a page asks all of them.
        holds: takes a document; what it gives, as JSON, is in the entry, and is what a page shows in place of the
            document. Then a page reads entries alone, and the entry is written whenever that changes.
    """

    of: Callable[[Any], Any]
    spread: int = 1
    holds: Callable[[Any], Any] | None = None

    def __post_init__(self) -> None:
        must_be_plain(self.of, "of")
        must_be_whole(self.spread, "spread", least=1, most=MAX_SPREAD)
        if self.holds is not None:
            must_be_plain(self.holds, "holds")


class DeclaredKey(NamedTuple):
    """What the head of a generation says of a key."""

    spread: int
    holds: bool


# Values as texts of their order.


def written(values: tuple[Any, ...], field: str) -> str:
    """Encode values as text in their order; raise `InvalidInput` for values without an order."""
    return "".join(f"{part(value, field)} " for value in values)


def part(value: Any, field: str) -> str:
    """Encode one value as text in its order, without an end."""
    if isinstance(value, str):
        if not value.isascii():
            must_be_text(value, MAX_PARTITION_BYTES, field)
        return "t" + escaped(value)
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        raise InvalidInput(field, f"must be of texts and numbers, not {type(value).__name__}")
    return "n" + _figures(value, field)


def escaped(value: str) -> str:
    """Replace characters up to `!` in text, keeping the order."""
    return _LOW.sub(lambda low: "!" + chr(ord("0") + ord(low[0])), value)


def unescaped(value: str) -> str:
    """Restore text that was escaped."""
    return re.sub("!(.)", lambda low: chr(ord(low[1]) - ord("0")), value)


def _figures(value: float | Decimal, field: str) -> str:
    """Encode a number as text in the order of numbers: sign, magnitude and digits."""
    exact = Decimal(repr(value)) if isinstance(value, float) else Decimal(value)
    if not exact.is_finite():
        raise InvalidInput(field, "must be of numbers that are finite")
    if not exact:
        return "1"
    figures = "".join(map(str, exact.as_tuple().digits)).rstrip("0")
    if abs(exact.adjusted()) > MAX_EXPONENT:
        raise InvalidInput(
            field, f"must be of numbers with at most {MAX_EXPONENT:,} figures before the point"
        )
    shown = f"{exact.adjusted() + 5_000:04d}{figures}"
    return f"2{shown}" if exact > 0 else f"0{shown.translate(_NINES)}~"


# Entries of documents.


@dataclass(frozen=True, slots=True)
class Entries:
    """What a change of a document changes of its entries.

    Attributes:
        values: those it has then, for its item.
        gone: keys of items to delete.
        new: items to put.
    """

    values: AttributeValue
    gone: tuple[Key, ...]
    new: tuple[Item, ...]


@dataclass(frozen=True, slots=True)
class ModelKeys:
    """The keys of one generation, by name, the list of all documents among them."""

    by_name: Mapping[str, SecondaryKey]

    @property
    def declared(self) -> dict[str, DeclaredKey]:
        """The keys as the head of a generation stores them."""
        return {name: DeclaredKey(key.spread, key.holds is not None) for name, key in self.by_name.items()}

    @property
    def mark(self) -> str:
        """Digest of the keys, which is stored with places."""
        content = json.dumps({name: list(key) for name, key in sorted(self.declared.items())})
        return hashlib.sha256(content).hexdigest()[:8]

    def entries(self, model: str, key: str, item: Item | None, before: Any, after: Any) -> Entries:
        """Determine which entries change if a document becomes `after`, or is deleted (None).

        Args:
            model: name and generation of the read model.
            key: key of the document.
            item: item of the document as it is, with the value `before`; None if there is none.
        """
        had = _stored(item, self)
        wanted = {} if after is None else self._wanted(key, after)
        gone = [each for each in had if each not in wanted]
        new = [each for each in wanted if each not in had or self._differs(each, before, wanted[each])]
        return Entries(
            values=_values_item(wanted),
            gone=tuple(self._place(model, key, *each) for each in gone),
            new=tuple({**self._place(model, key, *each), **wanted[each]} for each in new),
        )

    def _wanted(self, key: str, document: Any) -> dict[tuple[str, str], Item]:
        """Derive the entries of a document, and what each contains."""
        entries = {}
        for name, by in self.by_name.items():
            field = f"{_shown(name)} of the document {key}"
            values = must_be_done(by.of(document), field)
            several = values if isinstance(values, list) else [] if values is None else [values]
            held = self._held(name, document)
            for value in several:
                entries[name, written(value if isinstance(value, tuple) else (value,), field)] = held
        return entries

    def _held(self, name: str, document: Any) -> Item:
        """Return what a document's entries of a key contain."""
        holds = self.by_name[name].holds
        if holds is None:
            return {}
        try:
            return {"d": text(json.dumps(must_be_done(holds(document), "holds")).decode())}
        except (ValueError, TypeError) as error:
            raise InvalidInput("holds", f"of {_shown(name)} must give JSON: {error}") from error

    def _differs(self, entry: tuple[str, str], before: Any, held: Item) -> bool:
        """Return whether the content of an entry has changed."""
        return bool(held) and self._held(entry[0], before) != held

    def _place(self, model: str, key: str, name: str, values: str) -> Key:
        """Return the key of an entry's item."""
        return entry_key(model, name, self.by_name[name].spread, values, key)


def keys_of(
    keys: Mapping[str, Callable[[Any], Any] | SecondaryKey],
    spread: int,
    holds: Callable[[Any], Any] | None,
) -> ModelKeys:
    """Return a read model's secondary keys by name; raise `InvalidInput` if a declared one is malformed."""
    must_be(Mapping, keys, "keys", "functions by name")
    secondary_keys = {ALL: SecondaryKey(_whole, spread, holds)}
    for name, key in keys.items():
        if not _NAME.fullmatch(str(name)):
            raise InvalidInput("keys", f"must have names of 1 to 64 letters, digits, - and _, not {name!r}")
        secondary_keys[name] = key if isinstance(key, SecondaryKey) else SecondaryKey(key)
    return ModelKeys(secondary_keys)


def _shown(name: str) -> str:
    """Return the name of a key for errors."""
    return "key" if name == ALL else name


def _whole(_: Any) -> tuple[()]:
    """Return the values of a document in the list of all: none, since its key is enough."""
    return ()


def stored_values(item: Item) -> dict[str, list[str]]:
    """Return the values of a document's entries by secondary key, as its item stores them."""
    return {name: [value["S"] for value in texts["L"]] for name, texts in item["e"]["M"].items()}


def _stored(item: Item | None, keys: ModelKeys) -> list[tuple[str, str]]:
    """List the entries that a document's item says it has."""
    if item is None:
        return []
    values = stored_values(item)
    return [(ALL, ""), *((name, value) for name in keys.by_name for value in values.get(name, ()))]


def _values_item(entries: Iterable[tuple[str, str]]) -> AttributeValue:
    """Encode the values of entries for a document's item."""
    values: dict[str, list[AttributeValue]] = {}
    for name, value in entries:
        if name != ALL:
            values.setdefault(name, []).append(text(value))
    return mapping({name: sequence(texts) for name, texts in values.items()})


def entry_key(model: str, name: str, spread: int, values: str, key: str) -> dict[str, AttributeValue]:
    """Return the key of a document's entry: its partition by the first value, its order by the rest.

    Raises:
        TooLarge: values and the document's key take more than DynamoDB's sort key.
    """
    first, _, rest = values.partition(" ")
    sort = f"{rest}t{escaped(key)} "
    partition = partition_of(model, name, shard_of(key, spread), first)
    for stored, limit in ((partition, MAX_PARTITION_BYTES), (sort, MAX_SORT_BYTES)):
        if len(stored.encode()) > limit:
            raise TooLarge(f"{_shown(name)} of the document {key}", len(stored.encode()), limit)
    return {"pk": text(partition), "sk": text(sort)}


def partition_of(model: str, name: str, shard: int, first: str) -> str:
    """Return the partition, or one of several, with the entries of a first value."""
    return f"{model}/{name}/{shard}/{first}"


def document_of(sort: str) -> str:
    """Return the key of the document to which an entry belongs."""
    return unescaped(sort[:-1].rpartition(" ")[2][1:])


def shard_of(key: str, spread: int) -> int:
    """Return the number of the partition with a document's entries."""
    return int.from_bytes(hashlib.sha256(key.encode()).digest()[:4], "big") % spread


# What a generation was built with, which its head says.


def head_key(model: str) -> dict[str, AttributeValue]:
    """Return the key of a generation's head."""
    return {"pk": text(model), "sk": text("keys")}


def head_item(model: str, declared: Mapping[str, DeclaredKey]) -> Item:
    """Encode the head of a generation with these keys."""
    marks = {
        name: {"n": number(each.spread), "h": number(int(each.holds))} for name, each in declared.items()
    }
    return {**head_key(model), "k": mapping({name: mapping(each) for name, each in marks.items()})}


def read_head(item: Item) -> dict[str, DeclaredKey]:
    """Decode the keys in the head of a generation."""
    return {
        name: DeclaredKey(int(mark["M"]["n"]["N"]), mark["M"]["h"]["N"] == "1")
        for name, mark in item["k"]["M"].items()
    }


# Deleting a generation of a read model: all of its items, a bounded part of the table in each call.
#
# The table is scanned, since the places of streams are in no list. The head says first that the generation is being
# dropped, so that nothing is asked of a half, and goes last.

LOOKED_AT: Final = 1_000
"""Items of the table that a call reads at most."""


@dataclass(frozen=True, slots=True)
class Dropped:
    """What one call has deleted.

    Attributes:
        items: how many.
        next: the `after` of the call that follows; None once all is gone.
    """

    items: int
    next: str | None = None


def drop(table: str, model: str, after: str | None) -> Steps[Dropped]:
    """Delete the generation's items among the table's next ones; return how many and where to continue."""
    start = None if after is None else _read(after)
    if start is None:
        yield Update(table=table, key=head_key(model), sets=(Set("z", number(1)),))
    own = AnyOf((BeginsWith("pk", f"{model}#"), BeginsWith("pk", f"{model}/")))
    page = yield Scan(table=table, where=own, limit=LOOKED_AT, after=start)
    yield from side_by_side(Delete(table=table, key=_key(item)) for item in page.items)
    if page.last is not None:
        return Dropped(len(page.items), _written(page.last))
    yield Delete(table=table, key=head_key(model))
    return Dropped(len(page.items))


def _key(item: Item) -> Key:
    """Return the key of an item."""
    return {"pk": item["pk"], "sk": item["sk"]}


def _written(last: Key) -> str:
    """Encode a continuation."""
    return urlsafe_b64encode(json.dumps([last["pk"]["S"], last["sk"]["S"]])).decode()


def _read(after: str) -> Key:
    """Decode a continuation; raise `InvalidInput` if it is malformed."""
    must_be(str, after, "after", "a continuation: `next` of the call before")
    try:
        partition, sort = json.loads(b64decode(after, altchars=b"-_", validate=True))
        return {"pk": text(partition + ""), "sk": text(sort + "")}
    except (binascii.Error, ValueError, TypeError) as error:
        raise InvalidInput("after", "is no continuation") from error
