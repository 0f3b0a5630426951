"""Stacks synthesised once for each combination of settings, with a line each for the library, functions and wheels."""

from __future__ import annotations

import pytest

from epochal.cdk.sources import Sources
from tests.unit.stacks.templates import Synthesise, sources_in, synthesiser


@pytest.fixture(scope="session")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Sources:
    """A line each: CDK reads every file of a layer, once for each synthesis. `test_layers` has the real library."""
    place = tmp_path_factory.mktemp("sources")
    (place / "epochal" / "python" / "epochal").mkdir(parents=True)
    (place / "epochal" / "python" / "epochal" / "__init__.py").write_text("")
    return sources_in(place)


@pytest.fixture(scope="session")
def synthesise(sources: Sources) -> Synthesise:
    return synthesiser(sources)
