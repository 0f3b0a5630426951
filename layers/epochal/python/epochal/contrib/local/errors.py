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
    """Base of the errors whose cause is the set-up of the machine, and not the data."""


class NoApplication(LocalError, FileNotFoundError):
    """Neither `directory` nor the library's own folder is in the folder of a CDK application."""

    def __init__(self, directory: str) -> None:
        super().__init__(
            f"{directory}: no cdk.json in this folder or above it. Change to your project's folder, or name "
            "its application: epochal local up --app 'python app.py'"
        )


class ProgramMissing(LocalError, FileNotFoundError):
    """The program is not on PATH, or is too old; `how` says how to install it."""

    def __init__(self, program: str, found: str, how: str) -> None:
        super().__init__(f"{program}: {found}. To install it: {how}")
        self.program = program
        self.how = how


class DownloadCorrupt(LocalError, ValueError):
    """A downloaded file does not have the pinned digest, and was not unpacked."""

    def __init__(self, name: str, expected: str, actual: str) -> None:
        super().__init__(
            f"{name}: SHA-256 is {actual}, but the pinned digest is {expected}. Nothing was unpacked. "
            "Download it again; if the digest still differs, suspect the registry or a proxy"
        )
        self.expected = expected
        self.actual = actual


class PortTaken(LocalError, OSError):
    """Another program listens on `port`."""

    def __init__(self, port: int) -> None:
        super().__init__(
            f"port {port} is in use: stop the program that listens on it, or choose another port"
        )
        self.port = port


class ServerFailed(LocalError, RuntimeError):
    """A server did not become ready; `log_end` is the end of its log."""

    def __init__(self, server: str, reason: str, log_end: str) -> None:
        super().__init__(f"{server} {reason}" + (f"; the end of its log:\n{log_end}" if log_end else ""))
        self.server = server
        self.log_end = log_end


class SystemUnsupported(LocalError, OSError):
    """The embedded AWS does not run on this operating system."""

    def __init__(self, system: str) -> None:
        super().__init__(
            f"the embedded AWS runs on Linux and macOS, not on {system}: run it in WSL, or test with the "
            "in-memory stores (epochal.testing)"
        )


class NotRunning(LocalError, ConnectionError):
    """The embedded AWS is not up, or nothing has been deployed to it."""


class PortKept(LocalError, ValueError):
    """The requested port is not the port of the kept state."""

    def __init__(self, port: int) -> None:
        super().__init__(f"the kept data can be used only on port {port}: leave out --port")
        self.port = port


class KeptLost(LocalError, RuntimeError):
    """The embedded AWS ended without saving the state of these `services`."""

    def __init__(self, services: Sequence[str]) -> None:
        super().__init__(
            f"the embedded AWS stopped without saving {', '.join(services)}: nothing is kept, and the next "
            "start is empty"
        )


class KeptUnreadable(LocalError, RuntimeError):
    """The embedded AWS started without loading all state that was kept in `directory`."""

    def __init__(self, directory: str) -> None:
        super().__init__(
            "the embedded AWS could not load all of the kept data, and was stopped. If another version of "
            f"ministack kept it, use that version; otherwise delete the data: rm -r {directory}"
        )


class AccountRefused(LocalError, ValueError):
    """The `env` of `stack` names an account that does not have twelve digits."""

    def __init__(self, stack: str, account: str) -> None:
        super().__init__(f"stack {stack}: the account in its env must have twelve digits, got {account!r}")
        self.stack = stack


class LookupNeeded(LocalError, LookupError):
    """The application looks up `key` in the account of `stacks` while it is synthesised."""

    def __init__(self, stacks: Sequence[str], key: str) -> None:
        super().__init__(
            f"stack {' or '.join(stacks) or 'unknown'}: it looks up {key}, which the embedded AWS cannot "
            "provide. Run `cdk synth` once with credentials for that account, and commit cdk.context.json"
        )
        self.stacks = tuple(stacks)
        self.key = key


class OutputMissing(LocalError, LookupError):
    """No stack has the output `name`."""

    def __init__(self, name: str) -> None:
        super().__init__(f"the deployment has no output {name}: were some stacks not deployed?")
        self.name = name


class StoreUnclear(LocalError, LookupError):
    """The requested store is not among the deployed `stores`, or none of several is named."""

    def __init__(self, stores: Sequence[str], name: str | None = None) -> None:
        reason = f"no store is called {name}" if name else "several stores are deployed"
        super().__init__(
            f"{reason}: choose one of {', '.join(stores)}, for example with `epochal local env --store`"
        )
        self.stores = tuple(stores)


class TooManyFiles(LocalError, ValueError):
    """A folder to be watched holds more than `most` files."""

    def __init__(self, folder: str, most: int) -> None:
        super().__init__(
            f"{folder} has more than {most:,} files, too many to watch: run this in the folder of a project"
        )


class CommandFailed(LocalError, RuntimeError):
    """A command ended with an error, the exit status `status`.

    `output_end` is the end of its output. Where CloudFormation refused resources, or a construct an argument, the
    message has the `reasons` alone.
    """

    has_lines = True

    def __init__(self, command: str, status: int, output_end: str, reasons: Sequence[str] = ()) -> None:
        why = ":\n" + "\n".join(reasons) if reasons else f"; the end of its output:\n{output_end}"
        super().__init__(f"`{command}` exited with status {status}{why}")
        self.status = status
        self.output_end = output_end
        self.reasons = tuple(reasons)
