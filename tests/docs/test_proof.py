"""docs/proof.md and the command it is about: what they name exists, and what is broken is called so."""

from __future__ import annotations

import re
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Any, Literal

import pytest

from tests import proof
from tests.simulation import simulate, test_dcb_exhaustive, test_index_exhaustive, test_parking_exhaustive

PAGE = proof.ROOT / "docs" / "proof.md"


def test_every_promise_names_tests_that_exist() -> None:
    promises = proof.promises(proof.GUARANTEES.read_text())

    assert [promise.name for promise in promises] == [f"G{number}" for number in range(1, 19)]
    assert all(promise.tests for promise in promises)


def test_every_file_that_is_run_besides_the_promises_exists() -> None:
    """Where pytest is given a path that does not exist, it runs nothing at all."""
    paths = [path for group in proof.BESIDES for path in group.tests]
    assert [path for path in paths if not (proof.ROOT / path).is_file()] == []
    assert len(paths) > 30


@pytest.mark.parametrize("path", [Path(__file__), proof.ROOT / "tests" / "docs" / "test_site.py"])
def test_what_is_left_to_the_proof_in_a_file_that_it_does_not_run_is_refused(
    request: pytest.FixtureRequest, path: Path
) -> None:
    """Where the mark comes from, the file, a parameter or a decorator of the tests' support, makes no difference."""
    conftest = request.config.pluginmanager.get_plugin(str(proof.ROOT / "tests" / "conftest.py"))
    item = pytest.Function.from_parent(
        pytest.Module.from_parent(request.session, path=path), name="test_dear", callobj=lambda: None
    )
    conftest.pytest_collection_modifyitems([item])
    item.add_marker("proof")
    named = path == Path(__file__)

    with nullcontext() if named else pytest.raises(pytest.UsageError, match="which does not run its file"):
        conftest.pytest_collection_modifyitems([item])


def test_a_test_that_is_named_and_does_not_exist_is_an_error() -> None:
    with pytest.raises(FileNotFoundError, match="tests/core/gone"):
        list(proof.files("`tests/simulation`, `tests/core/gone` (nothing)"))


def test_a_failed_attempt_is_told_and_a_promise_without_attempts_does_not_hold() -> None:
    one, two = (
        proof.Promise(name=name, promise="**Kept**", attempts="", tests=(f"tests/{name}.py",))
        for name in "ab"
    )
    results = proof.Results(
        passed={"tests/a.py": ["tests/a.py::x"]}, failed={"tests/a.py": ["tests/a.py::y"]}
    )

    told = list(proof.table([one, two], results))

    assert told[1].split()[-3:] == ["2", "0", "BROKEN"]
    assert told[2].strip() == "tests/a.py::y"
    assert told[3].endswith("not tried")


@pytest.mark.parametrize("when", ["setup", "call", "teardown"])
def test_an_attempt_that_ends_in_an_error_has_failed_wherever_it_was(
    when: Literal["setup", "call", "teardown"],
) -> None:
    results = proof.Results()
    results.pytest_runtest_logreport(report("tests/a.py::x", when, "failed"))
    assert (results.failed, results.passed) == ({"tests/a.py": ["tests/a.py::x"]}, {})


def test_an_attempt_that_was_left_out_has_not_passed() -> None:
    results = proof.Results()
    for when, outcome in (("setup", "passed"), ("call", "skipped"), ("teardown", "passed")):
        results.pytest_runtest_logreport(report("tests/a.py::x", when, outcome))
    assert (results.failed, results.passed) == ({}, {})


def report(test: str, when: Any, outcome: Any) -> pytest.TestReport:
    return pytest.TestReport(
        nodeid=test, location=("", None, ""), keywords={}, outcome=outcome, longrepr=None, when=when
    )


def test_the_proof_fails_where_pytest_does_or_a_promise_that_was_asked_for_was_not_tried(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (wanted,) = (each for each in proof.promises(proof.GUARANTEES.read_text()) if each.name == "G1")
    passed = {wanted.tests[0]: [f"{wanted.tests[0]}::x"]}

    def ends(status: int, passed: dict[str, list[str]]) -> int:
        def attempt(paths: list[str], without: list[str], *, processes: str) -> tuple[int, proof.Results]:
            assert (paths, without, processes) == (sorted({*wanted.tests}), ["deploy"], "auto")
            return status, proof.Results(passed=passed)

        monkeypatch.setattr(proof, "attempt", attempt)
        return proof.main(["G1", "--without", "deploy"])

    assert ends(0, passed) == 0
    assert ends(1, passed) == 1
    assert ends(0, {}) == 1


@pytest.mark.proof
def test_files_of_folders_with_fixtures_of_their_own_are_run_together() -> None:
    """In a process of its own: pytest inside of pytest would share what it loads."""
    script = """
from tests import proof
paths = ["tests/contract/test_limits.py", "tests/core/plan/test_limits.py"]
status, results = proof.attempt(paths, ["ddbl", "embedded"])
assert status == 0 and not results.failed and sorted(results.passed) == paths, (status, results)
"""
    command = [sys.executable, "-c", script]
    ran = subprocess.run(command, cwd=proof.ROOT, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_every_file_that_the_page_names_is_there() -> None:
    named = set(re.findall(r"`((?:tests|docs|bench|layers)/[^`*]*)`", PAGE.read_text()))
    assert len(named) > 8
    assert all((proof.ROOT / path).exists() for path in named), sorted(named)


def test_every_deliberate_bug_that_the_page_counts_is_there() -> None:
    counted = dict(re.findall(r"^- `(tests/\S+_mutants\.py)`: (\d+)$", PAGE.read_text(), re.MULTILINE))
    there = {str(path.relative_to(proof.ROOT)) for path in (proof.ROOT / "tests").rglob("*_mutants.py")}

    assert counted.keys() == there
    for path, number in counted.items():
        text = (proof.ROOT / path).read_text()
        found = re.findall(r"^@mutant\b|^def (?!test)\w+\(monkeypatch: \S+\) -> None:", text, re.MULTILINE)
        assert len(found) == int(number), path
    assert sum(map(int, counted.values())) >= 90


@pytest.mark.parametrize("module", [test_dcb_exhaustive, test_index_exhaustive, test_parking_exhaustive])
def test_every_bug_that_the_page_counts_in_a_small_world_is_there(module: Any) -> None:

    (cases,) = (mark.args[1] for mark in module.test_a_rule_left_out_is_found_out.pytestmark)
    assert f"- `{Path(module.__file__).name}` ({len(cases)} bugs): " in PAGE.read_text()


def test_the_worlds_that_the_page_lists_are_those_that_are_simulated() -> None:
    listed = re.findall(r"^- ([a-z-]+): [\d,]+$", PAGE.read_text(), re.MULTILINE)
    assert listed == [kind.name for kind in simulate.KINDS]
