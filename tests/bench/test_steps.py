"""What an event costs in a read model and in a process is what the page on cost says."""

from pathlib import Path

from bench.steps import rows

COST = (Path(__file__).parents[2] / "docs" / "reference" / "cost.md").read_text("utf-8")


def test_the_page_has_what_an_event_costs_in_a_read_model_and_in_a_process():
    found = rows()
    for name, cost in found.items():
        assert f"| {name} | {' | '.join(cost.figures)} |\n" in COST
    assert max(cost.write for cost in found.values()) <= 4
    assert max(cost.requests for cost in found.values()) <= 8
