"""The client in TypeScript, built once."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.clients import typescript


@pytest.fixture(scope="session")
def client(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The module of the client in TypeScript."""
    return typescript.build(tmp_path_factory.mktemp("client"))
