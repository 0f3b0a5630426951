"""Runs ministack with functions on a Python that is as bare as Lambda's. A program: nothing imports it.

ministack starts functions with the Python that runs it, `sys.executable`, and that one has every package of its
environment: what a function's layers lack would go unnoticed until AWS. So functions get a virtual environment with
nothing in it but the SDK that Lambda's Pythons bring, `boto3` and what it needs
(https://docs.aws.amazon.com/lambda/latest/dg/lambda-python.html): as links, of the versions that are here. It takes
some milliseconds, is in the folder of the server, and goes with it.
"""

from __future__ import annotations

import runpy
import sys
import venv
from importlib.util import find_spec
from pathlib import Path

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
    (packages / "functions.pth").write_text(f"import {HOOK.stem}\n")
    return folder / "bin" / "python"


if __name__ == "__main__":
    sys.executable = str(bare_python(Path.cwd() / "python"))
    runpy.run_module("ministack", run_name="__main__", alter_sys=True)
