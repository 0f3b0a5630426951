"""Commands for the embedded AWS: start it with Epochal deployed, stop it, see whether it runs."""

from __future__ import annotations

from typing import Any

import click

from epochal.care.catch_up import Mender
from epochal.care.repair import Repairer
from epochal.care.verify import Verifier
from epochal.cli import index_views, output
from epochal.cli.index import sources_of
from epochal.cli.target import Choice, open_store, tables_of
from epochal.layout.registry import declared
from epochal.local import deploy, keeping, ministack
from epochal.local.deploy import LocalDeployment
from epochal.local.endpoint import KEY, REGION, SECRET
from epochal.local.errors import NotRunning
from epochal.local.places import Places, here
from epochal.local.processes import Server, Tell
from epochal.settings import Settings


@click.group()
def local() -> None:
    """Epochal on this machine: the real stacks, on an embedded AWS."""


@local.command()
@click.option(
    "--port",
    type=click.IntRange(1, 65535),
    help=f"Where it listens.  [default: {ministack.DEFAULT_PORT}, or that of what was kept]",
)
@click.option("--authorise/--no-authorise", default=True, show_default=True, help="Enforce IAM, as AWS does.")
@output.json_option
def up(port: int | None, authorise: bool, as_json: bool) -> None:
    """Start the embedded AWS and deploy this checkout to it.

    Run it again to deploy what has changed. What `down --keep` kept goes on.
    """
    places = here()
    with output.progress("starting") as tell:
        server = ministack.up(places, port=port, authorise=authorise, tell=tell)
        deployment = deploy.deploy(places, server, tell=tell)
        if keeping.repair_is_due(places):
            _repair(tell)
            keeping.repaired(places)
    _print(server, deployment, as_json=as_json)


@local.command()
@click.option("--keep", is_flag=True, help="Keep what is in it: the next `up` goes on with it.")
@output.json_option
def down(keep: bool, as_json: bool) -> None:
    """Stop the embedded AWS. Everything in it is gone, unless it is told to keep it."""
    places = here()
    with output.progress("stopping") as tell:
        if keep and _deployed(places):
            _repair(tell)
        ran = ministack.down(places, keep=keep)
    kept = keeping.found(places) is not None
    line = f"{'stopped' if ran else 'was not running'}{'; kept for the next `up`' if kept else ''}"
    output.document({"stopped": ran, "kept": kept}, [line], as_json=as_json)


@local.command()
@output.json_option
def status(as_json: bool) -> None:
    """Print where the embedded AWS is and what is deployed to it."""
    places = here()
    _print(ministack.status(places), _deployed(places), as_json=as_json)


def _deployed(places: Places) -> LocalDeployment | None:
    try:
        return deploy.current(places)
    except NotRunning:
        return None


def _repair(tell: Tell) -> None:
    """Index what no mapping will: what changes before a stop, and is read by none until then, is in no stream after.

    Before a stop it also leaves the indexer nothing to write while everything is saved.
    """
    tell("repairing the index")
    store = open_store(Choice(settings=Settings()))
    mender = Mender(driver=store.feed.driver, index_table=store.feed.table)
    for each in Repairer(Verifier(mender=mender, sources=sources_of(store, ()), settle=0)).repair():
        tell(index_views.repaired_line(each))


def _print(server: Server | None, deployment: LocalDeployment | None, *, as_json: bool) -> None:
    view: dict[str, Any] = {"running": server is not None, "deployed": deployment is not None}
    if server is not None:
        view |= {"endpoint": server.url, "region": REGION, "key": KEY, "secret": SECRET, "pid": server.pid}
    if deployment is not None:
        view |= {
            "api": deployment.api_url,
            **{
                _key(declared()[name].output): table for name, table in tables_of(deployment.settings).items()
            },
            "bucket": deployment.settings.bucket,
        }
    output.document(
        view, output.table([(name, _word(value)) for name, value in view.items()]), as_json=as_json
    )


def _key(output: str) -> str:
    return output[:1].lower() + output[1:]


def _word(value: object) -> str:
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)
