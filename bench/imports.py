"""What importing a function's handler costs, beside importing boto3 and creating a DynamoDB client.

Every import is a process of its own, on a warm disk and with bytecode written, as a layer has it; the rounds alternate,
so that a busy machine disturbs all alike, and the least CPU time counts, being the least disturbed. Wall time is
shown too.

Bound: a handler of the HTTP API at most 1.15 times boto3 and its client.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from bench.report import Report, progress
from epochal.settings import variable

BOUND = 1.15
ROUNDS = 15
ROOT = Path(__file__).resolve().parent.parent

BASELINE = "boto3 and a DynamoDB client"
CLIENT = "import boto3; boto3.client('dynamodb')"
POWERTOOLS = f"{CLIENT}; from aws_lambda_powertools import Logger, Metrics"
FUNCTIONS = ("append", "replay", "feed")

_TIMED = """
import sys, time
wall, cpu = time.perf_counter(), time.process_time()
exec(sys.argv[1])
print(time.process_time() - cpu, time.perf_counter() - wall)
"""


@dataclass(slots=True)
class Timing:
    """Seconds of all rounds."""

    cpu: list[float] = field(default_factory=list)
    wall: list[float] = field(default_factory=list)


def main() -> None:
    """Measure, print, and fail above the bound."""
    subjects = {BASELINE: (CLIENT, ""), "the same and Powertools": (POWERTOOLS, "")}
    subjects |= {f"the handler of {name}": ("import handler", name) for name in FUNCTIONS}
    timings = {name: Timing() for name in subjects}
    with tempfile.TemporaryDirectory() as bytecode:
        rounds = _rounds(subjects, Path(bytecode), timings)
        for _ in progress("imports", rounds, (ROUNDS + 1) * len(subjects)):
            pass
    base = timings[BASELINE]
    Report(
        title="Importing in a fresh process: least of all rounds",
        columns=["what", "CPU ms", "times", "wall ms", "times"],
        rows=[
            (
                name,
                f"{min(timing.cpu) * 1000:.0f}",
                f"{min(timing.cpu) / min(base.cpu):.2f}",
                f"{min(timing.wall) * 1000:.0f}",
                f"{min(timing.wall) / min(base.wall):.2f}",
            )
            for name, timing in timings.items()
        ],
    ).print()
    over = [name for name, timing in timings.items() if min(timing.cpu) > BOUND * min(base.cpu)]
    if over:
        raise SystemExit(f"more than {BOUND} times {BASELINE}: {', '.join(over)}")


def _rounds(
    subjects: Mapping[str, tuple[str, str]], bytecode: Path, timings: Mapping[str, Timing]
) -> Iterator[None]:
    """One measurement after another; the first round warms the disk and writes the bytecode, and is not kept."""
    for number in range(ROUNDS + 1):
        for name, (code, function) in subjects.items():
            cpu, wall = _measure(code, function, bytecode)
            if number:
                timings[name].cpu.append(cpu)
                timings[name].wall.append(wall)
            yield


def _measure(code: str, function: str, bytecode: Path) -> tuple[float, float]:
    paths = [ROOT / "layers" / "epochal" / "python", *([ROOT / "lambdas" / function] if function else [])]
    environment = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": os.pathsep.join(map(str, paths)),
        "PYTHONPYCACHEPREFIX": str(bytecode),
        "AWS_DEFAULT_REGION": "eu-central-1",
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        **{variable(f"{each}_table"): each for each in ("streams", "tips", "journal", "snapshot", "index")},
    }
    done = subprocess.run(
        [sys.executable, "-c", _TIMED, code], env=environment, capture_output=True, text=True, check=True
    )
    cpu, wall = done.stdout.split()
    return float(cpu), float(wall)


if __name__ == "__main__":
    main()
