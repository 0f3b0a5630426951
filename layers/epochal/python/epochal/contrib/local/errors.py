"""What can go wrong on a developer's machine, each with what to do about it.

LocalError
├── NoApplication (FileNotFoundError)    there is no CDK application here to deploy
├── ProgramMissing (FileNotFoundError)   a program is not there or too old; says how to get it
├── DownloadCorrupt (ValueError)         what was fetched is not what the repository pins
├── PortTaken (OSError)                  the port asked for is in use
├── ServerFailed (RuntimeError)          a server ended or stayed silent while starting; carries its log's end
├── NotRunning (ConnectionError)         the embedded AWS is not up
├── PortKept (ValueError)                what was kept goes on at its own port only
├── KeptLost (RuntimeError)              the embedded AWS did not save all that was to be kept
├── KeptUnreadable (RuntimeError)        the embedded AWS started without what was kept
├── AccountRefused (ValueError)          a stack is to go to an account that is none
├── LookupNeeded (LookupError)           an application looks something up in an account that is not here
├── OutputMissing (LookupError)          no stack has an output by which a store is known
├── StoreUnclear (LookupError)           several stores are deployed, or none of this name
├── TooManyFiles (ValueError)           a folder that is to be watched holds more than a project does
├── SystemUnsupported (OSError)          the embedded AWS does not run on this operating system
└── CommandFailed (RuntimeError)         npm or cdk ended with an error; carries why, or its output's end
"""

from __future__ import annotations

from collections.abc import Sequence

from epochal.errors import EpochalError


class LocalError(EpochalError):
    """The root of this room's errors: the machine's set-up is at fault, not the data."""


class NoApplication(LocalError, FileNotFoundError):
    """Neither `directory` nor the library itself is in the folder of a CDK application."""

    def __init__(self, directory: str) -> None:
        super().__init__(
            f"{directory}: there is no cdk.json here or above. Go to your project, or name its application: "
            "epochal local up --app 'python app.py'"
        )


class ProgramMissing(LocalError, FileNotFoundError):
    """`program` is not on PATH, or only in a version that is too old; `how` gets it."""

    def __init__(self, program: str, found: str, how: str) -> None:
        super().__init__(f"{program}: {found}. To get it: {how}")
        self.program = program
        self.how = how


class DownloadCorrupt(LocalError, ValueError):
    """The file that was fetched does not have the pinned digest; it was not unpacked."""

    def __init__(self, name: str, expected: str, actual: str) -> None:
        super().__init__(
            f"{name}: SHA-256 is {actual}, the repository pins {expected}. Nothing was unpacked; "
            "fetch it again, and if it differs again, suspect the registry or a proxy in between"
        )
        self.expected = expected
        self.actual = actual


class PortTaken(LocalError, OSError):
    """Another program listens on `port`."""

    def __init__(self, port: int) -> None:
        super().__init__(f"port {port} is taken: stop what listens there, or choose another port")
        self.port = port


class ServerFailed(LocalError, RuntimeError):
    """`server` did not become ready; `log_end` is the last it wrote."""

    def __init__(self, server: str, reason: str, log_end: str) -> None:
        super().__init__(f"{server} {reason}" + (f"; it last wrote:\n{log_end}" if log_end else ""))
        self.server = server
        self.log_end = log_end


class SystemUnsupported(LocalError, OSError):
    """The embedded AWS does not run on this operating system."""

    def __init__(self, system: str) -> None:
        super().__init__(
            f"the embedded AWS needs Linux or macOS, and this is {system}: run it in WSL, "
            "or test with the stores in memory (epochal.testing)"
        )


class NotRunning(LocalError, ConnectionError):
    """The embedded AWS is not up, or nothing has been deployed to it."""


class PortKept(LocalError, ValueError):
    """Another port is asked for than that of what was kept."""

    def __init__(self, port: int) -> None:
        super().__init__(f"what was kept goes on at port {port} only: leave out --port")
        self.port = port


class KeptLost(LocalError, RuntimeError):
    """The embedded AWS ended without saving these `services`."""

    def __init__(self, services: Sequence[str]) -> None:
        super().__init__(
            f"the embedded AWS stopped, and did not save {', '.join(services)}: nothing is kept, the next one is empty"
        )


class KeptUnreadable(LocalError, RuntimeError):
    """The embedded AWS started without all that was kept in `directory`."""

    def __init__(self, directory: str) -> None:
        super().__init__(
            f"the embedded AWS started without all that was kept, and was stopped: "
            f"another version of ministack kept them? Take that one, or begin empty: rm -r {directory}"
        )


class AccountRefused(LocalError, ValueError):
    """The `env` of `stack` names an account that is none."""

    def __init__(self, stack: str, account: str) -> None:
        super().__init__(f"stack {stack}: the account of its env must have twelve digits, not be {account!r}")
        self.stack = stack


class LookupNeeded(LocalError, LookupError):
    """While it is synthesised, the application looks up `key` in the account of `stacks`."""

    def __init__(self, stacks: Sequence[str], key: str) -> None:
        super().__init__(
            f"stack {' or '.join(stacks) or 'unknown'}: it looks up {key}, which the embedded AWS cannot tell. "
            "Run `cdk synth` once with credentials of that account, and commit cdk.context.json"
        )
        self.stacks = tuple(stacks)
        self.key = key


class OutputMissing(LocalError, LookupError):
    """No stack has the output `name`."""

    def __init__(self, name: str) -> None:
        super().__init__(f"the deployment has no output {name}: were stacks left out?")
        self.name = name


class StoreUnclear(LocalError, LookupError):
    """One store is asked for, and those that are deployed are `stores`."""

    def __init__(self, stores: Sequence[str], name: str | None = None) -> None:
        asked = f"no store is called {name}" if name else "it is not clear which store is meant"
        super().__init__(f"{asked}: name one of {', '.join(stores)}, as `epochal local env --store` does")
        self.stores = tuple(stores)


class TooManyFiles(LocalError, ValueError):
    """There are more than `most` files in `folder`, which is to be watched."""

    def __init__(self, folder: str, most: int) -> None:
        super().__init__(f"{folder} holds more than {most:,} files: watch the folder of a project")


class CommandFailed(LocalError, RuntimeError):
    """`command` ended with `status`; `output_end` is the last it wrote. Of resources that CloudFormation refused the
    message has the `reasons` alone.
    """

    def __init__(self, command: str, status: int, output_end: str, reasons: Sequence[str] = ()) -> None:
        why = ":\n" + "\n".join(reasons) if reasons else f"; it last wrote:\n{output_end}"
        super().__init__(f"`{command}` ended with status {status}{why}")
        self.status = status
        self.output_end = output_end
        self.reasons = tuple(reasons)
