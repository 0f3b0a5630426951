"""Stacks synthesised once for each combination of settings, with a line each for the library, functions and wheels."""

from __future__ import annotations

import pytest

from epochal.cdk.sources import Sources
from tests.surfaces.stacks.templates import Synthesise, library_in, sources_in, synthesiser


@pytest.fixture(scope="session")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Sources:
    """A line each: CDK reads every file of a layer, once for each synthesis. `test_layers` has the real library."""
    return sources_in(library_in(tmp_path_factory.mktemp("sources")))


@pytest.fixture(scope="session")
def synthesise(sources: Sources) -> Synthesise:
    return synthesiser(sources)
