"""A layout that the stage leaves out: its operations say so, the others work, and so does the store's health."""

from __future__ import annotations

from dataclasses import replace

import pytest

from epochal.http.operation import Operation
from epochal.http.routes import operations
from epochal.plugins import Layout, layouts
from epochal.settings import Settings
from tests.support.api import Api

OF_LAYOUTS = [each for each in operations() if each.table]


class Sparse(Api):
    """A deployment without any layout: its settings name the other tables alone."""

    @property
    def settings(self) -> Settings:
        return replace(super().settings, tables={})


@pytest.fixture(scope="module")
def sparse() -> Sparse:
    return Sparse()


def test_every_layout_that_the_api_serves_has_operations_that_need_it() -> None:
    tables = {each.name: {spec.kind for spec in each.port.tables} for each in layouts()}
    asked = {each.table for each in OF_LAYOUTS}
    assert all(kinds & asked for kinds in tables.values())
    assert asked <= set().union(*tables.values())
    # The feed has streams of every layout, and lists them.
    without = {each.path for each in operations() if not each.table}
    of_none = {path for path in without if path.split("/")[1] in ("bodies", "health", "feed", "groups")}
    assert without - of_none == {"/streams"}


@pytest.mark.parametrize("operation", OF_LAYOUTS, ids=lambda each: each.key)
def test_its_operations_are_no_operations_here_and_the_answer_says_why(
    sparse: Sparse, operation: Operation
) -> None:
    path = operation.path.replace("{stream}", "Cart-1").replace("{type}", "order").replace("{id}", "x")
    for parameter in ("tag", "name", "version"):
        path = path.replace(f"{{{parameter}}}", "a:b")
    answer = sparse.call(operation.method, path, {})
    assert (answer.status, answer.problem) == (404, "route-not-found")
    assert "its stage does not include that layout" in answer.json["detail"]


def test_the_others_work_and_where_there_is_no_layout_the_store_is_not_set_up(sparse: Sparse) -> None:
    assert sparse.call("GET", "/feed").status == 200
    assert sparse.call("GET", "/health").problem == "not-deployed"


@pytest.mark.parametrize("layout", layouts(), ids=lambda each: each.name)
def test_a_store_of_one_layout_is_healthy_by_one_read_of_a_table_of_it(layout: Layout) -> None:
    class Alone(Api):
        @property
        def settings(self) -> Settings:
            kinds = {spec.kind: spec.kind for spec in layout.port.tables}
            return replace(super().settings, tables=kinds)

    alone = Alone()
    answer = alone.call("GET", "/health")
    assert answer.json == {"status": "ok"}
