"""`make audit`: whether anything that is pinned has a known vulnerability, as pip-audit and the OSV database know them.

Pinned is what is installed here, and what the functions' layer holds. The one command of this repository that asks
somebody else. Where OSV cannot be reached nothing has been audited, which is said, and is no success; nor is an answer
about fewer packages than were asked for. The tests need neither.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

_ROOT: Final = Path(__file__).resolve().parents[2]
_VENDOR: Final = _ROOT / "layers" / "vendor"
PINS: Final = (_ROOT / "constraints.txt", _VENDOR / "requirements.txt", _VENDOR / "boto3.txt")

FOUND: Final = 1
UNREACHABLE: Final = 75
"""As `sysexits.h` has it: a failure that may be gone another time."""

_PIP_AUDIT: Final = (sys.executable, "-m", "pip_audit", "--vulnerability-service", "osv", "--format", "json")
_AS_PINNED: Final = ("--disable-pip", "--no-deps", "--progress-spinner", "off", "--timeout", "10")


def main(files: Sequence[Path] = PINS) -> int:
    """Audit the pins and say what came of it."""
    given = [option for path in files for option in ("--requirement", str(path))]
    ran = subprocess.run([*_PIP_AUDIT, *_AS_PINNED, *given], capture_output=True, text=True, check=False)
    code, said = verdict(ran.stdout, ran.stderr, pinned(files))
    print("\n".join(said), file=sys.stdout if code == 0 else sys.stderr)
    return code


def pinned(files: Iterable[Path]) -> set[str]:
    """Names of what is pinned, as indexes compare them."""
    lines = [line.partition("==") for path in files for line in path.read_text().splitlines()]
    return {_normal(name) for name, pin, _ in lines if pin and not name.startswith("#")}


def verdict(output: str, complaint: str, wanted: Collection[str]) -> tuple[int, list[str]]:
    """The exit code, and what is to be said, from what pip-audit wrote: JSON only where it got to the end.

    Args:
        wanted: names of what was to be audited.
    """
    try:
        audited = json.loads(output)["dependencies"]
    except (ValueError, TypeError, KeyError):
        why = (complaint.strip().splitlines() or ["it said nothing"])[-1]
        return UNREACHABLE, [f"nothing was audited: pip-audit could not ask OSV ({why[:200]})"]
    found = [line for each in audited for line in _vulnerabilities(each)]
    unknown = [
        f"{each['name']}: not audited, {each['skip_reason']}" for each in audited if "skip_reason" in each
    ]
    left = sorted(set(wanted).difference(_normal(each["name"]) for each in audited))
    unknown += [f"{name}: not audited, pip-audit said nothing of it" for name in left]
    if found or unknown:
        return FOUND, found + unknown
    return 0, [f"{len(audited)} pinned packages, no known vulnerability"]


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name.strip()).lower()


def _vulnerabilities(package: dict[str, object]) -> Iterator[str]:
    known = package.get("vulns")
    for each in known if isinstance(known, list) else ():
        better = ", ".join(each["fix_versions"]) or "none yet"
        yield f"{package['name']} {package['version']}: {each['id']}, fixed in {better}"


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
