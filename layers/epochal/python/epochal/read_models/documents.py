"""Read models that are exactly as far as they say: documents, and how far each stream has been folded into them,
written in one transaction.

    delays = models.open("delays", 1)

    @reaction(name="delays-1", categories=["Aircraft"], removed=lambda delivery: delays.remove(delivery, forget))
    def update(delivery: Delivery) -> None:
        delays.apply(delivery, fold)

So an event that is delivered twice is folded once, and so is a removal of events, on which `forget` may delete
documents. `wait_for` tells a caller when the events it appended are in the documents. A model is rebuilt as its next
generation, by a reaction of another name that begins at the beginning, beside the one that is live; `swap` makes it
the live one. The items are described in FORMATS §6.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from epochal.codec import json
from epochal.errors import Contended, InvalidInput
from epochal.feed.history import FeedEvent
from epochal.layout.removals import Removal
from epochal.model.kinds import must_be_done, must_be_plain, must_be_text
from epochal.plan.ops import TRANSACTION_ITEMS, Absent, Condition, Delete, Done, Get, Put, Transact, equals
from epochal.plan.values import Item, Key, number, read_number, text
from epochal.reactions.reaction import Delivery
from epochal.settings import Settings
from epochal.store.driver import Driver

MAX_NAME_BYTES: Final = 512

MAX_KEY_BYTES: Final = 2_048
"""Bytes of a document's key with the model's name and generation before it: DynamoDB's limit."""

ATTEMPTS: Final = 20
"""Attempts to commit one delivery while other writers are faster."""

POLL_SECONDS: Final = 0.05
"""Between looks while waiting: half a read unit each."""

FULL: Final = TRANSACTION_ITEMS - 10
"""Documents after which a delivery is committed in part: one event more rarely touches ten."""


@dataclass(slots=True)
class _Loaded:
    """A document as it was read, and as it is to be."""

    version: int
    value: Any
    changed: bool = False


@dataclass(slots=True)
class Documents:
    """The documents that a fold reads and writes, by key. Values are JSON; numbers stay exact."""

    load: Callable[[str], _Loaded]
    _held: dict[str, _Loaded] = field(default_factory=dict)

    def get(self, key: str, default: Any = None) -> Any:
        """A document; `default` where there is none. To change it, put it back."""
        value = self._document(key).value
        return default if value is None else value

    def put(self, key: str, value: Any) -> None:
        """Write a document."""
        if value is None:
            raise InvalidInput("value", "must not be null: delete the document instead")
        document = self._document(key)
        document.value, document.changed = value, True

    def delete(self, key: str) -> None:
        """Delete a document, if there is one."""
        document = self._document(key)
        document.value, document.changed = None, True

    @property
    def changes(self) -> dict[str, _Loaded]:
        """What has been written or deleted."""
        return {key: document for key, document in self._held.items() if document.changed}

    def _document(self, key: str) -> _Loaded:
        if key not in self._held:
            self._held[key] = self.load(key)
        return self._held[key]


Fold = Callable[[Documents, FeedEvent], object]
"""Takes one event into the documents. It may be called again for the same event, on documents without it."""

FoldRemoval = Callable[[Documents, Removal], object]
"""Takes into the documents that events of a stream are gone; likewise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadModel:
    """One generation of a read model.

    Attributes:
        table: a table with the keys `pk` and `sk`, both strings (`layout.port.READ_MODELS`).
    """

    driver: Driver
    table: str
    name: str
    generation: int

    def apply(self, delivery: Delivery, fold: Fold) -> int:
        """Fold a delivery's events, those that have been folded before left out; how many were.

        Raises:
            Contended: others changed the same documents at every attempt.
            InvalidInput: `fold` is no plain function: what it would do, nothing awaits.
            TooLarge: a document, or what one event changes.
        """
        must_be_plain(fold, "fold")
        folded, attempts = 0, 0
        while True:
            place = self.place(delivery.stream)
            events = [event for event in delivery.events if place is None or event.index >= place]
            if not events:
                return folded
            documents = Documents(self._load)
            taken = _folded(events, documents, fold)
            if self._commit(delivery.stream, place, taken[-1].index + 1, documents):
                folded += len(taken)
                continue
            attempts += 1
            if attempts == ATTEMPTS:
                raise Contended(delivery.stream, attempts)

    def remove(self, delivery: Delivery, fold: FoldRemoval) -> bool:
        """Fold a delivery's removal; False where it has been folded before, or a later one of the stream has.

        Raises:
            Contended, InvalidInput, TooLarge: as `apply` does; also where the delivery has events.
        """
        must_be_plain(fold, "fold")
        removal = delivery.removal
        if removal is None:
            raise InvalidInput("delivery", "must be one of a removal: events are for `apply`")
        key = self._key(delivery.stream, "removed")
        for _ in range(ATTEMPTS):
            found = self._get(key)
            mark = 0 if found is None else read_number(found, "n") or 0
            if removal.mark <= mark:
                return False
            documents = Documents(self._load)
            must_be_done(fold(documents, removal), "fold")
            moved = Put(
                table=self.table,
                item={**key, "n": number(removal.mark)},
                condition=equals("n", number(mark)) if mark else Absent("n"),
            )
            if self._write_all(moved, documents, _first_version(delivery.stream, f"-{removal.mark}")):
                return True
        raise Contended(delivery.stream, ATTEMPTS)

    def get(self, key: str, default: Any = None) -> Any:
        """A document, strongly consistent; `default` where there is none."""
        value = self._load(key).value
        return default if value is None else value

    def place(self, stream: str) -> int | None:
        """The next index of a stream to be folded; None where none has been."""
        found = self._get(self._key(stream, "place"))
        return None if found is None else read_number(found, "n")

    def wait_for(self, stream: str, version: int, *, seconds: float = 10.0) -> bool:
        """Wait until every event of a stream below `version` is in the documents; whether they are.

        With the version of an append, what is read afterwards shows it. It needs a reaction to all types of the
        stream's events: an event that is never delivered is waited for in vain.
        """
        ends = self.driver.clock() + seconds
        while (self.place(stream) or 0) < version:
            if self.driver.clock() >= ends:
                return False
            self.driver.sleep(POLL_SECONDS)
        return True

    def _load(self, key: str) -> _Loaded:
        found = self._get(self._key(key, "document"))
        if found is None:
            return _Loaded(0, None)
        return _Loaded(read_number(found, "v") or 0, json.loads(found["d"]["S"]))

    def _commit(self, stream: str, place: int | None, following: int, documents: Documents) -> bool:
        """Write the documents, and how far they bring the stream, if no other writer was faster."""
        moved = Put(
            table=self.table,
            item={**self._key(stream, "place"), "n": number(following)},
            condition=Absent("n") if place is None else equals("n", number(place)),
        )
        return self._write_all(moved, documents, _first_version(stream, following))

    def _write_all(self, moved: Put, documents: Documents, first: int) -> bool:
        writes = [self._write(key, document, first) for key, document in documents.changes.items()]
        reply = self.driver.ask(Transact(writes=(moved, *writes)))
        # A refusal may be the echo of our own write: the place, read again, tells.
        return isinstance(reply, Done)

    def _write(self, key: str, document: _Loaded, first: int) -> Put | Delete:
        place = self._key(key, "document")
        before: Condition = equals("v", number(document.version)) if document.version else Absent("v")
        if document.value is None:
            return Delete(table=self.table, key=place, condition=before)
        try:
            body = json.dumps(document.value).decode()
        except (ValueError, TypeError) as error:
            raise InvalidInput("value", f"of the document {key} must be JSON: {error}") from error
        item = {**place, "v": number(document.version + 1 if document.version else first), "d": text(body)}
        return Put(table=self.table, item=item, condition=before)

    def _key(self, name: str, kind: str) -> Key:
        key = f"{self.name}@{self.generation}#{name}"
        must_be_text(key, MAX_KEY_BYTES, "key" if kind == "document" else "stream")
        return {"pk": text(key), "sk": text(kind)}

    def _get(self, key: Key) -> Item | None:
        return self.driver.ask(Get(table=self.table, key=key)).item


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadModels:
    """The read models of a table, and which generation of each is live."""

    driver: Driver
    table: str

    def open(self, name: str, generation: int) -> ReadModel:
        """One generation, for the reaction that makes it."""
        _check_name(name)
        if generation < 1:
            raise InvalidInput("generation", "must be at least 1")
        return ReadModel(driver=self.driver, table=self.table, name=name, generation=generation)

    def live(self, name: str) -> ReadModel:
        """The generation that is live; the first, as long as none has been made so."""
        _check_name(name)
        return self.open(name, self._live(name) or 1)

    def swap(self, name: str, generation: int) -> ReadModel:
        """Make a generation the live one. Wait until its reaction has caught up, or readers go back in time.

        Raises:
            InvalidInput: a later one is live already.
        """
        model = self.open(name, generation)
        while True:
            live = self._live(name)
            if live is not None and live > generation:
                raise InvalidInput("generation", f"{live} is live already")
            before: Condition = Absent("n") if live is None else equals("n", number(live))
            put = Put(table=self.table, item={**_alias(name), "n": number(generation)}, condition=before)
            if isinstance(self.driver.ask(put), Done):
                return model

    def _live(self, name: str) -> int | None:
        found = self.driver.ask(Get(table=self.table, key=_alias(name))).item
        return None if found is None else read_number(found, "n")


def models_of(settings: Settings, driver: Driver) -> ReadModels:
    """The read models of a deployment."""
    return ReadModels(driver=driver, table=settings.read_models_table)


def names_in(items: Iterable[Item]) -> set[str]:
    """The names of read models that items of their table are of."""
    return {each["pk"]["S"].partition("#")[0].partition("@")[0] for each in items}


def _folded(events: Sequence[FeedEvent], documents: Documents, fold: Fold) -> Sequence[FeedEvent]:
    """Fold events until they are folded, or a transaction is full; those that were."""
    for taken, event in enumerate(events, 1):
        must_be_done(fold(documents, event), "fold")
        if len(documents.changes) >= FULL:
            return events[:taken]
    return events


def _first_version(stream: str, following: object) -> int:
    """The version of a document that the events of a stream below `following` have made, or a removal. Were it the same
    for all, one that was deleted and made anew meanwhile would pass for the one that was read.
    """
    digest = hashlib.sha256(f"{stream}@{following}".encode()).digest()
    return 1 + int.from_bytes(digest[:6], "big")


def _check_name(name: str) -> None:
    must_be_text(name, MAX_NAME_BYTES, "name")
    if "@" in name or "#" in name:
        raise InvalidInput("name", "must be a name without @ and #")


def _alias(name: str) -> Key:
    return {"pk": text(name), "sk": text("live")}
