"""Read models: documents, and how far each stream has been folded into them, written together.

    delays = models.open("delays", 1)

    @reaction(name="delays-1", categories=["Aircraft"], removed=lambda delivery: delays.remove(delivery, forget))
    def update(delivery: Delivery) -> None:
        delays.apply(delivery, fold)

So an event that is delivered twice is folded once, and so is a removal of events, on which `forget` may delete
documents. `wait_for` tells a caller when the events it appended are in the documents. A model is rebuilt as its next
generation, by a reaction of another name that begins at the beginning, beside the one that is live; `swap` makes it
the live one. A model that is opened with keys can be asked for documents by them (`read_models.keys`).

How far a stream has been folded is in the item of the document whose key is the stream's name. So where each stream
has a document of its own, one conditional write of one item has both, at a quarter of a transaction's price. The item
is also there without a document, and every commit of the stream's events writes it, with other documents in one
transaction. Where it has become large, and events of the stream change others, the progress gets an item of its own,
the place, and keeps it.

The progress is read without consistency: it only grows, and what is decided by it is written on the condition that the
item is as it was read. That nothing is there yet is no such condition of the place, and is looked for consistently. The
items are described in FORMATS §6.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar, cast, overload

from epochal.codec import json
from epochal.errors import Contended, CorruptData, InvalidInput, Refused, TooLarge
from epochal.feed.events import FeedEvent
from epochal.layout.changes import Removal
from epochal.lazy_dataclasses import dataclass, field, replace
from epochal.model.kinds import must_be, must_be_text, must_be_whole
from epochal.model.plain_functions import must_be_done, must_be_plain
from epochal.model.plain_json import find_names_not_text
from epochal.plan.conditions import Absent, BeginsWith, Condition, equals
from epochal.plan.limits import ITEM_BYTES, TRANSACTION_ITEMS
from epochal.plan.ops import Delete, Done, Get, Put, Query, Scan, Transact
from epochal.plan.values import Item, Key, item_size, number, read_number, read_text, text
from epochal.reactions.definition import Delivery
from epochal.settings import Settings
from epochal.store.driver import SIDE_BY_SIDE, Driver

if TYPE_CHECKING:
    from epochal.deciders.value_forms import ValueForm
    from epochal.read_models.asking import Page, Question
    from epochal.read_models.dropping import Dropped
    from epochal.read_models.keys import DeclaredKey, Entries, ModelKeys, SecondaryKey
    from epochal.read_models.value_texts import Value

MAX_NAME_BYTES: Final = 512

MAX_KEY_BYTES: Final = 2_048
"""Bytes of a document's key with the model's name and generation before it: DynamoDB's limit."""

ATTEMPTS: Final = 20
"""Attempts to commit one delivery while other writers are faster."""

POLL_SECONDS: Final = 0.05
"""Between looks while waiting: half a read unit each, or for each 4 KB of the document with the stream's name."""

SMALL: Final = 1_024
"""Bytes up to which an item is written with a stream's progress though its document does not change: a write unit."""

FULL: Final = TRANSACTION_ITEMS - 10
"""Items after which a delivery is committed in part: one event more rarely touches ten."""


def backward_swap(generation: int, live: int) -> InvalidInput:
    """Build the error of a swap to a generation before the live one."""
    rule = f"must not be {generation}: {live} is live already, and a swap only goes forward"
    return InvalidInput("generation", rule)


def wait_for_version(
    version: int,
    place: Callable[[], int | None],
    seconds: float,
    clock: Callable[[], float],
    sleep: Callable[[float], object],
) -> bool:
    """Poll `place` until it returns at least `version`, for at most `seconds`; return whether it did."""
    ends = clock() + seconds
    while (place() or 0) < version:
        if clock() >= ends:
            return False
        sleep(POLL_SECONDS)
    return True


@dataclass(slots=True)
class _Document:
    """A document as it was read, and as it is to be.

    Attributes:
        item: as it was read; None where there was none. It may have the progress of a stream and no document.
        entries: what else a change of it writes, once that has been asked for.
    """

    item: Item | None
    value: Any
    changed: bool = False
    entries: Entries | None = None

    def change(self, value: Any) -> None:
        """Set the new value; None deletes the document."""
        self.value, self.changed, self.entries = value, True, None


@dataclass(frozen=True, slots=True)
class _Progress:
    """How far a stream has been folded, as it was read.

    Attributes:
        next: next index to be folded; None where nothing has been.
        home: item of the document with the stream's name as its key; None where there is none.
        place: item of the progress alone; None where the progress is in `home`, or nowhere.
    """

    next: int | None
    home: Item | None
    place: Item | None


@dataclass(slots=True)
class Documents:
    """The documents of a read model, by key, as a fold (the function that applies one event) reads and writes them.

    Values are JSON, in which numbers stay exact, or of the class that the model was opened with.

    Attributes:
        load: function that reads a document by its key.
    """

    load: Callable[[str], _Document]
    _held: dict[str, _Document] = field(default_factory=dict)

    def get(self, key: str, default: Any = None) -> Any:
        """Return a document, or `default` if there is none. To change it, put it back.

        Args:
            key: key of the document.
            default: result if there is no such document.
        """
        value = self._document(key).value
        return default if value is None else value

    def put(self, key: str, value: Any) -> None:
        """Put a document under a key; it is written with the fold's other changes.

        Args:
            key: key of the document.
            value: the document: JSON, or an object of the model's class. None is refused.
        """
        if value is None:
            raise InvalidInput("value", "must not be null: delete the document instead")
        self._document(key).change(value)

    def delete(self, key: str) -> None:
        """Delete a document, if there is one.

        Args:
            key: key of the document.
        """
        self._document(key).change(None)

    @property
    def changes(self) -> dict[str, _Document]:
        """Documents that have been written or deleted, by key."""
        return {key: document for key, document in self._held.items() if document.changed}

    def _document(self, key: str) -> _Document:
        """Return a document, loading it at the first access."""
        if key not in self._held:
            self._held[key] = self.load(key)
        return self._held[key]


D = TypeVar("D")
T = TypeVar("T")

Fold = Callable[[Documents, FeedEvent], object]
"""A function that updates documents by one event. It may be called again for the same event, on documents that do not
have it yet.
"""

FoldRemoval = Callable[[Documents, Removal], object]
"""A function that updates documents when events of a stream have been pruned or deleted, under the same rules as
`Fold`.
"""


# No slots: a frozen, slotted, generic class cannot be called with its parameters, `X[Y](...)`, on Python 3.11.
@dataclass(frozen=True, kw_only=True)
class ReadModel(Generic[D]):
    """One generation of a read model, whose documents are of type `D`.

    Attributes:
        driver: the driver that sends the requests.
        generation: number of this generation of the model.
        name: name of the read model.
        table: name of the table, which has the keys `pk` and `sk`, both strings (`layout.tables.READ_MODELS`).
        keys: secondary keys by which its documents are found; None if whoever opened it gave none.
        form: converter of documents to JSON and back, if the documents are objects of a class; else None.
    """

    driver: Driver
    table: str
    name: str
    generation: int
    keys: ModelKeys | None = field(default=None, compare=False)
    form: ValueForm | None = field(default=None, compare=False)
    _heads: dict[str, dict[str, DeclaredKey]] = field(default_factory=dict, compare=False, repr=False)

    def apply(self, delivery: Delivery, fold: Fold) -> int:
        """Fold a delivery's events into the documents, each once; return how many were new.

        Args:
            delivery: delivery that a reaction's handler receives.
            fold: plain function of the documents and one event, which puts and deletes documents. It may be called
                again for an event, if another writer was faster.

        Raises:
            Contended: others changed the same documents at every attempt.
            InvalidInput: `fold` is no plain function: what it would do, nothing awaits. Or the generation was built
                with other keys.
            TooLarge: a document, or what one event changes.
        """
        must_be_plain(fold, "fold")
        self._begin()
        folded, attempts, most = 0, 0, len(delivery.events)
        # Of a stream's first event there is no progress, and to say so for certain takes a consistent read.
        consistent = delivery.events[0].index == 0 if delivery.events else False
        while True:
            progress, consistent = self._progress(delivery.stream, consistent=consistent), True
            place = progress.next
            events = [event for event in delivery.events if place is None or event.index >= place]
            if not events:
                self._advance(delivery.stream, progress, delivery.following)
                return folded
            documents, most = self._documents(delivery.stream, progress), min(most, len(events))
            try:
                taken = self._folded(events[:most], documents, fold)
                following = delivery.following if len(taken) == len(events) else taken[-1].index + 1
                committed = self._commit(delivery.stream, progress, following, documents)
            except TooLarge:
                if most == 1:
                    raise
                most //= 2
                continue
            if committed:
                folded += len(taken)
                if len(taken) == len(events):
                    return folded
                continue
            attempts += 1
            if attempts == ATTEMPTS:
                raise Contended(delivery.stream, attempts)

    def skip(self, delivery: Delivery) -> bool:
        """Note that the model has passed events of types that it does not read; return whether that was new.

        It is the `skipped` of a reaction: `wait_for` succeeds with versions that such events end at.

        Args:
            delivery: delivery that a reaction's `skipped` receives, without events.

        Returns:
            False if that was known before.

        Raises:
            InvalidInput: the generation was built with other keys.
        """
        self._begin()
        progress = self._progress(delivery.stream, consistent=False)
        return self._advance(delivery.stream, progress, delivery.following)

    def remove(self, delivery: Delivery, fold: FoldRemoval) -> bool:
        """Fold a delivery's pruning or deletion into the documents; return False if it was folded before.

        It is not folded after a later one of the stream, either.

        Args:
            delivery: delivery of a removal, without events.
            fold: plain function of the documents and the removal, which puts and deletes documents.

        Raises:
            Contended, InvalidInput, TooLarge: as `apply` does; also where the delivery has events.
        """
        must_be_plain(fold, "fold")
        removal = delivery.removal
        if removal is None:
            raise InvalidInput("delivery", "must be one of a removal: events are for `apply`")
        self._begin()
        for _ in range(ATTEMPTS):
            mark = self._mark_of_removal(delivery.stream) or 0
            if removal.mark <= mark:
                return False
            documents = Documents(self._load)
            must_be_done(fold(documents, removal), "fold")
            moved = self._moved(delivery.stream, "removed", mark or None, removal.mark)
            first = _first_version(delivery.stream, f"-{removal.mark}")
            if self._write([moved, *self._write_changes(documents.changes, first)]):
                return True
        raise Contended(delivery.stream, ATTEMPTS)

    @overload
    def get(self, key: str) -> D | None: ...

    @overload
    def get(self, key: str, default: T) -> D | T: ...

    def get(self, key: str, default: Any = None) -> Any:
        """Read a document consistently; return `default` if there is none.

        Args:
            key: key of the document.
            default: what to return if there is no such document.
        """
        value = self._load(key).value
        return default if value is None else value

    def list(
        self,
        *,
        prefix: str = "",
        since: str | None = None,
        below: str | None = None,
        limit: int = 20,
        after: str | None = None,
        backward: bool = False,
    ) -> Page:
        """Return a page of the documents with a given prefix or range of keys, in the order of their keys.

        With `prefix`, those whose keys begin with it; otherwise those from `since` on and before `below`.

        Args:
            prefix: beginning of the keys.
            since: alternatively, the lowest key.
            below: key before which the documents end.
            limit: number of documents at most, up to 1,000.
            after: `next` of the previous page, with all else the same.
            backward: whether the last key comes first.

        Raises:
            InvalidInput: the generation was built without keys, or `after` is of another question.
        """
        question = self._question(None, (), prefix=prefix, since=since, below=below)
        return self._page(question, limit, after, backward=backward)

    def find(
        self,
        name: str,
        *values: Value,
        prefix: str = "",
        since: Value | None = None,
        below: Value | None = None,
        limit: int = 20,
        after: str | None = None,
        backward: bool = False,
    ) -> Page:
        """Return a page of documents whose secondary key `name` begins with given values, in the key's order.

        Args:
            name: name of the key.
            values: first values of the key, to which those of the documents are equal: one or more.
            prefix: the value that follows is text and begins with this. After the last value the document's key
                follows.
            since: alternatively, the value that follows is this or above.
            below: and less than this.
            limit: number of documents at most, up to 1,000. A document that has several values in the range is shown
                for each.
            after: `next` of the previous page, with all else the same; None for the first page.
            backward: whether the last document comes first.

        Raises:
            InvalidInput: the generation was built without that key, or `after` is of another question.
        """
        question = self._question(name, values, prefix=prefix, since=since, below=below)
        return self._page(question, limit, after, backward=backward)

    def count(
        self,
        name: str | None = None,
        *values: Value,
        prefix: str = "",
        since: Value | None = None,
        below: Value | None = None,
        at_most: int | None = None,
    ) -> int:
        """Count what `find` or, without `name`, `list` shows on all pages, up to `at_most` if given.

        It reads the entries of documents: one read unit for about thirty.

        Args:
            name: name of the key; None counts the list of all documents.
            values, prefix, since, below: as for `find`; without a name, `prefix`, `since` and `below` as for `list`.
            at_most: number at which to stop counting.
        """
        from epochal.read_models.asking import count  # noqa: PLC0415  only who asks loads it

        question = self._question(name, values, prefix=prefix, since=since, below=below)
        return self.driver.run(count(self.table, question, at_most))

    def place(self, stream: str) -> int | None:
        """Return the index of a stream's next event that is to be folded; None if none of its events has been folded.

        Args:
            stream: name of the stream.
        """
        return self._read_progress(stream, consistent=True).next

    def wait_for(self, stream: str, version: int, *, seconds: float = 10.0) -> bool:
        """Wait until every event of a stream below `version` is in the documents; return whether it is.

        With the version of an append, what is read afterwards shows it. Events of types that the model does not read
        are passed with those that it reads, if they come in one append. Where appends may have no others, the reaction
        needs `skipped=model.skip`, or their versions are waited for in vain.

        Args:
            stream: name of the stream.
            version: index after the last event to wait for, such as the version that an append returns.
            seconds: time to wait at most.
        """
        # Progress only grows: what an inconsistent read shows of it is true.
        return wait_for_version(
            version,
            lambda: self._read_progress(stream, consistent=False).next,
            seconds,
            self.driver.clock,
            self.driver.sleep,
        )

    def _load(self, key: str) -> _Document:
        """Load a document with its item."""
        return self._document(self._get(self._key(key, "document")))

    def _document(self, item: Item | None) -> _Document:
        """Decode the document of an item, which may have none."""
        return _Document(item, None if item is None or "d" not in item else self._read(item))

    def _documents(self, stream: str, progress: _Progress) -> Documents:
        """Return the documents that a fold of a stream's events reads and writes.

        The document that came with the progress is not read again if its item is written in any case, so that it
        matters whether it was read as it is.
        """
        own = {stream: self._document(progress.home)} if progress.place is None else {}
        return Documents(self._load, own)

    def _read(self, item: Item) -> Any:
        """Decode a document from its item; raise `CorruptData` if it does not fit its class."""
        try:
            return self._parsed(item["d"]["S"])
        except ValueError as error:
            raise CorruptData(f"the document {item['pk']['S']} is not of its class: {error}") from error

    def _parsed(self, body: str) -> Any:
        """Parse the body of a document."""
        return json.loads(body) if self.form is None else self.form.parse(body.encode())

    def _folded(self, events: Sequence[FeedEvent], documents: Documents, fold: Fold) -> Sequence[FeedEvent]:
        """Fold events until all are folded or a transaction is full; return those that were."""
        for taken, event in enumerate(events, 1):
            must_be_done(fold(documents, event), "fold")
            if self._items(documents) >= FULL:
                return events[:taken]
        return events

    def _items(self, documents: Documents) -> int:
        """Count the items that the changes of documents write."""
        changes = documents.changes
        if self.keys is None:
            return len(changes)
        entries = [self._entries(key, document) for key, document in changes.items()]
        return sum(1 + len(entry.gone) + len(entry.new) for entry in entries)

    def _commit(self, stream: str, progress: _Progress, following: int, documents: Documents) -> bool:
        """Write documents and the stream's new progress; return False if another writer was faster.

        Whoever commits events of a stream has read, and writes, the item that has the stream's progress, on the
        condition that it is as it was. So no two commit the same event.
        """
        changes, first = documents.changes, _first_version(stream, following)
        if progress.place is not None:
            moved = self._moved(stream, "place", progress.next, following)
            return self._write([moved, *self._write_changes(changes, first)])
        home = changes.pop(stream, None) or self._document(progress.home)
        others = self._write_changes(changes, first)
        if home.changed or home.item is None or item_size(home.item) <= SMALL:
            return self._write([*self._writes(stream, home, first, self._moved_to(following)), *others])
        moved = self._moved(stream, "place", None, following)
        return self._write([moved, *self._writes(stream, home, first, {}), *others])

    def _advance(self, stream: str, progress: _Progress, following: int) -> bool:
        """Write a later progress of a stream without documents; return False if it was there already."""
        while progress.next is None or progress.next < following:
            if self._commit(stream, progress, following, Documents(self._load)):
                return True
            progress = self._progress(stream, consistent=True)
        return False

    def _moved(self, stream: str, kind: str, before: int | None, after: int) -> Put:
        """Build the write of how far a stream has been folded, refused if that has changed."""
        return Put(
            table=self.table,
            item={**self._key(stream, kind), **self._moved_to(after)},
            condition=Absent("n") if before is None else equals("n", number(before)),
        )

    def _moved_to(self, after: int) -> Item:
        """Return the attributes that say how far a stream has been folded, and by which keys."""
        return {"n": number(after), **({} if self.keys is None else {"k": text(self.keys.mark)})}

    def _write(self, writes: Sequence[Put | Delete]) -> bool:
        """Write items, several in one transaction; return whether that succeeded."""
        reply = self.driver.ask(writes[0] if len(writes) == 1 else Transact(writes=tuple(writes)))
        # A refusal may be the echo of our own write: the progress, read again, tells.
        return isinstance(reply, Done)

    def _write_changes(self, changes: Mapping[str, _Document], first: int) -> Sequence[Put | Delete]:
        """Build the writes of changed documents and their entries; the progress of streams stays as it was read."""
        return tuple(
            write
            for key, document in changes.items()
            for write in self._writes(key, document, first, _progress_in(document.item))
        )

    def _writes(self, key: str, document: _Document, first: int, progress: Item) -> Iterable[Put | Delete]:
        """Build the writes of a document, with the progress of the stream of its name, and of its entries."""
        place, item = self._key(key, "document"), document.item
        version = 0 if item is None else read_number(item, "v") or 0
        before: Condition = equals("v", number(version)) if version else Absent("v")
        if item is not None and "d" in item and ("e" in item) == (self.keys is None):
            raise self._otherwise()
        has_entries = self.keys is not None and document.changed
        entries = self._entry_writes(self._entries(key, document)) if has_entries else ()
        if document.value is None and not progress:
            return (Delete(table=self.table, key=place, condition=before), *entries)
        document_item: Item = {**place, "v": number(version + 1 if version else first), **progress}
        if not document.changed:
            stored = item or {}
            document_item = {**document_item, **{name: stored[name] for name in ("d", "e") if name in stored}}
        elif document.value is not None:
            document_item = {**document_item, "d": text(self._body(key, document.value))}
            if document.entries is not None:
                document_item = {**document_item, "e": document.entries.values}
        if item_size(document_item) > ITEM_BYTES:
            raise TooLarge(f"document {key}", item_size(document_item), ITEM_BYTES)
        return (Put(table=self.table, item=document_item, condition=before), *entries)

    def _entries(self, key: str, document: _Document) -> Entries:
        """Determine which entries a change of a document adds and removes.

        They are derived from what would be read of the document.
        """
        if document.entries is None and self.keys is not None:
            again = None if document.value is None else self._parsed(self._body(key, document.value))
            item = None if document.item is None or "d" not in document.item else document.item
            before = None if item is None else self._read(item)
            document.entries = self.keys.entries(self._of, key, item, before, again)
        return cast("Entries", document.entries)

    def _entry_writes(self, entries: Entries) -> Iterable[Put | Delete]:
        """Build the writes of entries, without conditions: the document's condition protects them."""
        deletions = [Delete(table=self.table, key=entry) for entry in entries.gone]
        return [*deletions, *(Put(table=self.table, item=entry) for entry in entries.new)]

    def _body(self, key: str, value: Any) -> str:
        """Encode a document as JSON; raise `InvalidInput` if it could not be read back."""
        try:
            body = json.dumps(value if self.form is None else self.form.write(value)).decode()
            self._parsed(body)  # what could not be read back is never written
        except (ValueError, TypeError) as error:
            raise InvalidInput("value", f"of the document {key} must be JSON: {error}") from error
        if self.form is None and (unnamed := find_names_not_text("value", value)) is not None:
            raise InvalidInput(unnamed[0], f"of the document {key} must not have names that are not text")
        return body

    def _key(self, name: str, kind: str) -> Key:
        """Return the key of a document's or a place's item."""
        field = "key" if kind == "document" else "stream"
        must_be(str, name, field, "text")
        key = f"{self._of}#{name}"
        must_be_text(key, MAX_KEY_BYTES, field)
        return {"pk": text(key), "sk": text(kind)}

    def _get(self, key: Key) -> Item | None:
        """Read an item."""
        return self.driver.ask(Get(table=self.table, key=key)).item

    def _progress(self, stream: str, *, consistent: bool) -> _Progress:
        """Return how far a stream has been folded; raise `InvalidInput` if it was folded with other keys.

        A place that was written in a transaction with the document may be missing beside it in one reply, and any in an
        inconsistent one.
        """
        progress = self._read_progress(stream, consistent=consistent)
        if progress.next is None and not (consistent and progress.home is None):
            place = self._get(self._key(stream, "place"))
            progress = _Progress(None if place is None else read_number(place, "n"), progress.home, place)
        self._check_keys(progress.place or progress.home)
        return progress

    def _read_progress(self, stream: str, *, consistent: bool) -> _Progress:
        """Read how far a stream has been folded, with the document of its name, in one request."""
        key = self._key(stream, "place")
        query = Query(table=self.table, partition=("pk", key["pk"]), consistent=consistent)
        by_kind = {item["sk"]["S"]: item for item in self.driver.ask(query).items}
        home, place = by_kind.get("document"), by_kind.get("place")
        item = place or home
        return _Progress(None if item is None else read_number(item, "n"), home, place)

    def _mark_of_removal(self, stream: str) -> int | None:
        """Read the mark of the latest removal that has been folded; refuse as for progress."""
        item = self._get(self._key(stream, "removed"))
        self._check_keys(item)
        return None if item is None else read_number(item, "n")

    def _check_keys(self, item: Item | None) -> None:
        """Refuse an item with the progress of a generation that was built with other keys."""
        mark = None if self.keys is None else self.keys.mark
        if item is not None and "n" in item and read_text(item, "k") != mark:
            raise self._otherwise()

    # What the generation is asked by. Its head is written before its first document, and read once.

    @property
    def _of(self) -> str:
        return f"{self.name}@{self.generation}"

    def _begin(self) -> None:
        """Write the head of a generation with keys, if there is none yet."""
        if self.keys is not None:
            self._declared(self.keys)

    def _declared(self, keys: ModelKeys | None = None) -> dict[str, DeclaredKey]:
        """Return a generation's keys, storing `keys` if it is new; raise `InvalidInput` if none or others."""
        from epochal.read_models.generation_heads import head_item, head_key, read_head  # noqa: PLC0415  only with keys

        if self._of not in self._heads:
            stored = self._get(head_key(self._of))
            if stored is None and keys is not None:
                head = Put(table=self.table, item=head_item(self._of, keys.declared), condition=Absent("pk"))
                was_written = isinstance(self.driver.ask(head), Done)
                stored = head.item if was_written else self._get(head_key(self._of))
            if stored is None:
                raise InvalidInput(
                    "keys",
                    f"{self._of} has no keys: no event has reached it yet, or it was built without keys, "
                    "and only its next generation can have some",
                )
            if "z" in stored:
                raise InvalidInput("generation", f"{self._of} is being dropped")
            self._heads[self._of] = read_head(stored)
        declared = self._heads[self._of]
        if self.keys is not None and self.keys.declared != declared:
            raise self._otherwise()
        return declared

    def _otherwise(self) -> InvalidInput:
        """Build the error that a generation was built with other keys."""
        rule = f"{self._of} was built with others: open its next generation with these"
        return InvalidInput("keys", rule)

    def _question(self, name: str | None, values: tuple[Value, ...], **bounds: Any) -> Question:
        """Build a question about this generation."""
        from epochal.read_models.asking import question  # noqa: PLC0415  only who asks loads it

        return question(self._of, self._declared(), name, values, **bounds)

    def _page(self, question: Question, limit: int, after: str | None, *, backward: bool) -> Page:
        """Read a page of documents by their keys or by values of a secondary key, with where to go on."""
        from epochal.read_models.asking import page  # noqa: PLC0415  as above

        steps = page(
            self.table,
            question,
            limit=limit,
            after=after,
            backward=backward,
            shown=self._read,
            place=partial(self._key, kind="document"),
        )
        return replace(self.driver, at_once=SIDE_BY_SIDE).run(steps)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadModels:
    """The read models of a table, and which generation of each is live.

    Attributes:
        driver: the driver that sends the requests.
        table: name of the table of read models.
    """

    driver: Driver
    table: str
    _heads: dict[str, dict[str, DeclaredKey]] = field(
        init=False, default_factory=dict, compare=False, repr=False
    )

    @overload
    def open(
        self,
        name: str,
        generation: int,
        *,
        of: type[D],
        keys: Mapping[str, Callable[[D], Any] | SecondaryKey] | None = None,
        spread: int = 1,
        holds: Callable[[D], Any] | None = None,
    ) -> ReadModel[D]: ...

    @overload
    def open(
        self,
        name: str,
        generation: int,
        *,
        of: None = None,
        keys: Mapping[str, Callable[[Any], Any] | SecondaryKey] | None = None,
        spread: int = 1,
        holds: Callable[[Any], Any] | None = None,
    ) -> ReadModel[Any]: ...

    def open(
        self,
        name: str,
        generation: int,
        *,
        of: type[Any] | None = None,
        keys: Mapping[str, Callable[[Any], Any] | SecondaryKey] | None = None,
        spread: int = 1,
        holds: Callable[[Any], Any] | None = None,
    ) -> ReadModel[Any]:
        """Return one generation of a read model, for the reaction that builds it, without any request.

        Args:
            name: name of the read model.
            generation: number of the generation, from 1.
            of: class of its documents, as in `json_codec`; otherwise they are plain JSON.
            keys: secondary keys by name, each a function of a document or a `SecondaryKey`. With keys, even with none
                (`{}`), documents are listed by their own. A generation keeps the keys that it was begun with.
            spread: number of partitions over which the list of all documents is spread.
            holds: what the list shows in place of documents, as for a `SecondaryKey`.

        Raises:
            InvalidInput: a name or a key that cannot be one.
            TypeError: a field of the class has no form in JSON.
        """
        _check_name(name)
        must_be_whole(generation, "generation", 1)
        secondary_keys, form = None, None
        if keys is not None:
            from epochal.read_models.keys import keys_of  # noqa: PLC0415  only models with keys load it

            secondary_keys = keys_of(keys, spread, holds)
        elif spread != 1 or holds is not None:
            raise InvalidInput("keys", "must be given with spread or holds; {} lists documents by their own")
        if of is not None:
            from epochal.deciders.value_forms import form_of  # noqa: PLC0415  only documents of classes need it

            form = form_of(of)
        return ReadModel(
            driver=self.driver,
            table=self.table,
            name=name,
            generation=generation,
            keys=secondary_keys,
            form=form,
            _heads=self._heads,
        )

    @overload
    def live(self, name: str, *, of: type[D]) -> ReadModel[D]: ...

    @overload
    def live(self, name: str, *, of: None = None) -> ReadModel[Any]: ...

    def live(self, name: str, *, of: type[Any] | None = None) -> ReadModel[Any]:
        """Open the live generation; the first if none has been made live.

        It is queried by the keys that it was built with.

        Args:
            name: name of the read model.
            of: class of its documents; otherwise they are plain JSON.
        """
        _check_name(name)
        return self.open(name, self._live(name) or 1, of=of)

    def swap(self, name: str, generation: int) -> ReadModel[Any]:
        """Make a generation the live one and return it; raise if a later one is live or this one is empty.

        Wait until its reaction has caught up, or readers go back in time.

        That something of the generation is there takes one read if it has keys. Otherwise the table is scanned up to
        its first item; a program that may not scan is believed.

        Args:
            name: name of the read model.
            generation: number of the generation, 1 or more.

        Raises:
            InvalidInput: a later one is live already, or nothing has been folded into this one.
        """
        model, is_built = self.open(name, generation), False
        while True:
            live = self._live(name)
            if live is not None and live > generation:
                raise backward_swap(generation, live)
            if not is_built and generation != (live or 1):
                self._check_built(name, generation)
            is_built = True
            before: Condition = Absent("n") if live is None else equals("n", number(live))
            put = Put(table=self.table, item={**_alias(name), "n": number(generation)}, condition=before)
            if isinstance(self.driver.ask(put), Done):
                return model

    def drop(self, name: str, generation: int, *, after: str | None = None) -> Dropped:
        """Delete the next part of a generation that is not live; return how many items, and where to go on.

        The generation's reaction must have ended. Each call reads the next thousand items of the table, whatever they
        are, and takes a write unit or more for each that it deletes.

        Args:
            name: name of the read model.
            generation: number of the generation.
            after: `next` of the previous call; the generation is gone once that is None.

        Raises:
            InvalidInput: the generation is live, or `after` is no continuation.
        """
        from epochal.read_models.dropping import drop  # noqa: PLC0415  seldom

        model = self.open(name, generation)
        if generation == (self._live(name) or 1):
            raise InvalidInput("generation", f"{generation} is live")
        label = f"{model.name}@{generation}"
        self._heads.pop(label, None)
        return replace(self.driver, at_once=SIDE_BY_SIDE).run(drop(self.table, label, after))

    def _check_built(self, name: str, generation: int) -> None:
        """Raise `InvalidInput` unless there is anything of a generation, and it is not being dropped."""
        from epochal.read_models.generation_heads import head_key  # noqa: PLC0415  as for `drop`

        label = f"{name}@{generation}"
        head = self.driver.ask(Get(table=self.table, key=head_key(label))).item
        if head is not None:
            if "z" in head:
                raise InvalidInput("generation", f"{label} is being dropped")
            return
        try:
            pages = self.driver.pages(Scan(table=self.table, where=BeginsWith("pk", f"{label}#")))
            is_built = any(page.items for page in pages)
        except Refused:  # functions of reactions may not scan
            return
        if not is_built:
            raise InvalidInput(
                "generation", f"{generation} of {name} holds nothing: let its reaction catch up first"
            )

    def _live(self, name: str) -> int | None:
        """Read which generation is live; None if none has been made so."""
        item = self.driver.ask(Get(table=self.table, key=_alias(name))).item
        return None if item is None else read_number(item, "n")


def models_of(settings: Settings, driver: Driver) -> ReadModels:
    """Return the read models of a deployment."""
    return ReadModels(driver=driver, table=settings.read_models_table)


def generations_in(items: Iterable[Item]) -> dict[str, list[int]]:
    """Return the sorted generations of each read model that items of a table belong to."""
    numbers: dict[str, set[int]] = {}
    for item in items:
        name, _, rest = item["pk"]["S"].partition("@")
        generations = numbers.setdefault(name, set())
        if rest:
            generations.add(int(re.split("[#/]", rest)[0]))
    return {name: sorted(generations) for name, generations in sorted(numbers.items())}


def _progress_in(item: Item | None) -> Item:
    """Return the progress of the stream of a document's name, if the document's item has it."""
    return {name: item[name] for name in ("n", "k") if item is not None and name in item}


def _first_version(stream: str, following: object) -> int:
    """Return the first version of a document, which depends on the events or removal that created it.

    If it were the same for all, a document that was deleted and created again meanwhile would pass for the one that was
    read.
    """
    digest = hashlib.sha256(f"{stream}@{following}".encode()).digest()
    return 1 + int.from_bytes(digest[:6], "big")


def _check_name(name: str) -> None:
    """Check the name of a read model."""
    must_be_text(name, MAX_NAME_BYTES, "name")
    if "@" in name or "#" in name:
        raise InvalidInput("name", "must be a name without @ and #")


def _alias(name: str) -> Key:
    """Return the key of the item that says which generation is live."""
    return {"pk": text(name), "sk": text("live")}
