"""Every promise, the attempts to break it, and what came of them: `make proof`.

Promises come from docs/reference/guarantees.md, and so do the tests that try to break them: what is printed is what is
written there, run now. A test that a promise names and that does not exist is an error.

    python -m tests.proof                        all of it, a deployment on the embedded AWS included
    python -m tests.proof G2 G11                 these promises alone
    python -m tests.proof --without deploy       without the tests of that mark, which may be given again
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import pytest

ROOT = Path(__file__).resolve().parent.parent
GUARANTEES = ROOT / "docs" / "reference" / "guarantees.md"


@dataclass(frozen=True, slots=True, kw_only=True)
class Promise:
    """A line of the guarantees.

    Attributes:
        attempts: what is tried to break it, in words.
        tests: files that try, relative to the checkout.
    """

    name: str
    promise: str
    attempts: str
    tests: tuple[str, ...]


@dataclass(slots=True, eq=False)
class Results:
    """A plugin of pytest's, which puts plugins into sets; keeps, for each file, how its tests ended."""

    passed: dict[str, list[str]] = field(default_factory=dict)
    failed: dict[str, list[str]] = field(default_factory=dict)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.failed.setdefault(_file(report), []).append(report.nodeid)
        elif report.passed and report.when == "call":
            self.passed.setdefault(_file(report), []).append(report.nodeid)


COSTS: Final = Promise(
    name="cost",
    promise="**Nothing costs more units, requests or memory than we say**",
    attempts="",
    tests=tuple(str(path.relative_to(ROOT)) for path in sorted((ROOT / "tests" / "bench").glob("test_*.py"))),
)

PROPERTIES: Final = tuple(
    str(path.relative_to(ROOT))
    for folder in ("core", "surfaces", "contrib", "layouts", "public", "frozen", "project")
    for path in sorted((ROOT / "tests" / folder).rglob("test_*.py"))
    if "@given(" in path.read_text()
)
"""Files of properties, which `make test` tries with fewer examples."""

REST: Final = Promise(
    name="rest",
    promise="**What holds besides, and takes long to try**",
    attempts="",
    tests=(
        "tests/browser/test_site.py",
        "tests/contract/test_async_places.py",
        "tests/contract/test_async_streams.py",
        "tests/contract/test_cost.py",
        "tests/contract/test_eventsourcing_cases.py",
        "tests/contract/test_feed_layouts.py",
        "tests/contract/test_streams.py",
        "tests/contract/test_tagged_events.py",
        "tests/contract/test_tagged_limits.py",
        "tests/core/read_models/test_entries_seeds.py",
        "tests/core/wire/test_signing.py",
        "tests/docs/test_proof.py",
        "tests/docs/test_typing.py",
        "tests/doors/test_bounds.py",
        "tests/doors/test_forgery.py",
        "tests/local/test_console.py",
        "tests/local/test_first_hour.py",
        "tests/local/test_keeping.py",
        "tests/local/test_package.py",
        "tests/local/test_shared.py",
        "tests/contrib/console/test_bounds.py",
        "tests/contrib/local/commands/test_new.py",
        "tests/contrib/transfer/importing/test_bad_lines.py",
        "tests/contrib/equinox/layout/test_replay.py",
        "tests/project/test_core.py",
        "tests/project/test_kinds.py",
        "tests/surfaces/stacks/test_deletion.py",
        "tests/project/test_remaining_tests.py",
        "tests/project/test_setup.py",
        "tests/surfaces/stacks/test_baseline.py",
        "tests/surfaces/stacks/test_updates.py",
        "tests/core/store/test_bulk.py",
        "tests/layouts/store/test_model_snapshots.py",
        "tests/layouts/store/test_selected_events.py",
        *PROPERTIES,
    ),
)

UNHURRIED: Final = ("-o", "timeout=3600")
"""A test of a hundred thousand events takes minutes, and on a busy machine many: that breaks no promise."""

BESIDES: Final = (COSTS, REST)
"""No promises of the guarantees', but what `make test` leaves to `make proof` is not to be lost."""


def promises(text: str) -> list[Promise]:
    """The promises of the document, with the tests that it names for each."""
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in text.splitlines()
        if re.match(r"\| G\d", line)
    ]
    listed = re.findall(r"^- (G\d[^:]*): (.*)$", text, re.MULTILINE)
    named = {name: tests for names, tests in listed for name in names.split(", ")}
    return [
        Promise(name=name, promise=promise, attempts=attempts, tests=tuple(files(named.get(name, ""))))
        for name, promise, attempts, _ in rows
    ]


def files(named: str) -> Iterator[str]:
    """Test files that a cell names in backticks: a file, a folder, or a pattern.

    Raises:
        FileNotFoundError: there is no such test.
    """
    for path in re.findall(r"`(tests/[^`]*)`", named):
        found = sorted(ROOT.glob(f"{path}/**/test_*.py" if (ROOT / path).is_dir() else path))
        if not found:
            raise FileNotFoundError(f"{GUARANTEES.name} names {path}, and there is no such test")
        yield from (str(each.relative_to(ROOT)) for each in found)


def table(asked: Sequence[Promise], results: Results) -> Iterator[str]:
    """What is promised, how many attempts were made to break it, and what came of them."""
    yield f"{'':5}{'promise':58}{'attempts':>9}{'bugs caught':>13}   result"
    for each in asked:
        passed = [name for path in each.tests for name in results.passed.get(path, ())]
        failed = [name for path in each.tests for name in results.failed.get(path, ())]
        caught = sum("_mutants.py" in name for name in passed)
        result = "BROKEN" if failed else "holds" if passed else "not tried"
        yield f"{each.name:5}{_heading(each.promise):58}{len(passed) + len(failed):>9,}{caught:>13}   {result}"
        yield from (f"       {name}" for name in failed)


def _heading(promise: str) -> str:
    """The promise's words in bold."""
    found = re.search(r"\*\*(.*?)\*\*", promise)
    return (found[1] if found else promise)[:57]


def mutants(results: Mapping[str, Sequence[str]]) -> int:
    """How many deliberate bugs were caught."""
    return sum(len(names) for path, names in results.items() if path.endswith("_mutants.py"))


def main(arguments: Sequence[str]) -> int:
    """Run the command; 1 where a promise is broken, or was not tried."""
    asked = _parser().parse_args(arguments)
    wanted = [
        each
        for each in (*promises(GUARANTEES.read_text()), *BESIDES)
        if each.name in asked.promises or not asked.promises
    ]
    paths = sorted({path for each in wanted for path in each.tests})
    status, results = attempt(paths, asked.without, processes=asked.processes)
    lines = list(table(wanted, results))
    sys.stdout.write("\n" + "\n".join(lines) + "\n")
    passed = sum(map(len, results.passed.values()))
    sys.stdout.write(
        f"\n{passed:,} attempts failed to break a promise; {mutants(results.passed)} deliberate bugs caught\n"
    )
    return 1 if status or any(line.endswith("not tried") for line in lines) else 0


def attempt(paths: Sequence[str], without: Sequence[str], *, processes: str = "0") -> tuple[int, Results]:
    """Run test files, without the tests of some marks; pytest's status, and how each test ended."""
    marks = " and ".join(f"not {mark}" for mark in without)
    results = Results()
    shared = ["--numprocesses", processes, "--no-loadscope-reorder"]
    status = pytest.main(
        ["-q", *UNHURRIED, "-p", "no:cacheprovider", "-m", marks, *shared, *paths], plugins=[results]
    )
    return int(status), results


def _file(report: pytest.TestReport) -> str:
    return report.nodeid.partition("::")[0]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.proof", description="Try to break every promise.")
    parser.add_argument(
        "promises", nargs="*", metavar="PROMISE", help="G1, G2, …, cost, rest; all if none is named"
    )
    parser.add_argument(
        "--without", action="append", default=[], metavar="MARK", help="leave out tests so marked"
    )
    parser.add_argument(
        "--processes", default="auto", metavar="N", help="that share the tests; as many as there are cores"
    )
    return parser


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)
