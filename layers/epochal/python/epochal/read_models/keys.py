"""Keys by which a read model is queried: values of its documents, as entries that DynamoDB keeps in order.

    models.open("loans", 1, keys={"by_member": lambda loan: (loan["member"], loan["due"])})

A document has an entry for each of its values, and one in the list of all documents. Entries are items of their own,
written with the document in one transaction, and only where they change. So they are exact, and there as soon as the
document is; an index of DynamoDB's would come later. The document's item says which entries it has: what a function
derives today need not be what it derived when they were written.

Entries are stored with the texts of their values (`read_models.value_texts`, FORMATS §6): they outlive the code.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, NamedTuple

from epochal.codec import json
from epochal.errors import InvalidInput, TooLarge
from epochal.lazy_dataclasses import dataclass
from epochal.model.kinds import must_be, must_be_whole
from epochal.model.plain_functions import must_be_done, must_be_plain
from epochal.plan.values import AttributeValue, Item, Key, mapping, sequence, text
from epochal.read_models.value_texts import MAX_PARTITION_BYTES, escaped, unescaped, written

MAX_SPREAD: Final = 64
MAX_SORT_BYTES: Final = 1_024
"""Bytes of an entry's sort key, which has the values but the first, and the document's key: DynamoDB's limit."""

ALL: Final = "*"
"""Names the list of all documents, where secondary keys have their names."""

_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}", re.ASCII)


@dataclass(frozen=True, slots=True)
class SecondaryKey:
    """A secondary key of documents: values by which a read model finds and orders them.

    Attributes:
        of: function that returns a document's value for this key: a text, a number, or a tuple of these, compared from
            the left; a list for several values, None for none.
        spread: number of DynamoDB partitions over which entries with the same first value are spread. Each takes some
            500 new entries a second; reading a page reads all of them.
        holds: function that returns, for a document, the JSON value that a page of this key shows in place of the
            document. A page then reads only the key's entries; an entry is written whenever its value changes.
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
    """What is stored of a secondary key with its generation of the read model.

    Attributes:
        spread: number of DynamoDB partitions that the key's entries are spread over.
        holds: whether entries hold a value made from the document, instead of the document itself.
    """

    spread: int
    holds: bool


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
    """The secondary keys of one generation of a read model, by name, including the key that lists all documents.

    Attributes:
        by_name: secondary keys of the generation by name; the key that lists all documents is among them, under a
            reserved name.
    """

    by_name: Mapping[str, SecondaryKey]

    @property
    def declared(self) -> dict[str, DeclaredKey]:
        """What is stored of each key with the generation, by the key's name."""
        return {name: DeclaredKey(key.spread, key.holds is not None) for name, key in self.by_name.items()}

    @property
    def mark(self) -> str:
        """Digest of what `declared` returns, which is stored with the model's progress."""
        content = json.dumps({name: list(key) for name, key in sorted(self.declared.items())})
        return hashlib.sha256(content).hexdigest()[:8]

    def entries(self, model: str, key: str, item: Item | None, before: Any, after: Any) -> Entries:
        """Determine which entries of the keys change if a document becomes `after`, or is deleted (None).

        Args:
            model: name and generation of the read model.
            key: key of the document.
            item: item of the document as it is, with the value `before`; None if there is none.
            before: value of the document before the change.
            after: value of the document after the change; None if it is deleted.
        """
        had = _stored(item, self)
        entries = {} if after is None else self._wanted(key, after)
        gone = [entry for entry in had if entry not in entries]
        new = [entry for entry in entries if entry not in had or self._differs(entry, before, entries[entry])]
        return Entries(
            values=_values_item(entries),
            gone=tuple(self._place(model, key, *entry) for entry in gone),
            new=tuple({**self._place(model, key, *entry), **entries[entry]} for entry in new),
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
        """Return the attribute with the JSON that the key's `holds` makes of a document; empty without one."""
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
