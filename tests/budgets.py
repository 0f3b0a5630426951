"""What tests took, from the JUnit file of a run: seconds by kind against their budgets, the dearest files, and what
failed: said last, since the end of a long output is what is kept of it.

    python -m tests.budgets build/tests.xml

A budget is what a kind may take on cores that do nothing else (`tests/support/kinds.py`). More than that is told, and
never fails the run: a machine that does other things besides takes three to five times as long, and nobody has changed
anything.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final
from xml.etree import ElementTree as ET

from tests.support.kinds import KINDS, TESTS, Kind, kind_of

SHOWN: Final = 15
"""Files that are shown."""

REASON: Final = 1000
"""Characters of an error that are shown."""


def seconds_by_file(report: Path) -> Counter[Path]:
    """What the tests of each file took, with all that was set up for them and taken down after them."""
    taken: Counter[Path] = Counter()
    for case in ET.parse(report).iter("testcase"):  # noqa: S314  the file is pytest's own
        taken[_file(case.attrib["classname"])] += float(case.attrib["time"])  # type: ignore[assignment]
    return taken


def _file(classname: str) -> Path:
    """The file of a class of tests as JUnit names it, `tests.surfaces.http.test_append`."""
    return TESTS.parent.joinpath(*classname.split(".")).with_suffix(".py")


def told(taken: Mapping[Path, float]) -> Iterator[str]:
    """Seconds by kind and folder against the budgets, then the dearest files."""
    yield f"{'':13}{'seconds':>8}{'budget':>8}"
    for kind in KINDS:
        seconds = _of_kind(taken, kind.name)
        over = f"   OVER ITS BUDGET, {seconds / kind.seconds:.1f} times" if seconds > kind.seconds else ""
        yield f"{kind.name:13}{seconds:>8.0f}{kind.seconds:>8}{over}"
        yield from (f"  {folder:11}{_in_folder(taken, kind, folder):>8.0f}" for folder in kind.folders)
    yield f"{'all':13}{sum(taken.values()):>8.0f}{sum(kind.seconds for kind in KINDS):>8}"
    yield f"\nthe dearest files of {len(taken)}"
    for path, seconds in sorted(taken.items(), key=lambda each: -each[1])[:SHOWN]:
        yield f"{seconds:>8.1f}  {path.relative_to(TESTS.parent)}"


def failures(report: Path) -> Iterator[str]:
    """The tests of a report that failed, each with the first lines of its error."""
    for case in ET.parse(report).iter("testcase"):  # noqa: S314  the file is pytest's own
        for failure in (*case.iterfind("failure"), *case.iterfind("error")):
            reason = failure.attrib.get("message", "")[:REASON].replace("\n", "\n    ")
            file = _file(case.attrib["classname"]).relative_to(TESTS.parent)
            yield f"FAILED {file}::{case.attrib['name']}\n    {reason}"


def _of_kind(taken: Mapping[Path, float], name: str) -> float:
    return sum(seconds for path, seconds in taken.items() if kind_of(path).name == name)


def _in_folder(taken: Mapping[Path, float], kind: Kind, folder: str) -> float:
    inside = ((path, seconds) for path, seconds in taken.items() if path.is_relative_to(TESTS / folder))
    return sum(seconds for path, seconds in inside if kind_of(path) is kind)


def main(arguments: Sequence[str]) -> None:
    """Tell of a run, and write it beside the report."""
    report = Path(arguments[0])
    text = "\n".join((*told(seconds_by_file(report)), *failures(report))) + "\n"
    report.with_name("budgets.txt").write_text(text)
    sys.stdout.write(f"\n{text}")


if __name__ == "__main__":
    main(sys.argv[1:])
