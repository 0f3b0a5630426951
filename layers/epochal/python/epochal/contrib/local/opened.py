"""Stores on the embedded AWS, opened for commands."""

from __future__ import annotations

from epochal.cli.inputs import NoStore
from epochal.cli.target import OpenedStore, opened_in
from epochal.contrib.local import deploy
from epochal.contrib.local.deploy import LocalStore
from epochal.contrib.local.errors import LocalError
from epochal.contrib.local.programs import here
from epochal.dynamo.interpreter import interpreter, open_deployment
from epochal.store.driver import SIDE_BY_SIDE


def open_deployed() -> OpenedStore:
    """Open the store that `epochal local up` deployed from this project; raise `NoStore` if it finds none.

    Raises:
        NoStore: no store is deployed, or it is not clear which.
    """
    try:
        store = deploy.current(here()).store()
    except LocalError as error:
        raise NoStore(str(error)) from error
    return open_local(store)


def open_local(store: LocalStore) -> OpenedStore:
    """Open a store on the embedded AWS for commands."""
    client = store.endpoint.client
    execute, s3 = interpreter(client("dynamodb")), client("s3")
    return opened_in(open_deployment(store.settings, execute=execute, s3=s3, at_once=SIDE_BY_SIDE), client)
