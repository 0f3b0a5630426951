"""Layers with bytecode, where this machine has the functions' Python.

A layer is read-only, so modules without bytecode are compiled at each cold start, which makes imports take nearly
half as long again. Bytecode fits one version of Python and every processor. It is never compared with its source,
whose date is lost on the way into a layer. Without that Python, layers hold sources only: slower to start, but
correct.
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
"""Patterns of files in a checkout that belong to no layer."""

_WHICH: Final = "import sys; print('%d.%d' % sys.version_info[:2], sys.executable)"

_SHIMS: Final = ("PYENV_VERSION", "MISE_PYTHON_VERSION")
"""Environment variables that choose a version manager's Python: the commands it puts into the path run only a chosen
version."""


def interpreter_of(python: str) -> str | None:
    """Return the path of this machine's interpreter of a Python version; None if there is none that runs.

    A command such as `python3.13` may be a version manager's shim that fails, while the manager or a later folder of
    the path has a working interpreter.
    """
    if f"{sys.version_info.major}.{sys.version_info.minor}" == python:
        return sys.executable
    for folder in os.get_exec_path():
        executable = shutil.which(f"python{python}", path=folder)
        if executable is not None and (run := _run_by(executable, python)) is not None:
            return run
    return None


def compile_modules(packages: Path, interpreter: str | None) -> None:
    """Compile a layer's modules to bytecode for AWS Lambda; do nothing without an interpreter.

    Modules that the interpreter cannot compile are skipped, since it could not import them either.

    Args:
        interpreter: interpreter of the functions' Python version; None compiles nothing.
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
    """Return a cached copy of a layer's folder, with bytecode if possible; make it, and drop older ones.

    Older copies of the folder are deleted.

    Args:
        layer: folder of a layer, or of the part of a layer at `below`.
        python: Python version of the functions, `major.minor`.
        cache: folder in which copies are kept.
        below: path of the folder's content in the layer; empty for the whole layer.
    """
    interpreter = interpreter_of(python)
    # Without a dot, since CDK would take the text after a dot for the file's type.
    kind = f"{layer.name}-py{python.replace('.', '')}-{'bytecode' if interpreter else 'sources'}-"
    folder = cache / (kind + digest_of(layer, below))
    if not folder.exists():
        old = list(cache.glob(f"{kind}*"))
        with filling(folder) as content:
            shutil.copytree(layer, content / below, ignore=shutil.ignore_patterns(*LITTER))
            compile_modules(content / "python", interpreter)
        for path in old:
            shutil.rmtree(path, ignore_errors=True)
    return folder


@contextmanager
def filling(folder: Path) -> Iterator[Path]:
    """Yield a temporary folder to fill; rename it to `folder` afterwards, unless that exists by then.

    The temporary folder is dropped if another process has made `folder` meanwhile.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
        content = Path(scratch) / "layer"
        yield content
        if not folder.exists():
            content.rename(folder)


def has_bytecode(layer: Path) -> bool:
    """Whether a folder that `prepared` returned has bytecode."""
    return next(layer.rglob("*.pyc"), None) is not None


def digest_of(layer: Path, below: str) -> str:
    """Return a hash of a file, or of a folder's files except litter, and of its place in the layer."""
    digest = hashlib.sha256(below.encode())
    for path in sorted(layer.rglob("*")) if layer.is_dir() else [layer]:
        place = path.relative_to(layer)
        if path.is_file() and not any(fnmatch(part, pattern) for part in place.parts for pattern in LITTER):
            content = path.read_bytes()
            digest.update(f"{place}\n{len(content)}\n".encode() + content)
    return digest.hexdigest()[:24]


def _run_by(command: str, python: str) -> str | None:
    """Return the interpreter that `command` runs; None if it fails or has another version than `python`.

    The command may be a version manager's shim.
    """
    environment = {**os.environ, **dict.fromkeys(_SHIMS, python)}
    try:
        ran = subprocess.run(
            [command, "-I", "-c", _WHICH], capture_output=True, text=True, check=True, env=environment
        )
    except (OSError, subprocess.CalledProcessError):
        return None
    version, _, interpreter = ran.stdout.strip().partition(" ")
    return interpreter if version == python and interpreter else None
