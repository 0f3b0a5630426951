"""Named streams as pages, as the feed sees them: every page is a head."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Final

from epochal.layout.pages import heads
from epochal.layout.pages.items import DICTIONARIES, STREAMS, is_dictionary, is_page
from epochal.layout.pages.reading import advance, begin
from epochal.layout.port import CategoriesBy, Heal, Permission, Port, Source, heal_streams
from epochal.model.dcb import group_of
from epochal.model.names import EVENT_IDS, SEALS, TAG_STREAMS, category_of
from epochal.plan.ops import Steps
from epochal.plan.values import Item
from epochal.settings import Options, Settings, variable

if TYPE_CHECKING:
    from epochal.model.storage import StoredItem
    from epochal.model.times import Ticks
    from epochal.model.training import Trained


def pages_source(table: str, partitions: int = 1) -> Source:
    """Streams by name."""
    return Source(
        name="pages",
        table=table,
        partitions=partitions,
        setting=variable("pages_partitions"),
        appended=heads.appended,
        heal=heal_pages(table),
        end=heads.end,
        told=heads.told,
        where=heads.WHERE,
        moved=None,  # whether `w` is there at all is no question for a filter
        stored=heads.stored,
        learn=heads.learn,
        train=partial(_train, table),
        due=partial(_due, table),
    )


def _train(table: str, category: str, images: Iterable[Item]) -> Steps[Trained]:
    from epochal.layout.pages.retraining import retrain  # noqa: PLC0415  the feed does without

    return retrain(table, category, images)


def _due(table: str, category: str, now: Ticks) -> Steps[bool]:
    from epochal.layout.pages.dictionaries import training_due  # noqa: PLC0415  likewise

    return training_due(table, category, now)


def heal_pages(table: str) -> Heal:
    """Heals gaps of streams from their pages."""
    return heal_streams("pages", partial(begin, table), partial(advance, table))


def _stored_items(table: str, stream: str, first: int, end: int) -> Steps[tuple[StoredItem, ...]]:
    from epochal.layout.pages.storage import stored_items  # noqa: PLC0415  for people alone

    return stored_items(table, stream, first, end)


def _source(settings: Settings) -> Source:
    return pages_source(settings.table(STREAMS.kind), settings.partitions("pages_partitions"))


def _kind_of(item: Item) -> str | None:
    return STREAMS.kind if is_page(item) or is_dictionary(item) or _is_aside(item) else None


def _is_aside(item: Item) -> bool:
    """Whether it is the record of an id, or the key that tokens are sealed with."""
    return item.keys() >= set(STREAMS.keys) and item["p"].get("S", "").startswith((EVENT_IDS, SEALS))


def _access(_: Options) -> Mapping[str, tuple[Permission, ...]]:
    """A stream is read by its key; a page is put and updated, and got where a transaction has to be told.

    Bodies of tagged events may be on another page than that of their tag, and ids have records; which tags there are a
    scan tells.
    """
    reading = ("Query", "GetItem", "BatchGetItem")
    actions = {
        "append": (*reading, "PutItem", "UpdateItem", "ConditionCheckItem"),
        "replay": (*reading, "Scan"),
        "feed": reading,
        "indexer": ("Query",),
        "auditor": ("GetItem", "Query", "Scan"),
        "reaction": reading,
    }
    found = {function: (Permission(table=STREAMS, actions=each),) for function, each in actions.items()}
    trained = Permission(table=STREAMS, actions=("PutItem",), keys=(f"{DICTIONARIES}*",))
    return {**found, "auditor": (*found["auditor"], trained)}


def _category_of(stream: str) -> str:
    """Of a tag, its group, so that it is no stream's."""
    tag = stream.removeprefix(TAG_STREAMS)
    return category_of(stream) if tag == stream else f"{TAG_STREAMS}{group_of(tag)}"


PORT: Final = Port(
    tables=(STREAMS,),
    kind_of=_kind_of,
    access=_access,
    heads=STREAMS,
    source=_source,
    categories=lambda _: CategoriesBy(_category_of),
    stored_items=_stored_items,
)
