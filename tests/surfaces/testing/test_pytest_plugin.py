"""The fixtures that pytest finds where the library is installed."""

from __future__ import annotations

import ast
import subprocess
import sys

import pytest

LOADED = """
import sys
import pytest
before = set(sys.modules)
import epochal.pytest_plugin
print(sorted(name for name in set(sys.modules) - before if name.partition(".")[0] != "epochal"))
print(sorted(name for name in sys.modules if name.partition(".")[0] == "epochal"))
"""


@pytest.fixture(autouse=True)
def _alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the plugins of whoever runs these tests."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")


def test_the_stores_of_a_test_are_one_deployment_and_each_test_has_its_own(
    pytester: pytest.Pytester,
) -> None:
    pytester.makepyfile(
        """
        import pytest
        from epochal import NO_STREAM, Event, reaction
        from epochal import Event
        from epochal.contrib.event_store_adapter import aggregate_id


        @pytest.mark.parametrize("time", ["first", "second"])
        def test_all(
            epochal_streams, epochal_tagged_events, epochal_read_models, epochal_feed, time
        ):
            seen = []
            counts = epochal_read_models.open("counts", 1)

            @reaction(name="board", categories=["Flight", "$tag-Seat"])
            def board(delivery):
                seen.append(delivery.stream)
                counts.apply(delivery, lambda documents, event: documents.put(event.type, 1))

            epochal_streams.append("Flight-UA1", [Event(type="Scheduled")], expected=NO_STREAM)
            epochal_tagged_events.append([Event(type="Taken", tags=["Seat:1A"])])
            assert epochal_feed.aggregates.replay(aggregate_id("order", "1")) is None
            epochal_feed.react(board)
            assert [stream.partition("-")[0] for stream in sorted(seen)] == ["$tag", "Flight"]
            assert counts.get("Scheduled") == 1
        """
    )
    pytester.runpytest_inprocess("-p", "epochal.pytest_plugin").assert_outcomes(passed=2)


@pytest.mark.slow
def test_a_run_that_uses_no_fixture_imports_nothing_for_them() -> None:
    ran = subprocess.run([sys.executable, "-c", LOADED], capture_output=True, text=True, check=True)
    others, own = map(ast.literal_eval, ran.stdout.splitlines())
    listing = ("contrib", "deferred", "errors", "extensions", "lazy_dataclasses", "named_objects")
    assert others == []
    assert own == sorted(["epochal", "epochal.pytest_plugin", *(f"epochal.{each}" for each in listing)])
