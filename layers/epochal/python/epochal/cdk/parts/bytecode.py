"""Layers with bytecode, where this machine has the functions' Python.

A layer is read-only, so modules without bytecode are compiled at each cold start, which takes nearly half as long
again as all that importing takes otherwise. Bytecode fits one version of Python and every processor. It is never
compared with its source, whose date does not survive the way into a layer. Without that Python, layers hold sources
only: slower to start, and as right.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from fnmatch import fnmatch
from pathlib import Path
from typing import Final

LITTER: Final = ("__pycache__", "*.pyc", "*.egg-info", ".*")
"""What lies about in a checkout and belongs to no layer."""

_WHICH: Final = "import sys; print('%d.%d' % sys.version_info[:2], sys.executable)"

_SHIMS: Final = ("PYENV_VERSION", "MISE_PYTHON_VERSION")
"""Variables that tell version managers which Python is meant: what they put into the path runs none that is not
chosen."""


def interpreter_of(python: str) -> str | None:
    """The interpreter of version `major.minor` on this machine; None where there is none that runs.

    A command of that name may be a version manager's, which runs nothing, and an interpreter lie behind it: in the
    manager's keeping, or further on in the path.
    """
    if f"{sys.version_info.major}.{sys.version_info.minor}" == python:
        return sys.executable
    for folder in os.get_exec_path():
        found = shutil.which(f"python{python}", path=folder)
        if found is not None and (run := _run_by(found, python)) is not None:
            return run
    return None


def compile_modules(packages: Path, interpreter: str | None) -> None:
    """Put bytecode beside the modules in a layer's folder `python`; they are called there as they will be in AWS. What
    an interpreter cannot compile it could not import either, so nobody does. Without an interpreter there is none.
    """
    if interpreter is None:
        return
    subprocess.run(
        [interpreter, "-m", "compileall", "-q", "--invalidation-mode", "unchecked-hash",
         "-s", str(packages), "-p", "/opt/python", str(packages)],
        capture_output=True,
        check=False,
    )  # fmt: skip


def prepared(layer: Path, python: str, cache: Path, *, below: str = "") -> Path:
    """A clean copy of the folder `layer`, with bytecode where that can be had. Copies of what it used to be go.

    Args:
        layer: laid out as a layer, or what lies in one at `below`.
        python: the functions', `major.minor`.
        cache: where copies are kept.
        below: where in the layer the folder's content belongs.
    """
    interpreter = interpreter_of(python)
    # Without a dot: what comes after one CDK would take for the file's type.
    kind = f"{layer.name}-py{python.replace('.', '')}-{'bytecode' if interpreter else 'sources'}-"
    folder = cache / (kind + _digest(layer, below))
    if not folder.exists():
        old = list(cache.glob(f"{kind}*"))
        with filling(folder) as content:
            shutil.copytree(layer, content / below, ignore=shutil.ignore_patterns(*LITTER))
            compile_modules(content / "python", interpreter)
        for each in old:
            shutil.rmtree(each, ignore_errors=True)
    return folder


@contextmanager
def filling(folder: Path) -> Iterator[Path]:
    """A folder to be made and filled, which then becomes `folder`, unless another process was faster."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
        content = Path(scratch) / "layer"
        yield content
        if not folder.exists():
            content.rename(folder)


def has_bytecode(layer: Path) -> bool:
    """Whether a folder as `prepared` has bytecode."""
    return next(layer.rglob("*.pyc"), None) is not None


def _digest(layer: Path, below: str) -> str:
    digest = hashlib.sha256(below.encode())
    for path in sorted(layer.rglob("*")):
        place = path.relative_to(layer)
        if path.is_file() and not any(fnmatch(part, each) for part in place.parts for each in LITTER):
            content = path.read_bytes()
            digest.update(f"{place}\n{len(content)}\n".encode() + content)
    return digest.hexdigest()[:24]


def _run_by(command: str, python: str) -> str | None:
    """The interpreter that a command runs, if it is of that version: the command may be a shim before it."""
    environment = {**os.environ, **dict.fromkeys(_SHIMS, python)}
    try:
        ran = subprocess.run(
            [command, "-I", "-c", _WHICH], capture_output=True, text=True, check=True, env=environment
        )
    except (OSError, subprocess.CalledProcessError):
        return None
    version, _, interpreter = ran.stdout.strip().partition(" ")
    return interpreter if version == python and interpreter else None
