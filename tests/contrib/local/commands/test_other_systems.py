"""`epochal local` and `epochal new` on systems that are no Unix."""

from __future__ import annotations

import pytest

from tests.support.other_systems import WINDOWS, run


@pytest.mark.slow
def test_a_local_deployment_says_at_once_that_it_needs_a_unix() -> None:
    done = run(f"{WINDOWS}\nfrom epochal.cli.main import main\nmain(['local', 'up'])")
    assert done.returncode == 1
    assert done.stdout == b""
    (line,) = done.stderr.decode().splitlines()
    assert "needs Linux or macOS" in line
    assert "WSL" in line
