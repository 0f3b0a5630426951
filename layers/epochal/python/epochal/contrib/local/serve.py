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
    """Make the environment of functions in `folder`; the Python of it is returned."""
    venv.EnvBuilder(symlinks=True).create(folder)
    (packages,) = folder.glob("lib/python*/site-packages")
    for module in SDK:
        spec = find_spec(module)
        if spec is None or spec.origin is None:
            continue  # a function that imports it fails, as it should
        origin = Path(spec.origin)
        place = origin.parent if spec.submodule_search_locations else origin
        for each in (place, *place.parent.glob(f"*{module}-*.dist-info")):
            (packages / each.name).symlink_to(each)
    (packages / HOOK.name).symlink_to(HOOK)
    (packages / "functions.pth").write_text(f"import {HOOK.stem}\n", "utf-8")
    return folder / "bin" / "python"


class Unzipped(zipfile.ZipFile):
    """An archive as ministack opens it. A layer is unpacked when its content is first met, and linked from then on.

    So a function that writes into its layer writes into that of others. On Lambda it cannot.
    """

    unpacking = Lock()

    @property
    def _is_layer(self) -> bool:
        return re.fullmatch(r"layer_\d+\.zip", Path(self.filename or "").name) is not None

    def namelist(self) -> list[str]:
        """None of a layer's: ministack looks for names that lead out of it, which `extractall` leaves in it anyway."""
        return [] if self._is_layer else super().namelist()

    def extractall(self, path: Any = None, members: Any = None, pwd: bytes | None = None) -> None:
        """As a link where it is a layer."""
        if not self._is_layer or self.fp is None:
            return super().extractall(path, members, pwd)
        self.fp.seek(0)
        kept = Path.cwd() / "layers" / hashlib.sha256(self.fp.read()).hexdigest()
        with self.unpacking:
            if not kept.exists():
                super().extractall(under_way := kept.with_suffix(".new"), super().namelist(), pwd)
                under_way.rename(kept)
        Path(path).rmdir()
        return Path(path).symlink_to(kept)


if __name__ == "__main__":
    sys.executable = str(bare_python(Path.cwd() / "python"))
    zipfile.ZipFile = Unzipped  # type: ignore[misc]
    runpy.run_module("ministack", run_name="__main__", alter_sys=True)
