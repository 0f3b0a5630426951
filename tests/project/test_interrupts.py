"""Programs that `make` runs for long end quietly when they are interrupted."""

from __future__ import annotations

import runpy
from typing import NoReturn

import pytest

PROGRAMS = {
    "bench": "bench.__main__.time.perf_counter",
    "bench.load": "epochal.contrib.local.programs.here",
    "tests.simulation.simulate": "argparse.ArgumentParser.parse_args",
    "tests.proof": "argparse.ArgumentParser.parse_args",
    "tests.doors.audit": "subprocess.run",
    "tests.support.dynamodb_local": "epochal.contrib.local.programs.here",
}
"""Each with something that it calls."""


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.filterwarnings("ignore:.*found in sys.modules:RuntimeWarning")
def test_an_interrupt_ends_a_program_with_130_and_without_a_trace(
    monkeypatch: pytest.MonkeyPatch, program: str
) -> None:
    def interrupted(*_: object, **__: object) -> NoReturn:
        raise KeyboardInterrupt

    monkeypatch.setattr("sys.argv", [program])
    with monkeypatch.context() as within:
        within.setattr(PROGRAMS[program], interrupted)
        with pytest.raises(SystemExit) as ended:
            runpy.run_module(program, run_name="__main__")
    assert ended.value.code == 130
