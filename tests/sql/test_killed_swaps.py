"""A swap that is killed between any two of its statements or commits: repeated, it completes, and nothing is lost."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any, Final

import pytest
from sqlalchemy import Column, Engine, Integer, MetaData, Table, Text, event, inspect, select, text

from epochal.contrib.sql.read_models import SqlReadModel, SqlReadModels
from epochal.errors import InvalidInput
from tests.sql.dsql import dsql_engine
from tests.sql.test_read_models import counting, delivery, found, models, opened, viewed


class Killed(BaseException):
    """The end of a process."""


@contextmanager
def killed(engine: Engine, at: int) -> Iterator[None]:
    """Kill the process before a statement or a commit, or after a commit, counted from 0: its connection is closed."""
    steps = count()

    def step(driver: Any) -> None:
        if next(steps) == at:
            driver.close()
            raise Killed

    def statement(_: Any, cursor: Any, *__: Any) -> None:
        step(cursor.connection)

    commit = engine.dialect.do_commit

    def committing(connection: Any) -> None:
        step(connection.dbapi_connection)
        commit(connection)
        step(connection.dbapi_connection)

    event.listen(engine, "before_cursor_execute", statement)
    engine.dialect.do_commit = committing  # type: ignore[method-assign]
    try:
        yield
    finally:
        event.remove(engine, "before_cursor_execute", statement)
        engine.dialect.do_commit = commit  # type: ignore[method-assign]
        engine.dispose()


def two_generations(engine: Engine, later: int) -> tuple[SqlReadModel, SqlReadModel]:
    """The live one, which has counted one event, and another, which has counted two."""
    first, second = opened(engine, 1), opened(engine, later)
    first.apply(delivery("A-1", 0, "x"), counting(first))
    second.apply(delivery("A-1", 0, "x", "x"), counting(second))
    models(engine).swap("counts", 1)
    return first, second


def swap_killed(engine: Engine, generation: int, at: int) -> bool:
    """Whether the swap was killed there: it may have ended before."""
    try:
        with killed(engine, at):
            models(engine).swap("counts", generation)
    except Killed:
        return True
    return False


@pytest.mark.parametrize("generation", [2, 3], ids=["of the same tables", "of other tables"])
def test_a_swap_that_is_killed_anywhere_is_completed_by_a_repeat(engine: Engine, generation: int) -> None:
    first, second = two_generations(engine, generation)
    views = set(inspect(engine).get_view_names())
    of_later = set(second.tables)
    for at in count():
        died = swap_killed(engine, generation, at)

        live = models(engine).live("counts").generation
        shown = viewed(engine)
        assert live in (1, generation)
        assert shown in ([("x", 1)], [("x", 2)]), "a reader sees one of the generations, whole"
        if engine.dialect.name != "auroradsql":
            assert shown == [("x", 1 if live == 1 else 2)], "views and the live generation change together"
        elif live == generation:
            assert shown == [("x", 2)], "the views change before the generation is live"

        models(engine).swap("counts", generation)

        assert models(engine).live("counts").generation == generation
        assert viewed(engine) == [("x", 2)]
        assert set(inspect(engine).get_view_names()) == of_later
        assert (found(first), found(second)) == ({"x": 1}, {"x": 2})
        assert (first.place("A-1"), second.place("A-1")) == (1, 2)
        if not died:
            break
        begin_again(engine)
        assert set(inspect(engine).get_view_names()) == views
    assert at > 3, "it has been killed between its statements"
    models(engine).drop("counts", 1)
    assert viewed(engine) == [("x", 2)]


def begin_again(engine: Engine) -> None:
    """The first generation is the live one, as if nothing had been swapped."""
    with engine.begin() as connection:
        connection.execute(text("UPDATE epochal_live SET generation = 1"))
    for name in inspect(engine).get_view_names():
        with engine.begin() as connection:
            connection.execute(text(f"DROP VIEW {name}"))
    models(engine).swap("counts", 1)


def test_another_generation_may_be_swapped_in_where_a_swap_was_killed(engine: Engine) -> None:
    for at in range(12):
        first, second = two_generations(engine, 2)
        third = opened(engine, 3)
        third.apply(delivery("A-1", 0, "x", "x", "x"), counting(third))
        swap_killed(engine, 2, at)

        models(engine).swap("counts", 3)

        assert viewed(engine) == [("x", 3)]
        assert set(inspect(engine).get_view_names()) == {"counts", "new"}
        with pytest.raises(InvalidInput, match="3 is live already"):
            models(engine).swap("counts", 2)
        for generation in (1, 2):
            models(engine).drop("counts", generation)
        with engine.connect() as connection:
            assert connection.execute(select(third.tables["counts"].c.n)).all() == [(3,)]
        clear(engine, first, second, third)


def clear(engine: Engine, *generations: SqlReadModel) -> None:
    """An empty database."""
    for name in inspect(engine).get_view_names():
        with engine.begin() as connection:
            connection.execute(text(f"DROP VIEW {name}"))
    for name in inspect(engine).get_table_names():
        with engine.begin() as connection:
            connection.execute(text(f"DROP TABLE {name}"))


def test_on_aurora_dsql_a_view_is_there_between_any_two_statements_of_a_swap_to_the_same_columns(
    aurora_engine: Engine,
) -> None:
    two_generations(aurora_engine, 2)
    seen = shown_during(aurora_engine, lambda: models(aurora_engine).swap("counts", 2))
    assert [("x", 1)] in seen
    assert all(each in ([("x", 1)], [("x", 2)]) for each in seen)
    assert viewed(aurora_engine) == [("x", 2)]


def test_on_aurora_dsql_a_swap_does_not_make_live_what_a_faster_swap_has_passed(
    aurora_engine: Engine,
) -> None:
    two_generations(aurora_engine, 2)
    third = opened(aurora_engine, 3)
    third.apply(delivery("A-1", 0, "x", "x", "x"), counting(third))
    other = dsql_engine(aurora_engine.url.render_as_string(hide_password=False))

    views_begun = count()

    def swap_faster(_: Any, __: Any, statement: str, *___: Any) -> None:
        if "VIEW" in statement and next(views_begun) == 0:
            models(other).swap("counts", 3)

    event.listen(aurora_engine, "before_cursor_execute", swap_faster)
    with pytest.raises(InvalidInput, match="3 is live already"):
        models(aurora_engine).swap("counts", 2)
    event.remove(aurora_engine, "before_cursor_execute", swap_faster)
    other.dispose()

    assert models(aurora_engine).live("counts").generation == 3
    models(aurora_engine).swap("counts", 3)
    assert viewed(aurora_engine) == [("x", 3)], "a repeat of the later swap mends the views"


def shown_during(engine: Engine, swap: Callable[[], object]) -> list[list[tuple[str, int]] | None]:
    """What another connection reads from the view before each statement; None where there is no view."""
    seen: list[list[tuple[str, int]] | None] = []
    other = dsql_engine(engine.url.render_as_string(hide_password=False))

    def look(*_: Any) -> None:
        if "counts" not in inspect(other).get_view_names():
            seen.append(None)
            return
        with other.connect() as connection:
            seen.append([(kind, n) for kind, n in connection.execute(text("SELECT * FROM counts"))])

    event.listen(engine, "before_cursor_execute", look)
    swap()
    event.remove(engine, "before_cursor_execute", look)
    other.dispose()
    return seen


@pytest.mark.parametrize("changed", ["type", "name"])
def test_a_view_of_other_columns_is_made_anew(engine: Engine, changed: str) -> None:
    def described(generation: int) -> MetaData:
        metadata = MetaData()
        column = Column("n", Integer) if generation == 1 else OTHERS[changed]()
        Table(f"counts_{generation}", metadata, Column("type", Text, primary_key=True), column)
        return metadata

    all_ = SqlReadModels(engine=engine, tables={"counts": described}, sleep=lambda _: None)
    for generation in (1, 2):
        all_.open("counts", generation).create()
    all_.swap("counts", 1)
    if engine.dialect.name == "auroradsql":
        seen = shown_during(engine, lambda: all_.swap("counts", 2))
        assert seen.count(None) == 1, "it is missing between two statements"
    else:
        all_.swap("counts", 2)

    with engine.connect() as connection:
        assert list(connection.execute(text("SELECT * FROM counts")).keys())[1] == OTHERS[changed]().name
    all_.drop("counts", 1)


OTHERS: Final[dict[str, Callable[[], Column[Any]]]] = {
    "type": lambda: Column("n", Text),
    "name": lambda: Column("m", Integer),
}
