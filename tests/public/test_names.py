from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import epochal

PUBLIC = {
    "ANY", "Appended", "AtVersion", "Conflict", "ConflictError",
    "Decider", "Deciders", "Decisions", "Delivery", "EpochalError", "Event", "ExpectedVersion", "FeedEvent",
    "NO_STREAM", "Selector", "OutcomeUndetermined", "Query", "QueryItem", "Recorded", "STREAM_EXISTS", "StreamAppend",
    "StreamDeleted", "Undetermined", "Unfold", "json_codec", "lambda_handler",
    "metadata", "new_key", "open_feed", "open_read_models", "open_streams",
    "open_tagged_events", "projection", "reaction", "upcast",
    "Decided", "Projection", "Streams", "after", "cancel", "later",
    "Contended", "InvalidInput", "Place", "Token", "Unavailable", "parse_token",
}  # fmt: skip


def test_the_public_names_are_these_and_no_others() -> None:
    assert set(epochal.__all__) == PUBLIC
    assert set(dir(epochal)) >= PUBLIC


@pytest.mark.parametrize("name", sorted(PUBLIC))
def test_every_public_name_leads_somewhere(name: str) -> None:
    assert getattr(epochal, name) is not None


def test_what_type_checkers_see_is_what_there_is() -> None:
    source = ast.parse(Path(epochal.__file__).read_text(encoding="utf-8"))
    seen = {
        (alias.asname, node.module)
        for node in ast.walk(source)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("epochal.")
        for alias in node.names
        if alias.asname is not None
    }
    assert {name for name, _ in seen} == PUBLIC
    for name, module in seen:
        assert getattr(sys.modules[str(module)], str(name)) is getattr(epochal, str(name))


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        epochal.Nothing  # noqa: B018


def test_importing_the_package_imports_no_room() -> None:
    listed = "import sys, epochal; print([name for name in sys.modules if name.startswith('epochal.')])"
    found = subprocess.run([sys.executable, "-c", listed], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "['epochal.deferred']"
