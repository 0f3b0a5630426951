"""What checks share, how they are run, and the report of what they saw.

    passed        the claim was tried, and held
    failed        it was tried, and did not hold: the detail says what was seen instead
    not proven    it could not be tried, which is no pass: the detail says why

A check raises `Broken` or `Unproven`, and otherwise answers in words what it saw. What it has made is removed at the
end, also where the proof was interrupted; what cannot be removed is in the report.
"""

from __future__ import annotations

import itertools
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any, Final, Literal

from epochal.codec import json
from epochal.deployment import Deployment
from epochal.errors import EpochalError, InvalidRequest, Refused
from epochal.index.checkpoints import Checkpoint
from epochal.proving.signed_http import Answer
from epochal.proving.stacks import DeployedStack

CATEGORY: Final = "EpochalProof"

SECONDS: Final = 600.0
"""What begins later than this is not proven."""

PRICES: Final[Mapping[str, float]] = {
    "write units": 0.625e-6,
    "read units": 0.125e-6,
    "requests of the API": 3e-6,  # gateway, invocation, and a tenth of a second of a gigabyte
    "uploads": 5e-6,
    "metrics": 1e-5,
    "seconds of functions": 1.7e-5,
}
"""Dollars in us-east-1. What the feed's functions do with the events is in the bound of a check alone."""

_NOT_OFFERED: Final = frozenset(
    {
        "InvalidAction",
        "NotImplemented",
        "UnknownOperation",
        "UnknownOperationException",
        "UnsupportedOperation",
    }
)

Verdict = Literal["passed", "failed", "not proven"]


class Broken(Exception):
    """A claim does not hold: what was seen instead."""


class Unproven(Exception):
    """A claim could not be tried: why."""


@dataclass(slots=True, kw_only=True)
class ProofRun:
    """A stage, and what a proof of it has done so far.

    Attributes:
        store: its tables and bucket; all requests go through its driver's meter.
        client: of another service of AWS.
        http: sends requests as `SignedHttp` does; None where no API is known.
        marker: in the name of all that is written.
        starts: where each partition of the feed ended when the proof began.
        written: numbers of the events that were acknowledged, in their order, by the stream in the feed.
        removals: what removes that again; each answers what it had to leave.
        used: by the names of `PRICES`.
    """

    store: Deployment
    client: Callable[[str], Any]
    stacks: Sequence[DeployedStack]
    http: Callable[..., Answer] | None
    marker: str
    starts: Mapping[int, Checkpoint] = field(default_factory=dict)
    written: dict[str, list[int]] = field(default_factory=dict)
    removals: list[Callable[[], str]] = field(default_factory=list)
    left: list[str] = field(default_factory=list)
    used: Counter[str] = field(default_factory=Counter)
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], object] = time.sleep
    _numbers: Iterator[int] = field(default_factory=itertools.count)

    def name(self, what: str) -> str:
        """A stream of this proof."""
        return f"{CATEGORY}-{self.marker}-{what}"

    def numbers(self, count: int) -> list[int]:
        """Of events that nobody has written yet."""
        return list(itertools.islice(self._numbers, count))

    def call(self, method: str, path: str, body: object = None, **more: Any) -> Answer:
        """A request to the API; one that goes to a URL is an upload."""
        if self.http is None:
            raise Unproven("no API is known: --api names it")
        answer = self.http(method, path, body, **more)
        self.used["uploads" if "://" in path else "requests of the API"] += 1
        return answer

    def until(self, done: Callable[[], bool], seconds: float, *, every: float = 0.5) -> bool:
        """Wait for something; False where it has not come to pass in so many seconds."""
        ends = self.clock() + seconds
        while not done():
            if self.clock() >= ends:
                return False
            self.sleep(every)
        return True

    def remove(self) -> None:
        """Remove what was written, and note what is left."""
        while self.removals:
            removal = self.removals.pop()
            try:
                self.left.append(removal())
            except EpochalError as error:
                self.left.append(f"not removed: {error}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """A claim, and how it is tried.

    Attributes:
        dollars: what trying it costs at most.
        tried: answers what was seen; raises `Broken` or `Unproven`.
    """

    name: str
    claim: str
    dollars: float
    tried: Callable[[ProofRun], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What came of a check."""

    check: Trial
    verdict: Verdict
    detail: str
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ProofReport:
    """What a proof saw."""

    stage: str
    version: str
    began: str
    marker: str
    results: Sequence[Result]
    used: Mapping[str, float]
    left: Sequence[str]

    @property
    def failed(self) -> bool:
        """Whether any claim did not hold."""
        return any(each.verdict == "failed" for each in self.results)

    @property
    def dollars(self) -> float:
        """What was metered, at the prices of us-east-1."""
        return sum(PRICES[name] * count for name, count in self.used.items())

    def view(self) -> dict[str, Any]:
        """As JSON has it."""
        return {
            "stage": self.stage,
            "epochal": self.version,
            "began": self.began,
            "marker": self.marker,
            "failed": self.failed,
            "checks": [
                {
                    "name": each.check.name,
                    "claim": each.check.claim,
                    "verdict": each.verdict,
                    "detail": each.detail,
                    "seconds": round(each.seconds, 1),
                }
                for each in self.results
            ],
            "used": {name: round(count, 1) for name, count in self.used.items()},
            "dollars": round(self.dollars, 4),
            "left": [*self.left],
        }

    def page(self) -> str:
        """As a page of Markdown, which loads nothing from elsewhere."""
        counts = Counter(each.verdict for each in self.results)
        counted = ", ".join(f"{count} {verdict}" for verdict, count in sorted(counts.items()))
        used = ", ".join(f"{count:,.0f} {name}" for name, count in self.used.items())
        rows = [
            f"| {each.verdict} | {escape(each.check.claim)} | {_cell(each.detail)} | {each.seconds:.1f} |"
            for each in self.results
        ]
        return "\n".join(
            (
                f"# Proof of {self.stage}",
                "",
                f"Epochal {self.version}, {self.began}, marker `{self.marker}`: {counted}.",
                "",
                "| verdict | claim | what was seen | seconds |",
                "|---|---|---|---|",
                *rows,
                "",
                f"Metered, without the feed's functions: {used}; {self.dollars:.4f} dollars in us-east-1.",
                "",
                "What stays:",
                "",
                *(f"- {escape(each)}" for each in self.left),
                "",
            )
        )

    def json(self) -> bytes:
        """The same for programs."""
        return json.dumps(self.view())


def prove(proof: ProofRun, checks: Sequence[Trial], tell: Callable[[Result], object]) -> list[Result]:
    """Try each check, and remove what they wrote. Interrupted, it removes all the same."""
    ends = proof.clock() + SECONDS
    results = list[Result]()
    try:
        for check in checks:
            results.append(_result(proof, check, ends))
            tell(results[-1])
    finally:
        proof.remove()
        units = proof.store.driver.meter.units
        proof.used.update({"write units": round(units.write), "read units": round(units.read)})
    return results


def _result(proof: ProofRun, check: Trial, ends: float) -> Result:
    began = proof.clock()
    verdict: Verdict
    if began >= ends:
        late = f"{SECONDS / 60:.0f} minutes were over before it began"
        return Result(check=check, verdict="not proven", detail=late, seconds=0.0)
    try:
        verdict, detail = "passed", check.tried(proof)
    except Broken as broken:
        verdict, detail = "failed", str(broken)
    except Unproven as unproven:
        verdict, detail = "not proven", str(unproven)
    except Refused as refused:
        verdict, detail = "not proven", f"these credentials may not: {refused}"
    except InvalidRequest as error:
        offered = error.code not in _NOT_OFFERED
        verdict, detail = ("failed", str(error)) if offered else ("not proven", f"not offered here: {error}")
    except EpochalError as error:
        verdict, detail = "failed", f"{type(error).__name__}: {error}"
    return Result(check=check, verdict=verdict, detail=detail, seconds=proof.clock() - began)


def _cell(text: str) -> str:
    return escape(" ".join(text.split())).replace("|", "\\|")
