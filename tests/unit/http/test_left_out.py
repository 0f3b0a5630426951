"""A layout that the stage leaves out: its operations say so, the others work, and so does the store's health."""

from __future__ import annotations

from dataclasses import replace

import pytest

from epochal.http.operation import Operation
from epochal.http.operations import OPERATIONS
from epochal.plugins import layouts
from epochal.settings import Settings
from tests.support.api import Api

OF_LAYOUTS = [each for each in OPERATIONS if each.table]


class Sparse(Api):
    """A deployment without any layout: its settings name the other tables alone."""

    @property
    def settings(self) -> Settings:
        return replace(super().settings, tables={})


@pytest.fixture(scope="module")
def sparse() -> Sparse:
    return Sparse()


def test_every_layout_that_the_api_serves_has_operations_that_need_it() -> None:
    heads = {each.port.heads.kind for each in layouts()}
    assert {each.table for each in OF_LAYOUTS} == heads
    without = {each.path.split("/")[1] for each in OPERATIONS if not each.table}
    assert without == {"bodies", "projections", "health", "feed"}


@pytest.mark.parametrize("operation", OF_LAYOUTS, ids=lambda each: each.key)
def test_its_operations_are_no_operations_here_and_the_answer_says_why(
    sparse: Sparse, operation: Operation
) -> None:
    path = operation.path.replace("{stream}", "Cart-1").replace("{type}", "order").replace("{id}", "x")
    answer = sparse.call(operation.method, path.replace("{tag}", "a:b"), {})
    assert (answer.status, answer.problem) == (404, "route-not-found")
    assert "its stage leaves that layout out" in answer.json["detail"]


def test_the_others_work_and_the_store_is_healthy(sparse: Sparse) -> None:
    assert sparse.call("GET", "/health").json == {"status": "ok"}
    assert sparse.call("GET", "/projections/sums").status == 200
