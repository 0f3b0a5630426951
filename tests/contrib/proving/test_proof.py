"""How checks are run, what is removed, and the report."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace

import pytest

from epochal.contrib.proving.commands import ACCOUNT
from epochal.contrib.proving.proof import SECONDS, Broken, ProofReport, ProofRun, Trial, Unproven, prove
from epochal.contrib.proving.store import quarantine, store_checks
from epochal.errors import Unavailable
from tests.contrib.proving.stage import Stage


def check(tried: Callable[[ProofRun], str], name: str = "one") -> Trial:
    return Trial(name=name, claim=f"claim of {name}", dollars=0.0, tried=tried)


def raising(error: Exception) -> Callable[[ProofRun], str]:
    def tried(_: ProofRun) -> str:
        raise error

    return tried


def test_all_of_it_costs_less_than_ten_cents() -> None:
    checks = [*store_checks(Stage().proof()), *ACCOUNT, quarantine]
    assert sum(each.dollars for each in checks) < 0.10
    assert len({each.name for each in checks}) == len(checks)


@pytest.mark.parametrize(
    ("tried", "verdict", "detail"),
    [
        (lambda _: "seen", "passed", "seen"),
        (raising(Broken("another")), "failed", "another"),
        (raising(Unproven("no way")), "not proven", "no way"),
        (raising(Unavailable("out")), "failed", "Unavailable: "),
    ],
)
def test_a_check_passes_fails_or_proves_nothing(
    tried: Callable[[ProofRun], str], verdict: str, detail: str
) -> None:
    (result,) = prove(Stage().proof(), [check(tried)], print)
    assert result.verdict == verdict
    assert result.detail.startswith(detail)


def test_what_begins_after_ten_minutes_is_not_proven() -> None:
    stage = Stage()

    def long(_: ProofRun) -> str:
        stage.now += SECONDS
        return "long"

    found = prove(stage.proof(), [check(long), check(lambda _: "never")], print)
    assert [each.verdict for each in found] == ["passed", "not proven"]
    assert found[1].detail == "not started: the limit of 10 minutes was reached"


@pytest.mark.slow
def test_what_was_written_is_removed_and_what_cannot_be_is_told() -> None:
    proof = Stage().proof()
    prove(proof, [each for each in store_checks(proof) if each.name.startswith("appends")], print)
    pages, tips = proof.name("pages-library"), proof.name("tips-http")
    for stream, store in ((pages, proof.store.streams), (tips, proof.store.tips)):
        state = store.load(stream)
        assert state is not None
        assert state.deleted
        assert f"{stream}: a tombstone, and its entries in the index" in proof.left
    kept = "its events, which cannot be deleted, and their entries in the index"
    assert f"EpochalProof:m1-dcb-http: {kept}" in proof.left
    assert len(proof.left) == 10


def test_an_interrupted_proof_removes_what_it_has_written() -> None:
    proof = Stage().proof()
    removed = list[str]()

    def interrupted(of: ProofRun) -> str:
        of.removals += [lambda: removed.append("a") or "a is left", raising(Unavailable("out")).__get__(of)]
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        prove(proof, [check(interrupted)], print)
    assert removed == ["a"]
    assert proof.left[1] == "a is left"
    assert proof.left[0].startswith("not removed: ")


def test_the_report_says_what_was_seen_what_it_took_and_what_stays() -> None:
    proof = Stage().proof()
    checks = [
        check(lambda _: "a | b"),
        check(raising(Broken("<lost>")), "two"),
        check(raising(Unproven("why")), "three"),
    ]
    proof.left.append("a stone")
    results = prove(proof, checks, print)
    used = {"write units": 1_000_000}
    report = ProofReport(
        stage="index",
        version="0.1.0",
        began="now",
        marker="m1",
        results=results,
        used=used,
        left=proof.left,
    )
    assert (report.failed, report.dollars) == (True, 0.625)
    page = report.page()
    assert "1 failed, 1 not proven, 1 passed" in page
    assert "| passed | claim of one | a \\| b | 0.0 |" in page
    assert "| failed | claim of two | &lt;lost&gt; | 0.0 |" in page
    assert "1,000,000 write units; 0.6250 dollars" in page
    assert "- a stone" in page
    view = json.loads(report.json())
    assert [each["verdict"] for each in view["checks"]] == ["passed", "failed", "not proven"]
    assert (view["left"], view["failed"]) == (["a stone"], True)
    assert not replace(report, results=results[:1]).failed


def test_what_was_used_is_metered() -> None:
    proof = Stage().proof()
    prove(proof, [each for each in store_checks(proof) if each.name.startswith("appends: pages")], print)
    assert proof.used["write units"] > 20
    assert proof.used["requests of the API"] > 20
