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
from html import escape
from typing import Any, Final, Literal

from epochal.care.prices import PRICES
from epochal.codec import json
from epochal.contrib.proving.deployed_stacks import DeployedStack
from epochal.contrib.proving.signed_http import Answer
from epochal.deployment import Deployment
from epochal.errors import EpochalError, InvalidRequest, Refused
from epochal.index.checkpoints import Checkpoint
from epochal.lazy_dataclasses import dataclass, field

CATEGORY: Final = "EpochalProof"

SECONDS: Final = 600.0
"""Seconds of a proof: a check that would begin later than this is not proven."""

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
    """Error of a check whose claim does not hold; its text says what was seen instead."""


class Unproven(Exception):
    """Error of a check that could not try its claim; its text says why."""


@dataclass(slots=True, kw_only=True)
class ProofRun:
    """A deployed stage that is being proven, and what the proof has written, used and left.

    Attributes:
        store: the stage as a deployment; all requests go through its driver's meter.
        client: function that makes a client of another service of AWS by name.
        stacks: the stacks of the stage; empty where none is known.
        http: function that sends requests as `SignedHttp` does; None where no API is known.
        marker: text in the name of everything that the proof writes.
        starts: checkpoint of the end of each feed partition when the proof began.
        written: numbers of the acknowledged events, in order, by the name of their stream in the feed.
        removals: functions that remove what was written; each returns in words what it had to leave.
        left: what stays after the removals, in words.
        used: metered amounts, by the names of `PRICES`.
        sql: SQLAlchemy's URL of a database whose read models are tried; empty for none.
        updates: whether stacks may be updated, and changed back.
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
    sql: str = ""
    updates: bool = False
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], object] = time.sleep
    _numbers: Iterator[int] = field(default_factory=itertools.count)

    def name(self, what: str) -> str:
        """Return the name of a stream of this proof."""
        return f"{CATEGORY}-{self.marker}-{what}"

    def numbers(self, count: int) -> list[int]:
        """Return `count` numbers for new events, which no event of this proof has yet."""
        return list(itertools.islice(self._numbers, count))

    def call(self, method: str, path: str, body: object = None, **more: Any) -> Answer:
        """Send a request to the API, or an upload to a URL; count it in `used`, and return the response.

        Raises:
            Unproven: no API is known.
        """
        if self.http is None:
            raise Unproven("no HTTP API is known: pass its URL with --api")
        answer = self.http(method, path, body, **more)
        self.used["uploads" if "://" in path else "requests of the API"] += 1
        return answer

    def until(self, done: Callable[[], bool], seconds: float, *, every: float = 0.5) -> bool:
        """Poll `done` until it returns True; return False if it does not within `seconds`."""
        ends = self.clock() + seconds
        while not done():
            if self.clock() >= ends:
                return False
            self.sleep(every)
        return True

    def remove(self) -> None:
        """Remove everything that was written, and note in `left` what stays."""
        while self.removals:
            removal = self.removals.pop()
            try:
                self.left.append(removal())
            except EpochalError as error:
                self.left.append(f"not removed: {error}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """A check: a claim, and the function that tries it on a stage.

    Attributes:
        name: name of the check, for `--only` and the report.
        claim: the claim in words.
        dollars: highest cost of trying it, in US dollars.
        tried: function that tries the claim and returns in words what was seen; raises `Broken` or `Unproven`.
    """

    name: str
    claim: str
    dollars: float
    tried: Callable[[ProofRun], str]

    def __call__(self, proof: ProofRun) -> str:
        """Try the claim on a stage and return in words what was seen.

        Raises:
            Broken: the claim does not hold.
            Unproven: the claim could not be tried.
        """
        return self.tried(proof)


def trial(claim: str, dollars: float = 0.0) -> Callable[[Callable[[ProofRun], str]], Trial]:
    """Make a decorator that turns a function which tries a claim into a `Trial` of its name."""
    return lambda tried: Trial(
        name=tried.__name__.replace("_", "-"), claim=claim, dollars=dollars, tried=tried
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """Result of a check: its verdict, the detail in words, and the seconds that it took."""

    check: Trial
    verdict: Verdict
    detail: str
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ProofReport:
    """Report of a proof: the results of its checks, the metered usage, and what stays."""

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
        return any(result.verdict == "failed" for result in self.results)

    @property
    def dollars(self) -> float:
        """Cost of the metered usage in US dollars, at the prices of us-east-1."""
        return sum(PRICES[name] * count for name, count in self.used.items())

    def view(self) -> dict[str, Any]:
        """Return the report as a dictionary for JSON."""
        return {
            "stage": self.stage,
            "epochal": self.version,
            "began": self.began,
            "marker": self.marker,
            "failed": self.failed,
            "checks": [
                {
                    "name": result.check.name,
                    "claim": result.check.claim,
                    "verdict": result.verdict,
                    "detail": result.detail,
                    "seconds": round(result.seconds, 1),
                }
                for result in self.results
            ],
            "used": {name: round(count, 1) for name, count in self.used.items()},
            "dollars": round(self.dollars, 4),
            "left": [*self.left],
        }

    def page(self) -> str:
        """Render the report as a page of Markdown, which loads nothing from elsewhere."""
        counts = Counter(result.verdict for result in self.results)
        counted = ", ".join(f"{count} {verdict}" for verdict, count in sorted(counts.items()))
        used = ", ".join(f"{count:,.0f} {name}" for name, count in self.used.items())
        rows = [
            f"| {result.verdict} | {escape(result.check.claim)} | {_cell(result.detail)} | {result.seconds:.1f} |"
            for result in self.results
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
                "Left behind:",
                "",
                *(f"- {escape(leftover)}" for leftover in self.left),
                "",
            )
        )

    def json(self) -> bytes:
        """Return the report as JSON."""
        return json.dumps(self.view())


def prove(proof: ProofRun, checks: Sequence[Trial], tell: Callable[[Result], object]) -> list[Result]:
    """Run the checks in their order, remove what they wrote, and return their results.

    An interrupted run removes it as well. `tell` gets each result. A check that would begin more than `SECONDS` after
    the first is not proven.
    """
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
    """Run a check and return its result: an error becomes a verdict, and a late check is not run."""
    began = proof.clock()
    verdict: Verdict
    if began >= ends:
        late = f"not started: the limit of {SECONDS / 60:.0f} minutes was reached"
        return Result(check=check, verdict="not proven", detail=late, seconds=0.0)
    try:
        verdict, detail = "passed", check(proof)
    except Broken as broken:
        verdict, detail = "failed", str(broken)
    except Unproven as unproven:
        verdict, detail = "not proven", str(unproven)
    except Refused as refused:
        verdict, detail = "not proven", f"these credentials lack a permission: {refused}"
    except InvalidRequest as error:
        offered = error.code not in _NOT_OFFERED
        verdict, detail = (
            ("failed", str(error)) if offered else ("not proven", f"not supported here: {error}")
        )
    except EpochalError as error:
        verdict, detail = "failed", f"{type(error).__name__}: {error}"
    return Result(check=check, verdict=verdict, detail=detail, seconds=proof.clock() - began)


def _cell(text: str) -> str:
    return escape(" ".join(text.split())).replace("|", "\\|")
