"""The dashboard: what alarms look at is on it, and what passes through."""

from __future__ import annotations

import json
from typing import Any

import pytest

from epochal.contrib.console.overview import PLOTTED
from epochal.layout.tables import store_tables
from tests.surfaces.stacks.templates import Deployment, Synthesise

REACTIONS = {"board": {"entry": "board"}, "delays": {"entry": "board"}}
DASHBOARD = "AWS::CloudWatch::Dashboard"


def graphs(deployment: Deployment) -> dict[str, list[list[Any]]]:
    """Metrics of graphs by title: namespace, name, dimension, value and options. Tokens stand as `?`."""
    (found,) = deployment.of_type("watch", DASHBOARD).values()
    parts = found["Properties"]["DashboardBody"]["Fn::Join"][1]
    body = json.loads("".join(part if isinstance(part, str) else "?" for part in parts))
    return {each["properties"]["title"]: each["properties"]["metrics"] for each in body["widgets"]}


@pytest.fixture(scope="module")
def shown(synthesise: Synthesise) -> dict[str, list[list[Any]]]:
    return graphs(synthesise("prod", reactions=REACTIONS))


def test_it_shows_throttles_of_every_function_and_table(shown: dict[str, list[list[Any]]]) -> None:
    assert len(shown["Functions throttled"]) == len(shown["Errors"])
    assert {each[4]["label"] for each in shown["Tables throttled"]} == {
        f"{spec.kind} {what}" for spec in store_tables() for what in ("reads", "writes")
    }


def test_it_has_what_the_console_plots_under_the_same_titles_for_every_table(
    shown: dict[str, list[list[Any]]],
) -> None:
    for title, name in PLOTTED:
        assert {each[1] for each in shown[title]} == {name}
        assert {each[4]["label"] for each in shown[title]} == {spec.kind for spec in store_tables()}


def test_without_reactions_it_has_no_graph_of_them(synthesise: Synthesise) -> None:
    titles = set(graphs(synthesise("prod")))
    assert "Errors" in titles
    assert not titles & {
        "Handled",
        "Parked and blocked",
        "Reactions behind the feed, ms",
        "Wake-ups given up",
    }


def test_names_of_queues_on_it_are_those_that_are_deployed(
    synthesise: Synthesise, shown: dict[str, list[list[Any]]]
) -> None:
    queues = synthesise("prod", reactions=REACTIONS).of_type("reactions", "AWS::SQS::Queue").values()
    on_it = {each[3] for title in ("Wake-ups waiting, s", "Wake-ups given up") for each in shown[title]}
    assert on_it == {each["Properties"]["QueueName"] for each in queues}
