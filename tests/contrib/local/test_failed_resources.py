"""Of a deployment that CloudFormation refuses, the error has the reason of each failed resource, whole.

`outputs/refused_deployment.txt` is what `cdk deploy` wrote when a custom resource answered with a long reason.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from epochal.contrib.local import cdk
from epochal.contrib.local.errors import CommandFailed
from epochal.contrib.local.programs import Places
from tests.contrib.local.test_cdk import ENDPOINT, assembly, checkout, script

__all__ = ["checkout"]

RECORDED: Final = (Path(__file__).parent / "outputs" / "refused_deployment.txt").read_text()

REASON: Final = "\n".join(
    [
        "EPOCHAL_PAGES_PARTITIONS: must be 1, as recorded in the index; rebuild the index to change it.",
        "These groups stand in it:",
        *(f"  group-{number} at 0@{number}" for number in range(45)),
    ]
)


def refusal(places: Places, folder: Path, output: str) -> CommandFailed:
    """What `cdk deploy` is raised as that writes this and fails."""
    (folder / "lines").write_text(output)
    script(folder, f"cat '{folder}/lines'; exit 1")
    with pytest.raises(CommandFailed) as caught:
        cdk.deploy(places, ENDPOINT, assembly(folder))
    return caught.value


def event(stack: str, status: str, resource: str, reason: str = "") -> str:
    return f"{stack} |   5 | 8:22:36 AM | {status:<23} | AWS::SQS::Queue | {resource} {reason}\n"


def test_the_reason_of_a_refused_resource_is_whole_and_all_that_the_error_says(
    checkout: Places, tmp_path: Path
) -> None:
    assert str(refusal(checkout, tmp_path, RECORDED)) == (
        "`cdk deploy` exited with status 1:\n"
        f"Shop: CREATE_FAILED AWS::CloudFormation::CustomResource Refused/Default (Refused) {REASON}"
    )


def test_every_resource_that_failed_is_named_but_those_that_were_cancelled(
    checkout: Places, tmp_path: Path
) -> None:
    output = (
        event("Shop", "UPDATE_FAILED", "A (A1)", "no such key\n\nask its owner")
        + event("Shop", "CREATE_FAILED", "C (C1)", "Resource creation cancelled")
        + event("Shop", "UPDATE_FAILED", "D (D1)", "Resource update cancelled")
        + event("Shop", "CREATE_FAILED", "B (B1)", "too many queues")
        + event("Shop", "UPDATE_ROLLBACK_COMPLETE", "Shop") * 50
    )
    assert str(refusal(checkout, tmp_path, output)).splitlines() == [
        "`cdk deploy` exited with status 1:",
        "Shop: UPDATE_FAILED AWS::SQS::Queue A (A1) no such key",
        "",
        "ask its owner",
        "Shop: CREATE_FAILED AWS::SQS::Queue B (B1) too many queues",
    ]


def test_resources_that_were_cancelled_are_named_where_no_other_failed(
    checkout: Places, tmp_path: Path
) -> None:
    output = event("Shop", "CREATE_FAILED", "C (C1)", "Resource creation cancelled")
    assert "C (C1) Resource creation cancelled" in str(refusal(checkout, tmp_path, output))


def test_a_failure_in_a_stack_that_was_deployed_is_no_reason_why_the_next_was_not(
    checkout: Places, tmp_path: Path
) -> None:
    output = event("Net", "DELETE_FAILED", "A (A1)", "in use") + "\n✅  Net\n\nno such bucket\n"
    error = refusal(checkout, tmp_path, output)
    assert str(error).startswith("`cdk deploy` exited with status 1; the end of its output:\n")
    assert str(error).endswith("no such bucket")


def test_a_reason_ends_where_the_summary_of_the_stack_begins(checkout: Places, tmp_path: Path) -> None:
    failure = event("Shop", "CREATE_FAILED", "A (A1)", "no such key\nask its owner")
    again = failure.replace(" |   5 |", " |")
    for summary in ("\nFailed resources:\n" + again, "❌  Shop failed to deploy\n‣ DeploymentError\n"):
        assert str(refusal(checkout, tmp_path, failure + summary)).splitlines()[1:] == [
            "Shop: CREATE_FAILED AWS::SQS::Queue A (A1) no such key",
            "ask its owner",
        ]
