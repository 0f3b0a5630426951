"""Commands on read models: which there are, and their documents by key and by what they are asked."""

from __future__ import annotations

from typing import Any, Final

import click

from epochal.cli import output
from epochal.cli.inputs import must_be_named, there
from epochal.cli.target import OpenedStore, given
from epochal.codec import json
from epochal.plan.ops import Scan
from epochal.read_models.asking import FoundDocument, value_from
from epochal.read_models.documents import ReadModel, ReadModels, generations_in

LOOKED_AT: Final = 1_000


def _models(store: OpenedStore) -> ReadModels:
    table = store.deployment.settings.read_models_table
    must_be_named("is needed for read models", read_models_table=table)
    return ReadModels(driver=store.deployment.driver, table=table)


on_models = given(_models)

of_generation = click.option(
    "--generation",
    type=click.IntRange(min=1),
    help="Generation of the read model. The default is the live one.",
)
beginning = click.option(
    "--prefix", default="", help="Prefix of the next value, or of the key of the document."
)
since = click.option("--since", help="Lower bound of the next value or key, included.")
below = click.option("--below", help="Upper bound of the next value or key, excluded.")


def _opened(models: ReadModels, name: str, generation: int | None) -> ReadModel[Any]:
    return models.live(name) if generation is None else models.open(name, generation)


def _question(options: dict[str, Any]) -> dict[str, Any]:
    bounds = {bound: options[bound] for bound in ("since", "below")}
    return {
        "prefix": options["prefix"],
        **{name: bound and value_from(bound) for name, bound in bounds.items()},
    }


@click.group()
def models() -> None:
    """Read, count and delete documents of read models.

    A VALUE is a number or a text. A value that is neither a JSON number nor a JSON string, such as Ada, is taken
    as text. A number in quotes is text: '"7"'.
    """


@models.command("list")
@click.option(
    "--items",
    type=click.IntRange(min=1),
    default=LOOKED_AT,
    show_default=True,
    help="Number of items of the table to look at.",
)
@on_models
def list_(models: ReadModels, *, items: int) -> None:
    """List read models among the first items, and their generations.

    Only read models among the first items of the table are found; see --items.
    """
    listing: dict[str, list[int]] = generations_in(
        models.driver.ask(Scan(table=models.table, limit=items)).items
    )
    shown = ((name, models.live(name).generation, generations) for name, generations in listing.items())
    output.stream(
        shown,
        lambda model: {"name": model[0], "live": model[1], "generations": model[2]},
        lambda model: f"{model[0]}  live: {model[1]}  generations: {', '.join(map(str, model[2]))}",
    )


@models.command()
@click.argument("name")
@click.argument("key")
@of_generation
@on_models
def get(models: ReadModels, *, name: str, key: str, generation: int | None) -> None:
    """Print the document KEY of the read model NAME."""
    value = there(_opened(models, name, generation).get(key), f"{name} has no document {key}")
    output.document(value, [json.dumps(value).decode()])


@models.command()
@click.argument("name")
@click.argument("by", required=False)
@click.argument("values", nargs=-1, metavar="[VALUE]...")
@beginning
@since
@below
@click.option(
    "--limit",
    type=click.IntRange(1, 1_000),
    default=20,
    show_default=True,
    help="Print at most this many documents.",
)
@click.option("--after", help="Place where the previous page ended, as `find` printed it.")
@click.option("--backward", is_flag=True, help="Print the last document first.")
@of_generation
@on_models
def find(models: ReadModels, *, name: str, by: str | None, values: tuple[str, ...], **options: Any) -> None:
    """Print documents of the read model NAME, in the order of a key.

    The order is that of the keys of documents, or of the secondary key BY, whose first values are VALUES:
    numbers, or texts such as Ada or '"7"'.

    If there are more documents, standard error has the --after of the next page.
    """
    model = _opened(models, name, options["generation"])
    question = {
        **_question(options),
        **{option: options[option] for option in ("limit", "after", "backward")},
    }
    page = model.list(**question) if by is None else model.find(by, *map(value_from, values), **question)
    output.stream(page.items, _view, lambda name_: f"{name_.key}  {json.dumps(name_.value).decode()}")
    if page.next is not None:
        click.echo(f"--after {page.next}", err=True)


@models.command()
@click.argument("name")
@click.argument("by", required=False)
@click.argument("values", nargs=-1, metavar="[VALUE]...")
@beginning
@since
@below
@of_generation
@on_models
def count(models: ReadModels, *, name: str, by: str | None, values: tuple[str, ...], **options: Any) -> None:
    """Count the documents that `find` would print without --limit.

    A VALUE is a number, or a text such as Ada or '"7"'. The command reads one index entry a document: some
    thirty a read unit.
    """
    model = _opened(models, name, options["generation"])
    counted = model.count(by, *map(value_from, values), **_question(options))
    output.document({"count": counted}, [f"{counted:,}"])


@models.command()
@click.argument("name")
@click.argument("generation", type=click.IntRange(min=1))
@on_models
def drop(models: ReadModels, *, name: str, generation: int) -> None:
    """Delete a GENERATION of the read model NAME.

    The generation must not be live, and its reaction must have ended. The whole table is read. The command can
    be interrupted and run again.
    """
    deleted, after = 0, None
    with output.progress("deleting") as tell:
        while True:
            dropped = models.drop(name, generation, after=after)
            deleted, after = deleted + dropped.items, dropped.next
            tell(f"{deleted:,} items")
            if after is None:
                break
    output.document({"deleted": deleted}, [f"{name}, generation {generation}: {deleted:,} items deleted"])


def _view(document: FoundDocument) -> dict[str, Any]:
    return {"key": document.key, "document": document.value}
