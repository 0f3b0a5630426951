"""`make audit`: whether anything that is pinned has a known vulnerability, as pip-audit and the OSV database know them.

The one command of this repository that asks somebody else. Where OSV cannot be reached nothing has been audited, which
is said, and is no success; the tests need neither.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

PINS: Final = Path(__file__).resolve().parents[2] / "constraints.txt"

FOUND: Final = 1
UNREACHABLE: Final = 75
"""As `sysexits.h` has it: a failure that may be gone another time."""

_PIP_AUDIT: Final = (sys.executable, "-m", "pip_audit", "--vulnerability-service", "osv", "--format", "json")
_AS_PINNED: Final = ("--disable-pip", "--no-deps", "--progress-spinner", "off", "--timeout", "10")


def main(pins: Path = PINS) -> int:
    """Audit the pins and say what came of it."""
    ran = subprocess.run(
        [*_PIP_AUDIT, *_AS_PINNED, "--requirement", str(pins)], capture_output=True, text=True, check=False
    )
    code, said = verdict(ran.stdout, ran.stderr)
    print("\n".join(said), file=sys.stdout if code == 0 else sys.stderr)
    return code


def verdict(output: str, complaint: str) -> tuple[int, list[str]]:
    """The exit code, and what is to be said, from what pip-audit wrote: JSON only where it got to the end."""
    try:
        audited = json.loads(output)["dependencies"]
    except ValueError:
        why = (complaint.strip().splitlines() or ["it said nothing"])[-1]
        return UNREACHABLE, [f"nothing was audited: pip-audit could not ask OSV ({why[:200]})"]
    found = [line for each in audited for line in _vulnerabilities(each)]
    unknown = [
        f"{each['name']}: not audited, {each['skip_reason']}" for each in audited if "skip_reason" in each
    ]
    if found or unknown:
        return FOUND, found + unknown
    return 0, [f"{len(audited)} pinned packages, no known vulnerability"]


def _vulnerabilities(package: dict[str, object]) -> Iterator[str]:
    known = package.get("vulns")
    for each in known if isinstance(known, list) else ():
        better = ", ".join(each["fix_versions"]) or "none yet"
        yield f"{package['name']} {package['version']}: {each['id']}, fixed in {better}"


if __name__ == "__main__":
    sys.exit(main())
