"""One process at a time writes an export, on every system."""

from __future__ import annotations

import errno
import sys
from pathlib import Path
from types import ModuleType

import pytest

from epochal.contrib.transfer.export.locks import locked
from epochal.errors import InvalidInput


class Windows(ModuleType):
    """Python's `msvcrt`, as far as a lock needs it: a range of bytes of a file is one process's at a time."""

    LK_NBLCK, LK_UNLCK = 2, 0

    def __init__(self) -> None:
        super().__init__("msvcrt")
        self.held: set[str] = set()

    def locking(self, descriptor: int, mode: int, size: int) -> None:
        assert size > 0
        name = str(Path(f"/proc/self/fd/{descriptor}").resolve())
        if mode == self.LK_UNLCK:
            self.held.remove(name)
        elif name in self.held:
            raise OSError(errno.EACCES, "Permission denied")
        else:
            self.held.add(name)


@pytest.fixture(params=["unix", "windows"])
def system(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "windows":
        monkeypatch.setitem(sys.modules, "fcntl", None)
        monkeypatch.setitem(sys.modules, "msvcrt", Windows())


@pytest.mark.usefixtures("system")
def test_a_second_writer_is_refused_while_the_first_has_the_lock(tmp_path: Path) -> None:
    with (
        locked(tmp_path / "lock"),
        pytest.raises(InvalidInput, match="another export"),
        locked(tmp_path / "lock"),
    ):
        pass


@pytest.mark.usefixtures("system")
def test_the_lock_is_free_again_after_its_block_also_after_an_error(tmp_path: Path) -> None:
    for _ in range(2):
        with pytest.raises(ZeroDivisionError), locked(tmp_path / "lock"):
            raise ZeroDivisionError
    with locked(tmp_path / "lock"):
        pass


@pytest.mark.usefixtures("system")
def test_an_error_that_is_no_lock_is_not_called_one(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError), locked(tmp_path / "missing" / "lock"):
        pass
