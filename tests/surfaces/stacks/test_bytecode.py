"""Layers with bytecode: what is in them, and when there is none."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from epochal.cdk.parts import bytecode
from epochal.cdk.parts.bytecode import has_bytecode, interpreter_of, prepared

HERE = f"{sys.version_info.major}.{sys.version_info.minor}"
NOWHERE = "2.99"


@pytest.fixture
def layer(tmp_path: Path) -> Path:
    package = tmp_path / "layer" / "python" / "package"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("print('compiled before')\n")
    (package / "broken.py").write_text("print 'of another age'\n")
    (package / "py.typed").write_text("")
    for litter in ("__pycache__/old.cpython-311.pyc", ".mypy_cache/x.json", "package.egg-info/PKG-INFO"):
        (package / litter).parent.mkdir()
        (package / litter).write_text("litter")
    return tmp_path / "layer"


def files(folder: Path) -> set[str]:
    return {
        str(path.relative_to(folder / "python" / "package")) for path in folder.rglob("*") if path.is_file()
    }


def test_a_layer_has_its_files_and_bytecode_and_nothing_that_lay_about(layer: Path, tmp_path: Path) -> None:
    tag = sys.implementation.cache_tag
    assert files(prepared(layer, HERE, tmp_path / "cache")) == {
        "__init__.py",
        "broken.py",
        "py.typed",
        f"__pycache__/__init__.{tag}.pyc",
    }


def test_the_interpreter_takes_the_bytecode_whatever_its_source_is_by_now(
    layer: Path, tmp_path: Path
) -> None:
    """What travels through archives has other dates."""
    folder = prepared(layer, HERE, tmp_path / "cache")
    (folder / "python" / "package" / "__init__.py").write_text("raise SystemExit('compiled again')\n")
    ran = subprocess.run(
        [sys.executable, "-B", "-c", "import package"],
        env={"PYTHONPATH": str(folder / "python")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.stdout == "compiled before\n", ran.stderr


def test_bytecode_says_nothing_of_the_machine_that_it_was_made_on(layer: Path, tmp_path: Path) -> None:
    (compiled,) = prepared(layer, HERE, tmp_path / "cache").rglob("*.pyc")
    content = compiled.read_bytes()
    assert b"/opt/python/package/__init__.py" in content
    assert str(tmp_path).encode() not in content


def test_without_the_functions_python_a_layer_is_its_sources(layer: Path, tmp_path: Path) -> None:
    folder = prepared(layer, NOWHERE, tmp_path / "cache")
    assert files(folder) == {"__init__.py", "broken.py", "py.typed"}
    assert not has_bytecode(folder)


def test_an_interpreter_that_is_on_the_path_and_does_not_run_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shim = tmp_path / f"python{NOWHERE}"
    shim.write_text("#!/bin/sh\nexit 127\n")
    shim.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert interpreter_of(NOWHERE) is None


def test_an_interpreter_behind_a_shim_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Further on in the path, or in the keeping of the version manager, which runs the one that it is told."""
    for name, script in (
        ("first", "exit 127"),
        ("manager", f'test "$PYENV_VERSION" = {NOWHERE} && echo {NOWHERE} /versions/{NOWHERE}/bin/python'),
        ("last", f"echo {NOWHERE} /last/python"),
    ):
        (tmp_path / name).mkdir()
        (tmp_path / name / f"python{NOWHERE}").write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / name / f"python{NOWHERE}").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}/first:{tmp_path}/last")
    assert interpreter_of(NOWHERE) == "/last/python"
    monkeypatch.setenv("PATH", f"{tmp_path}/first:{tmp_path}/manager")
    assert interpreter_of(NOWHERE) == f"/versions/{NOWHERE}/bin/python"


def test_a_layer_is_prepared_again_when_it_has_changed_and_the_old_one_goes(
    layer: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = tmp_path / "cache"
    first = prepared(layer, HERE, cache)
    with monkeypatch.context() as patched:
        patched.setattr(bytecode, "compile_modules", lambda *_: pytest.fail("it was there"))
        (layer / "python" / "package" / "__pycache__" / "new.pyc").write_text("litter")
        assert prepared(layer, HERE, cache) == first
    (layer / "python" / "package" / "py.typed").write_text("partial\n")
    second = prepared(layer, HERE, cache)
    assert list(cache.iterdir()) == [second] != [first]
