"""Databases of other stores: one query, row by row, with a cursor of the server's, so that no table is in memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from epochal.errors import InvalidInput, brought_by


def parted(place: str, default: str = "") -> tuple[str, str]:
    """The URL of a database, and what follows its `#`: the part of it that is meant."""
    url, _, part = place.partition("#")
    if not (part := part or default).replace("_", "").isalnum():
        raise InvalidInput("PLACE", "must name a part of the database, of letters, digits and _: URL#part")
    return url, part


def selected(url: str, query: str) -> Iterator[Mapping[str, Any]]:
    """The rows of a query, by the names of their columns, all as of one moment.

    Raises:
        InvalidInput: the database cannot be reached, or has no such tables.
    """
    with brought_by("sql", "sources in SQL databases", "sqlalchemy"):
        from sqlalchemy import create_engine, text  # noqa: PLC0415  an extra
        from sqlalchemy.exc import SQLAlchemyError  # noqa: PLC0415  likewise
        from sqlalchemy.pool import NullPool  # noqa: PLC0415  likewise
    # psycopg, version 3, is what brings PostgreSQL's rows without holding them all.
    if url.startswith(("postgres://", "postgresql://")):
        url = f"postgresql+psycopg://{url.partition('://')[2]}"
    try:
        engine = create_engine(url, poolclass=NullPool)  # a connection that is done with is closed
        with engine.connect() as connection:
            found = connection.execution_options(yield_per=1_000).execute(text(query))
            for row in found.mappings():
                yield dict(row)
    except SQLAlchemyError as error:
        words = str(getattr(error, "orig", None) or error).splitlines()
        raise InvalidInput("PLACE", f"cannot be read: {words[0] if words else error}") from error
