"""Tests by what they need: every folder is of a kind, and what a kind takes is held to a budget."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests import budgets
from tests.support.kinds import KINDS, TESTS, kind_of, mark_by_folder
from tests.support.remaining import PACKAGES
from tests.support.sharing import group_of, turn

CASES = """<testsuites><testsuite>
<testcase classname="tests.surfaces.http.test_append" name="test_a" time="100.5"/>
<testcase classname="tests.surfaces.http.test_append" name="test_b[1.5]" time="1.0"/>
<testcase classname="tests.contract.test_reads" name="test_c" time="{seconds}">{result}</testcase>
</testsuite></testsuites>"""


def test_every_folder_of_tests_is_of_one_kind() -> None:
    folders = {path.relative_to(TESTS).parts[0] for path in TESTS.rglob("test_*.py")}
    named = [folder for kind in KINDS for folder in kind.folders]
    assert sorted(folders) == sorted(folder for folder in named if "/" not in folder)
    assert all((TESTS / folder).is_dir() for folder in named)
    assert kind_of(TESTS / "surfaces" / "stacks" / "test_api.py").name == "synthesis"


def test_tests_of_an_optional_package_are_in_a_folder_of_its_name() -> None:
    paths = [path.relative_to(TESTS / "contrib") for path in (TESTS / "contrib").rglob("test_*.py")]
    assert len(paths) > 100
    assert {path.parts[0] for path in paths} <= {*PACKAGES}


def test_a_folder_that_no_kind_names_is_an_error() -> None:
    with pytest.raises(LookupError, match="tests/elsewhere is not among"):
        kind_of(TESTS / "elsewhere" / "test_a.py")


def test_a_test_has_the_mark_of_its_folder_and_of_no_other(request: pytest.FixtureRequest) -> None:
    """Else `-m pure` would run none of them, and every such run would pass."""
    marks = {mark.name for mark in request.node.iter_markers()}
    assert marks & {kind.name for kind in KINDS} == {"pure"}


def test_a_test_that_asks_for_a_server_among_those_that_need_none_is_refused(
    request: pytest.FixtureRequest,
) -> None:
    request.node.add_marker("ddbl")
    with pytest.raises(pytest.UsageError, match="ddbl"):
        mark_by_folder(request.node)


def test_a_file_stays_in_one_process_and_so_does_all_that_shares_the_deployment() -> None:
    one, other = TESTS / "contract" / "test_reads.py", TESTS / "contract" / "test_writes.py"
    assert group_of(one) != group_of(other)
    assert group_of(TESTS / "deploy" / "test_cli.py") == group_of(TESTS / "local" / "test_keeping.py")
    assert (
        turn(TESTS / "local" / "test_keeping.py")
        < turn(one)
        < turn(TESTS / "surfaces" / "http" / "test_append.py")
    )


def test_of_two_processes_each_goes_through_a_folder_from_another_end_and_both_run_it_in_one_order(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else both compile each file, or each refuses the other's order."""

    def files(worker: str) -> list[Path]:
        monkeypatch.setattr(request.config, "workerinput", {"workerid": worker}, raising=False)
        folder = request.node.getparent(pytest.Directory)
        return [file.path for file in request.config.hook.pytest_make_collect_report(collector=folder).result]

    one, other = files("gw0"), files("gw1")
    assert len(one) > 5
    assert other == one[::-1]
    assert sorted(other, key=turn) == one


def test_no_test_that_needs_nothing_imports_cdk() -> None:
    """It starts Node, in each process that collects the test; what a stage says is read without it."""
    needs = re.compile(
        r"^\s*(?:from|import) (?:aws_cdk|(?:epochal\.cdk|stacks)\b(?!\.(?:stages|user_cache)\b))",
        re.MULTILINE,
    )
    pure = [path for path in TESTS.rglob("test_*.py") if kind_of(path).name == "pure"]
    assert len(pure) > 300
    assert [path for path in pure if needs.search(path.read_text("utf-8"))] == []


@pytest.mark.proof
def test_processes_that_share_the_tests_take_whole_files() -> None:
    """In a process of its own: pytest inside of pytest would share what it loads."""
    script = """
import pytest
ran = {}

class Workers:
    def pytest_runtest_logreport(self, report):
        ran.setdefault(report.nodeid.partition("::")[0], set()).add(report.worker_id)

files = ["tests/core/plan/test_limits.py", "tests/core/plan/test_units.py"]
pytest.main(["-q", "-n2", "--no-loadscope-reorder", "-p", "no:cacheprovider", *files], plugins=[Workers()])
assert sorted(ran) == files and all(len(workers) == 1 for workers in ran.values()), ran
"""
    ran = subprocess.run(
        [sys.executable, "-c", script], cwd=TESTS.parent, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_what_a_kind_took_is_told_beside_its_budget(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tell(tmp_path, seconds=2)

    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    pure, server = (next(kind for kind in KINDS if kind.name == name) for name in ("pure", "server"))
    assert ["pure", "102", str(pure.seconds)] in lines
    assert ["server", "2", str(server.seconds)] in lines
    assert ["surfaces", "102"] in lines
    assert ["101.5", "tests/surfaces/http/test_append.py"] in lines


def test_a_kind_over_its_budget_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    server = next(kind for kind in KINDS if kind.name == "server")
    tell(tmp_path, seconds=2 * server.seconds)
    assert "OVER ITS BUDGET, 2.0 times" in capsys.readouterr().out


def test_what_failed_is_said_last(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tell(tmp_path, seconds=2, result='<failure message="assert 1 == 2">trace</failure>')

    *_, failed, reason = capsys.readouterr().out.splitlines()
    assert failed.startswith("FAILED tests/")
    assert reason.strip() == "assert 1 == 2"


def tell(folder: Path, *, seconds: float, result: str = "") -> None:
    report = folder / "tests.xml"
    report.write_text(CASES.format(seconds=seconds, result=result))
    budgets.main([str(report)])
