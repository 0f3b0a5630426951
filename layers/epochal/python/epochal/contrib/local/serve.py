"""Runs ministack with functions on a Python that is as bare as Lambda's. A program: nothing imports it.

ministack starts functions with the Python that runs it, `sys.executable`, and that one has every package of its
environment: what a function's layers lack would go unnoticed until AWS. So functions get a virtual environment with
nothing in it but the SDK that Lambda's Pythons bring, `boto3` and what it needs
(https://docs.aws.amazon.com/lambda/latest/dg/lambda-python.html): as links, of the versions that are here. It takes
some milliseconds, is in the folder of the server, and goes with it.

Nor does it unpack a function's layers at each cold start, which takes a second of CPU: each is unpacked once.
"""

from __future__ import annotations

import hashlib
import re
import runpy
import sys
import venv
import zipfile
from importlib.util import find_spec
from pathlib import Path
from threading import Lock
from typing import Any

SDK = ("boto3", "botocore", "dateutil", "jmespath", "s3transfer", "six", "urllib3")
"""What functions can import without any layer, beside the standard library."""

HOOK = Path(__file__).with_name("function_imports.py")


def bare_python(folder: Path) -> Path:
    """Create a virtual environment for functions in `folder`, and return the path of its Python.

    The environment has nothing but the SDK, as links to the packages that are here.
    """
    venv.EnvBuilder(symlinks=True).create(folder)
    (packages,) = folder.glob("lib/python*/site-packages")
    for module in SDK:
        spec = find_spec(module)
        if spec is None or spec.origin is None:
            continue  # a function that imports this module fails, as it should
        origin = Path(spec.origin)
        place = origin.parent if spec.submodule_search_locations else origin
        for path in (place, *place.parent.glob(f"*{module}-*.dist-info")):
            (packages / path.name).symlink_to(path)
    (packages / HOOK.name).symlink_to(HOOK)
    (packages / "functions.pth").write_text(f"import {HOOK.stem}\n", "utf-8")
    return folder / "bin" / "python"


class Unzipped(zipfile.ZipFile):
    """An archive as ministack opens it; a layer is unpacked at its first use, and linked afterwards.

    So a function that writes into its layer writes into the layer of others. On Lambda it cannot write there.
    """

    unpacking = Lock()

    @property
    def _is_layer(self) -> bool:
        """Whether the archive is one of a layer, by the name of its file."""
        return re.fullmatch(r"layer_\d+\.zip", Path(self.filename or "").name) is not None

    def namelist(self) -> list[str]:
        """Return the names in the archive; none for a layer.

        ministack looks for names that lead out of the archive, which `extractall` does not write there anyway.
        """
        return [] if self._is_layer else super().namelist()

    def extractall(self, path: Any = None, members: Any = None, pwd: bytes | None = None) -> None:
        """Extract the archive to `path`; a layer is unpacked once, and `path` becomes a link to it."""
        if not self._is_layer or self.fp is None:
            return super().extractall(path, members, pwd)
        self.fp.seek(0)
        folder = Path.cwd() / "layers" / hashlib.sha256(self.fp.read()).hexdigest()
        with self.unpacking:
            if not folder.exists():
                super().extractall(under_way := folder.with_suffix(".new"), super().namelist(), pwd)
                under_way.rename(folder)
        Path(path).rmdir()
        return Path(path).symlink_to(folder)


if __name__ == "__main__":
    sys.executable = str(bare_python(Path.cwd() / "python"))
    zipfile.ZipFile = Unzipped  # type: ignore[misc]
    runpy.run_module("ministack", run_name="__main__", alter_sys=True)
