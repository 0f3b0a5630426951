"""Commands for the embedded AWS: start it with Epochal deployed, stop it, see whether it runs."""

from __future__ import annotations

from typing import Any

import click

from epochal.cli import output
from epochal.local import deploy, ministack
from epochal.local.deploy import Deployment
from epochal.local.endpoint import KEY, REGION, SECRET
from epochal.local.errors import NotRunning
from epochal.local.places import here
from epochal.local.processes import Server


@click.group()
def local() -> None:
    """Epochal on this machine: the real stacks, on an embedded AWS."""


@local.command()
@click.option(
    "--port",
    type=click.IntRange(1, 65535),
    default=ministack.DEFAULT_PORT,
    show_default=True,
    help="Where it listens.",
)
@click.option("--authorise/--no-authorise", default=True, show_default=True, help="Enforce IAM, as AWS does.")
@output.json_option
def up(port: int, authorise: bool, as_json: bool) -> None:
    """Start the embedded AWS and deploy this checkout to it.

    Run it again to deploy what has changed.
    """
    places = here()
    with output.progress("starting") as tell:
        server = ministack.up(places, port=port, authorise=authorise, tell=tell)
        deployment = deploy.deploy(places, server, tell=tell)
    _print(server, deployment, as_json=as_json)


@local.command()
@output.json_option
def down(as_json: bool) -> None:
    """Stop the embedded AWS. Everything in it is gone."""
    ran = ministack.down(here())
    output.document({"stopped": ran}, ["stopped" if ran else "was not running"], as_json=as_json)


@local.command()
@output.json_option
def status(as_json: bool) -> None:
    """Print where the embedded AWS is and what is deployed to it."""
    places = here()
    server = ministack.status(places)
    try:
        deployment = None if server is None else deploy.current(places)
    except NotRunning:
        deployment = None
    _print(server, deployment, as_json=as_json)


def _print(server: Server | None, deployment: Deployment | None, *, as_json: bool) -> None:
    view: dict[str, Any] = {"running": server is not None, "deployed": deployment is not None}
    if server is not None:
        view |= {"endpoint": server.url, "region": REGION, "key": KEY, "secret": SECRET, "pid": server.pid}
    if deployment is not None:
        view |= {
            "api": deployment.api_url,
            "tipsTable": deployment.tips_table,
            "indexTable": deployment.index_table,
            "bucket": deployment.bucket,
        }
    output.document(
        view, output.table([(name, _word(value)) for name, value in view.items()]), as_json=as_json
    )


def _word(value: object) -> str:
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)
