"""What importing a function's handler costs, beside importing boto3 and creating a DynamoDB client.

Every import is a process of its own, on a warm disk and with bytecode written, as a layer has it; the rounds alternate,
so that a busy machine disturbs all alike, and the least CPU time counts, being the least disturbed. Wall time is
shown too.

A server of this process grants what the indexer asks for at its start.

Bounds, in times of boto3 and its client: the handlers of `append` and `replay` 0.5, those of the auditor and of timers
0.55, those of `feed` and the indexer 0.6, a reaction's 0.75, and a program that opens streams 0.55.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from bench.append_cpu import granting
from bench.report import Report, progress
from epochal.settings import variable

ROUNDS = 15
ROOT = Path(__file__).resolve().parent.parent

BASELINE = "boto3 and a DynamoDB client"
CLIENT = "import boto3; boto3.client('dynamodb')"
POWERTOOLS = f"{CLIENT}; from aws_lambda_powertools import Logger, Metrics"
FUNCTIONS = ("append", "replay", "feed", "auditor", "timers")
TABLES = ("streams", "tips", "journal", "snapshot", "index", "timers")

REACTION = """
from epochal import lambda_handler, reaction
handler = lambda_handler(reaction(name='r', categories=['A'])(lambda _: None))
"""
STREAMS = "from epochal import open_streams; open_streams('streams')"
BOUNDS = {
    "the handler of append": 0.5,
    "the handler of replay": 0.5,
    "the handler of auditor": 0.55,
    "the handler of timers": 0.55,
    "the handler of feed": 0.6,
    "the handler of indexer": 0.6,
    "a reaction's handler": 0.75,
    "streams, opened": 0.55,
}

_TIMED = """
import sys, time
wall, cpu = time.perf_counter(), time.process_time()
exec(sys.argv[1])
print(time.process_time() - cpu, time.perf_counter() - wall)
"""


@dataclass(slots=True)
class Timing:
    """CPU and wall seconds of all rounds."""

    cpu: list[float] = field(default_factory=list)
    wall: list[float] = field(default_factory=list)


def main() -> None:
    """Measure, print the figures, and exit with an error if a bound is exceeded."""
    subjects = {BASELINE: (CLIENT, ""), "the same and Powertools": (POWERTOOLS, "")}
    subjects |= {f"the handler of {name}": ("import handler", name) for name in (*FUNCTIONS, "indexer")}
    subjects |= {"a reaction's handler": (REACTION, ""), "streams, opened": (STREAMS, "")}
    timings = {name: Timing() for name in subjects}
    with tempfile.TemporaryDirectory() as bytecode, granting() as url:
        rounds = _rounds(subjects, Path(bytecode), timings, url)
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
    over = [name for name, most in BOUNDS.items() if min(timings[name].cpu) > most * min(base.cpu)]
    if over:
        raise SystemExit(f"more times {BASELINE} than bounded: {', '.join(over)}")


def _rounds(
    subjects: Mapping[str, tuple[str, str]], bytecode: Path, timings: Mapping[str, Timing], url: str
) -> Iterator[None]:
    """Make the measurements in turn; the first round warms the disk and writes bytecode, and is dropped."""
    for number in range(ROUNDS + 1):
        for name, (code, function) in subjects.items():
            cpu, wall = _measure(code, function, bytecode, url)
            if number:
                timings[name].cpu.append(cpu)
                timings[name].wall.append(wall)
            yield


def _measure(code: str, function: str, bytecode: Path, url: str) -> tuple[float, float]:
    paths = [ROOT / "layers" / "epochal" / "python", *([ROOT / "lambdas" / function] if function else [])]
    environment = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": os.pathsep.join(map(str, paths)),
        "PYTHONPYCACHEPREFIX": str(bytecode),
        "AWS_DEFAULT_REGION": "eu-central-1",
        "AWS_ENDPOINT_URL": url,
        variable("reaction"): "r",
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        **{variable(f"{table}_table"): table for table in TABLES},
    }
    done = subprocess.run(
        [sys.executable, "-c", _TIMED, code], env=environment, capture_output=True, text=True, check=True
    )
    cpu, wall = done.stdout.split()
    return float(cpu), float(wall)


if __name__ == "__main__":
    main()
