"""Runs the tests that try to break each promise, and prints the results: `make proof`.

The promises and their tests are those of docs/reference/guarantees.md. A test that a promise names and that does not
exist is an error.

    python -m tests.proof                        all promises, with a deployment on the embedded AWS
    python -m tests.proof G2 G11                 these promises alone
    python -m tests.proof --without deploy       without the tests of that mark; may be repeated
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
    """A promise of the guarantees, with the tests that try to break it.

    Attributes:
        name: number of the promise, such as `G2`.
        promise: text of the promise; its heading is in bold.
        attempts: attempts to break the promise, in words.
        tests: test files of these attempts, relative to the checkout.
    """

    name: str
    promise: str
    attempts: str
    tests: tuple[str, ...]


@dataclass(slots=True, eq=False)
class Results:
    """A pytest plugin that collects the passed and failed tests of each file.

    Attributes:
        passed: ids of passed tests, by file.
        failed: ids of failed tests, by file.
    """

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
"""Files with property tests, which `make test` runs with fewer examples."""

REST: Final = Promise(
    name="rest",
    promise="**What else holds, and takes long to test**",
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
        "tests/core/read_models/test_progress_seeds.py",
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
"""Options of pytest: a test of 100,000 events takes minutes, on a busy machine many, and breaks no promise by it."""

BESIDES: Final = (COSTS, REST)
"""Tests of no promise in the guarantees, which `make test` leaves to `make proof`."""


def promises(text: str) -> list[Promise]:
    """Parse the promises of the guarantees, with the tests that the page lists for each."""
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in text.splitlines()
        if re.match(r"\| G\d", line)
    ]
    listed = re.findall(r"^- (G\d[^:]*): (.*)$", text, re.MULTILINE)
    tests_of = {name: tests for names, tests in listed for name in names.split(", ")}
    return [
        Promise(name=name, promise=promise, attempts=attempts, tests=tuple(files(tests_of.get(name, ""))))
        for name, promise, attempts, _ in rows
    ]


def files(cell: str) -> Iterator[str]:
    """Yield the test files that a text names in backticks, as a file, a folder or a pattern.

    Raises:
        FileNotFoundError: there is no such test.
    """
    for name in re.findall(r"`(tests/[^`]*)`", cell):
        paths = sorted(ROOT.glob(f"{name}/**/test_*.py" if (ROOT / name).is_dir() else name))
        if not paths:
            raise FileNotFoundError(f"{GUARANTEES.name} names {name}, and there is no such test")
        yield from (str(path.relative_to(ROOT)) for path in paths)


def table(chosen: Sequence[Promise], results: Results) -> Iterator[str]:
    """Yield a line for each promise: its heading, the numbers of attempts and of bugs caught, and the result."""
    yield f"{'':5}{'promise':58}{'attempts':>9}{'bugs caught':>13}   result"
    for promise in chosen:
        passed = [name for path in promise.tests for name in results.passed.get(path, ())]
        failed = [name for path in promise.tests for name in results.failed.get(path, ())]
        caught = sum("_mutants.py" in name for name in passed)
        result = "BROKEN" if failed else "holds" if passed else "not tried"
        count = len(passed) + len(failed)
        yield f"{promise.name:5}{_heading(promise.promise):58}{count:>9,}{caught:>13}   {result}"
        yield from (f"       {name}" for name in failed)


def _heading(promise: str) -> str:
    """Return the words in bold of a promise, at most 57 characters."""
    bold = re.search(r"\*\*(.*?)\*\*", promise)
    return (bold[1] if bold else promise)[:57]


def mutants(results: Mapping[str, Sequence[str]]) -> int:
    """Count the deliberate bugs among tests."""
    return sum(len(names) for path, names in results.items() if path.endswith("_mutants.py"))


def main(arguments: Sequence[str]) -> int:
    """Run the command; return 1 if a promise is broken, or was not tried."""
    options = _parser().parse_args(arguments)
    chosen = [
        promise
        for promise in (*promises(GUARANTEES.read_text()), *BESIDES)
        if promise.name in options.promises or not options.promises
    ]
    paths = sorted({path for promise in chosen for path in promise.tests})
    status, results = attempt(paths, options.without, processes=options.processes)
    lines = list(table(chosen, results))
    sys.stdout.write("\n" + "\n".join(lines) + "\n")
    passed = sum(map(len, results.passed.values()))
    sys.stdout.write(
        f"\n{passed:,} attempts failed to break a promise; {mutants(results.passed)} deliberate bugs caught\n"
    )
    return 1 if status or any(line.endswith("not tried") for line in lines) else 0


def attempt(paths: Sequence[str], without: Sequence[str], *, processes: str = "0") -> tuple[int, Results]:
    """Run test files without the tests of some marks; return pytest's status, and the results by file."""
    marks = " and ".join(f"not {mark}" for mark in without)
    results = Results()
    shared = ["--numprocesses", processes, "--no-loadscope-reorder"]
    status = pytest.main(
        ["-q", *UNHURRIED, "-p", "no:cacheprovider", "-m", marks, *shared, *paths], plugins=[results]
    )
    return int(status), results


def _file(report: pytest.TestReport) -> str:
    """Return the path of a test's file."""
    return report.nodeid.partition("::")[0]


def _parser() -> argparse.ArgumentParser:
    """Build the parser of the command's arguments."""
    parser = argparse.ArgumentParser(prog="python -m tests.proof", description="Try to break every promise.")
    parser.add_argument(
        "promises",
        nargs="*",
        metavar="PROMISE",
        help="Promises to try: G1, G2, …, cost or rest. The default is all of them.",
    )
    parser.add_argument(
        "--without",
        action="append",
        default=[],
        metavar="MARK",
        help="Leave out tests that have this pytest mark. May be repeated.",
    )
    parser.add_argument(
        "--processes",
        default="auto",
        metavar="N",
        help="Number of processes that share the tests. The default is one for each core.",
    )
    return parser


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)
