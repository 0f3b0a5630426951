"""The check of `epochal prove` that a database swaps generations of a read model, views included."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from epochal.contrib.proving.proof import Broken, ProofRun, Trial, Unproven, trial

if TYPE_CHECKING:
    from sqlalchemy import MetaData

GENERATIONS = 3


def trials(_: ProofRun) -> Iterator[Trial]:
    """Yield the checks of this package."""
    yield sql_swap


@trial("a read model in a SQL database is swapped to its next generation, and its view with it")
def sql_swap(proof: ProofRun) -> str:
    """Make three generations of a read model, swap to each, read it through its view; return a report.

    Raises:
        Broken: another generation is live, or the view reads another one's table.
        Unproven: no database is named.
    """
    if not proof.sql:
        raise Unproven("no database is given: name one with --sql, such as an Aurora DSQL cluster")
    from sqlalchemy import Column, Integer, MetaData, Table, create_engine, insert, text  # noqa: PLC0415  an extra

    from epochal.contrib.sql.read_models import SqlReadModels  # noqa: PLC0415  it needs the extra, too

    name = f"epochal_proof_{proof.marker}"

    def tables(generation: int) -> MetaData:
        """Describe the only table of a generation."""
        metadata = MetaData()
        Table(f"{name}_{generation}", metadata, Column("n", Integer, primary_key=True, autoincrement=False))
        return metadata

    engine = create_engine(proof.sql)
    models = SqlReadModels(engine=engine, tables={name: tables}, clock=proof.clock, sleep=proof.sleep)

    def remove() -> str:
        """Drop the view and the tables, and return in words what stays."""
        statements = [f"DROP VIEW IF EXISTS {name}"]
        statements += [
            f"DROP TABLE IF EXISTS {name}_{generation}" for generation in range(1, GENERATIONS + 1)
        ]
        for statement in statements:  # Aurora DSQL takes one such statement a transaction
            with engine.begin() as connection:
                connection.execute(text(statement))
        return f"the row of {name} in epochal_live of the database"

    proof.removals.append(remove)
    for generation in range(1, GENERATIONS + 1):
        model = models.open(name, generation)
        model.create()
        with engine.begin() as connection:
            connection.execute(insert(model.tables[name]).values(n=generation))
        models.swap(name, generation)
        if (live := models.live(name).generation) != generation:
            raise Broken(f"after a swap to generation {generation}, generation {live} is live")
        with engine.connect() as connection:
            rows = [row.n for row in connection.execute(text(f"SELECT n FROM {name}"))]  # noqa: S608  our own name
        if rows != [generation]:
            raise Broken(f"the view returns {rows} after a swap to generation {generation}")
    return f"{GENERATIONS} generations on {engine.dialect.name}"
