"""One embedded AWS for the processes of a test run: the first to ask deploys, the last to leave stops it.

What `epochal local up` has deployed for the project is used as it is, and left running.
"""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from epochal.local import deploy, ministack, processes
from epochal.local.deploy import LocalDeployment
from epochal.local.places import Places


@contextmanager
def shared(places: Places, folder: Path, *, app: str | None = None) -> Iterator[LocalDeployment]:
    """What is deployed of a project, or a deployment of this block's own; processes with one `folder` share it.

    Raises what `ministack.up` and `deploy.deploy` raise.
    """
    running = deploy.current_if_any(places)
    if running is not None:
        yield running
        return
    folder.mkdir(parents=True, exist_ok=True)
    own = Places(places.root, apart=folder)
    with (folder / "users").open("w") as users:
        try:
            with _alone(folder):
                # Held for as long as this process uses it, and let go however the process ends.
                fcntl.flock(users, fcntl.LOCK_SH)
                found = deploy.current_if_any(own) or _deployed(own, app)
            yield found
        finally:
            with _alone(folder):
                fcntl.flock(users, fcntl.LOCK_UN)
                if _is_last(users.fileno()):
                    ministack.down(own)


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Nobody else comes or leaves meanwhile."""
    with (folder / "door").open("w") as door:
        fcntl.flock(door, fcntl.LOCK_EX)
        yield


def _is_last(users: int) -> bool:
    try:
        fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _deployed(places: Places, app: str | None) -> LocalDeployment:
    server = ministack.up(places, port=processes.free_port())
    return deploy.deploy(places, server, app=app)
