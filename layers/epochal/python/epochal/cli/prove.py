"""`prove`: Epochal's promises, tried on a deployed stage in one's own account."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

import click

from epochal.cli import inputs, output
from epochal.cli.target import OpenedStore, on_store
from epochal.dynamo.clients import credentials
from epochal.errors import EpochalError, InvalidInput
from epochal.http.operation import operations
from epochal.proving.account import ACCOUNT
from epochal.proving.proof import (
    AWS,
    DeployedStack,
    ProofReport,
    ProofRun,
    Result,
    SignedHttp,
    Trial,
    stacks_of,
)
from epochal.proving.proof import (
    prove as tried,
)
from epochal.proving.store import quarantine, store_checks

GATEWAY = "ApiUrl"
"""The output that tells where the gateway is. Without one there may be `AppendUrl` and its like."""


class NotKept(EpochalError):
    """A promise does not hold on this stage; `checks` names those that failed."""

    def __init__(self, checks: Sequence[str]) -> None:
        super().__init__(f"not everything holds: {', '.join(checks)}")
        self.checks = checks


@click.command()
@click.option(
    "--api", default="", envvar="EPOCHAL_API_URL", help="The HTTP API, where no stack tells its URL."
)
@click.option("--token", default="", envvar="EPOCHAL_TOKEN", help="A token, where the API wants one.")
@click.option("--also", multiple=True, metavar="STACK", help="A further stack of the stage; may be repeated.")
@click.option(
    "--only", multiple=True, metavar="WORD", help="Only checks with this in their names; may be repeated."
)
@click.option("--skip", multiple=True, metavar="WORD", help="Not those with this; may be repeated.")
@click.option("--report", metavar="PATH", help="Write the report to PATH.json, and as a page to PATH.md.")
@click.option("--strict", is_flag=True, help="Fail as well where something could not be proven.")
@inputs.YES
@on_store
def prove(
    store: OpenedStore,
    *,
    api: str,
    token: str,
    also: Sequence[str],
    only: Sequence[str],
    skip: Sequence[str],
    report: str | None,
    strict: bool,
    yes: bool,
) -> None:
    """Try on a deployed stage what Epochal promises.

    It takes up to ten minutes and a few cents. It writes events of a category of its own, and removes what can be
    removed. Reactions to all categories are given them too.
    """
    index = store.deployment.settings.index_table
    stacks = stacks_of(store.client("cloudformation"), index, also)
    proof = ProofRun(
        store=store.deployment,
        client=store.client,
        stacks=stacks,
        http=_http(store, stacks, api, token),
        marker=secrets.token_hex(4),
        starts={each.partition: each.tail for each in store.feed.partitions()},
    )
    checks = _chosen([*store_checks(proof), *ACCOUNT, quarantine], only, skip)
    price = _price(index, checks)
    inputs.confirm(f"{price}. Go on?", yes=yes)
    if yes:
        click.echo(price, err=True)
    began = datetime.now(UTC).isoformat(timespec="seconds")
    with output.progress("proving") as tell:
        tell(checks[0].name)
        results = tried(proof, checks, _tell)
    done = ProofReport(
        stage=index,
        version=version("epochal"),
        began=began,
        marker=proof.marker,
        results=results,
        used=proof.used,
        left=proof.left,
    )
    if report:
        _keep(done, report)
    _print(done)
    bad = ("failed", "not proven") if strict else ("failed",)
    if failed := [each.check.name for each in results if each.verdict in bad]:
        raise NotKept(failed)


def _price(index: str, checks: Sequence[Trial]) -> str:
    cents = 100 * sum(check.dollars for check in checks)
    many = f"{len(checks)} check{'s' if len(checks) > 1 else ''}"
    alarm = ", and the alarm feed-set-aside goes off" if quarantine in checks else ""
    reactions = f"reactions to all categories get the events{alarm}"
    return f"{many} on {index}: ten minutes and {cents:.1f} cents at most; {reactions}"


def _chosen(checks: Sequence[Trial], only: Sequence[str], skip: Sequence[str]) -> list[Trial]:
    def has(check: Trial, words: Sequence[str]) -> bool:
        return any(word in check.name for word in words)

    chosen = [each for each in checks if (not only or has(each, only)) and not has(each, skip)]
    if not chosen:
        names = ", ".join(check.name for check in checks)
        raise InvalidInput("--only", f"leaves nothing to prove; there are {names}")
    return chosen


def _http(store: OpenedStore, stacks: Sequence[DeployedStack], api: str, token: str) -> SignedHttp | None:
    meta = store.client("cloudformation").meta
    # What the stacks of a stand-in tell would be asked of AWS, with whatever credentials there are.
    telling = stacks if AWS in meta.endpoint_url else ()
    outputs = {name: url for stack in telling for name, url in stack.outputs.items() if name.endswith("Url")}
    gateway = api or outputs.get(GATEWAY, "")
    if not gateway and "AppendUrl" not in outputs:
        return None

    def base(method: str, path: str) -> str:
        if gateway:
            return gateway.rstrip("/")
        place = path.partition("?")[0]
        serving = (
            each for each in operations() if each.method == method and each.parameters(place) is not None
        )
        return outputs[f"{next(serving).function.capitalize()}Url"].rstrip("/")

    service = "execute-api" if gateway else "lambda"
    return SignedHttp(
        base=base, service=service, region=meta.region_name, credentials=credentials, token=token
    )


def _tell(result: Result) -> None:
    if not output.as_json():
        click.echo(f"{result.verdict:<10}  {result.check.name}  {result.detail}")


def _keep(report: ProofReport, path: str) -> None:
    try:
        Path(f"{path}.json").write_bytes(report.json() + b"\n")
        Path(f"{path}.md").write_text(report.page(), "utf-8")
    except OSError as error:
        raise InvalidInput("--report", f"cannot be written: {error}") from error


def _print(report: ProofReport) -> None:
    lines = (
        *(f"left        {each}" for each in report.left),
        f"{100 * report.dollars:.2f} cents were metered",
    )
    output.document(report.view(), lines)
