"""Dictionaries as items of the table of pages, and how readers and writers come by them (FORMATS §8).

    p                   i              d
    $dictionary:Cart    a number       what it holds; the number is its id. Never changed, never removed
    $dictionary:Cart    0              what the one in use holds: the one that writers of the category pack under
    $dictionary:Cart    -1             none; `t` is when one was last trained unasked

A dictionary is stored before it is in use, and so before the first frame that names it. A writer asks for the one in
use with its first append in a category, and again after some minutes; meanwhile it may use an older one, or none. A
reader asks for a dictionary when it first meets a frame that names it, once a process. If it is gone or corrupt, the
copy in use may be it: so another takes that copy's place only once the old one has its item, too.

A stream whose name has no `-` is a category of its own, which no dictionary is for; nor is one for streams of tags.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final, TypeAlias

from epochal.errors import CorruptData, UnknownDictionary
from epochal.model.events import PER_SECOND, Ticks
from epochal.pages.items import DICTIONARIES, Page
from epochal.pages.reading import query
from epochal.plan.ops import Absent, Done, Put, Query, Steps
from epochal.plan.values import Item, Key, binary, number, read_number, text

if TYPE_CHECKING:
    from epochal.codec.dictionaries import Dictionary

ASK_AGAIN: Final = 300 * PER_SECOND
"""How long a writer goes by what it found in use. An old dictionary costs some bytes, asking costs half a read unit."""

TRAIN_AGAIN: Final = 7 * 86_400 * PER_SECOND
"""Events change their form with releases, not by the hour."""

_NOTE: Final = -1

_MOST: Final = 1_000
"""Categories that a writer remembers."""

InUse: TypeAlias = "dict[tuple[str, str], tuple[Ticks, Dictionary | None]]"
"""By table and category: when a writer asked for the dictionary in use, and what it found."""


def category_with_one(stream: str) -> str | None:
    """The category of a stream, if dictionaries are for it."""
    category, dash, _ = stream.partition("-")
    return category if dash and not category.startswith("$") else None


def dictionary_item(category: str, dictionary: Dictionary, *, in_use: bool = False) -> Item:
    """A dictionary, or the copy that says that it is in use."""
    return {**_key(category, 0 if in_use else _number(dictionary.id)), "d": binary(dictionary.content)}


def read_dictionary(item: Item) -> Dictionary:
    """A dictionary, known from now on. Raises `CorruptData` where it is none, or another than its key says."""
    from epochal.codec.dictionaries import id_of, learn  # noqa: PLC0415  most stores have none

    try:
        name, index, content = item["p"]["S"], int(item["i"]["N"]), bytes(item["d"]["B"])
    except (KeyError, TypeError, ValueError) as error:
        raise CorruptData(f"an item of dictionaries that is none: {error!r}") from error
    if index and index != _number(id_of(content)):
        raise CorruptData(f"{name}: dictionary {index:08x} is not what it was")
    return learn(content)


def learn_for(table: str, pages: Iterable[Page]) -> Steps[None]:
    """Load the dictionaries that frames of these pages name, where this process has not met them.

    One that is missing or corrupt hides the events that are packed under it, and no others; opening them raises.
    """
    from epochal.codec.dictionaries import is_known  # noqa: PLC0415  most stores have none

    for category, wanted in _named_by(pages):
        if not is_known(wanted):
            yield from _found(table, category, wanted)


def lacks(page: Page) -> bool:
    """Whether this process has not met a dictionary that frames of a page name."""
    from epochal.codec.dictionaries import is_known  # noqa: PLC0415  most stores have none

    return not all(map(is_known, page.dictionaries))


def in_use(known: InUse, table: str, stream: str, now: Ticks) -> Steps[Dictionary | None]:
    """The dictionary to pack events of a stream under, as it was found some minutes ago or is found now."""
    category = category_with_one(stream)
    if category is None:
        return None
    kept = known.get((table, category))
    if kept is not None and 0 <= now - kept[0] < ASK_AGAIN:
        return kept[1]
    found = yield from find_in_use(table, category, consistent=False)
    if len(known) >= _MOST:
        known.clear()
    known[table, category] = (now, found)
    return found


def find_in_use(table: str, category: str, *, consistent: bool = True) -> Steps[Dictionary | None]:
    """The dictionary in use in a category."""
    return (yield from _loaded(table, category, 0, consistent=consistent))


def put(table: str, category: str, dictionary: Dictionary) -> Steps[None]:
    """Store a dictionary, if it is not there."""
    reply = yield Put(table=table, item=dictionary_item(category, dictionary), condition=Absent("i"))
    if not isinstance(reply, Done) and reply.item is not None:
        read_dictionary(reply.item)


def put_in_use(table: str, category: str, dictionary: Dictionary) -> Steps[None]:
    """Store a dictionary; then writers use it. The copy of the one before goes, so that this must be stored, too.

    Raises:
        CorruptData: what is stored under the number of either is another.
    """
    yield from put(table, category, dictionary)
    before = yield from find_in_use(table, category)
    if before is not None and before.id != dictionary.id:
        yield from put(table, category, before)
    yield Put(table=table, item=dictionary_item(category, dictionary, in_use=True))


def training_due(table: str, category: str, now: Ticks) -> Steps[bool]:
    """Whether none has been trained unasked for a week; that it is now is noted first, in case it never ends."""
    reply = yield _asking(table, category, _NOTE)
    last = read_number(reply.items[0], "t") if reply.items else None
    if last is not None and now - last < TRAIN_AGAIN:
        return False
    yield Put(table=table, item={**_key(category, _NOTE), "t": number(now)})
    return True


def bring(table: str, into: str, pages: Iterable[Page]) -> Steps[None]:
    """Copy the dictionaries that frames of these pages name to another table that gets the pages.

    Raises:
        UnknownDictionary: one is missing.
    """
    for category, wanted in _named_by(pages):
        reply = yield _asking(into, category, _number(wanted))
        if not reply.items:
            found = yield from _found(table, category, wanted)
            if found is None:
                raise UnknownDictionary(wanted.hex())
            yield from put(into, category, found)


def _named_by(pages: Iterable[Page]) -> Iterator[tuple[str, bytes]]:
    """The dictionaries that frames of pages name, with their categories, each once."""
    named = {(category_with_one(page.stream), each): None for page in pages for each in page.dictionaries}
    return ((category, each) for category, each in named if category is not None)


def _found(table: str, category: str, wanted: bytes) -> Steps[Dictionary | None]:
    """A dictionary by its id. Where its item is gone or corrupt, the copy of the one in use may be it."""
    for index in (_number(wanted), 0):
        found = yield from _loaded(table, category, index)
        if found is not None and found.id == wanted:
            return found
    return None


def _loaded(table: str, category: str, index: int, *, consistent: bool = True) -> Steps[Dictionary | None]:
    reply = yield _asking(table, category, index, consistent=consistent)
    try:
        return read_dictionary(reply.items[0]) if reply.items else None
    except CorruptData:
        return None


def _asking(table: str, category: str, index: int, *, consistent: bool = True) -> Query:
    """A query, because readers of pages are allowed queries."""
    return query(table, f"{DICTIONARIES}{category}", index, index, limit=1, consistent=consistent)


def _key(category: str, index: int) -> Key:
    return {"p": text(f"{DICTIONARIES}{category}"), "i": number(index)}


def _number(dictionary: bytes) -> int:
    return int.from_bytes(dictionary, "big")
