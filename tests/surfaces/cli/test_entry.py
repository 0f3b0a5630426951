"""The console script: what is missing is said, and a Ctrl-C leaves no trace, before the command itself is there."""

from __future__ import annotations

import sys
import tomllib
from importlib import import_module
from importlib.abc import MetaPathFinder
from pathlib import Path

import pytest

from epochal import cli

ROOT = Path(__file__).resolve().parents[3]


def _importing(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    """Let the import of the command's module fail with an error."""

    class Failing(MetaPathFinder):
        def find_spec(self, name: str, *_: object) -> None:
            if name == "epochal.cli.main":
                raise error

    monkeypatch.delitem(sys.modules, "epochal.cli.main", raising=False)
    monkeypatch.setattr(sys, "meta_path", [Failing(), *sys.meta_path])


def test_the_script_calls_it() -> None:
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
    module, _, name = scripts["epochal"].partition(":")
    assert getattr(import_module(module), name) is cli.run


def test_it_runs_the_command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("sys.argv", ["epochal", "--help"])
    cli.run()
    assert "append" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["click", "rich"])
def test_without_the_extra_it_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    _importing(monkeypatch, ModuleNotFoundError(name=name))
    with pytest.raises(SystemExit) as ended:
        cli.run()
    assert f"needs {name}, which an extra installs: pip install 'epochal[cli]'" in str(ended.value.code)


def test_a_module_that_is_missing_by_our_fault_keeps_its_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    _importing(monkeypatch, ModuleNotFoundError(name="epochal.cli.gone"))
    with pytest.raises(ModuleNotFoundError):
        cli.run()


def test_an_interrupt_while_it_is_imported_ends_with_130(monkeypatch: pytest.MonkeyPatch) -> None:
    _importing(monkeypatch, KeyboardInterrupt())
    with pytest.raises(SystemExit) as ended:
        cli.run()
    assert ended.value.code == 130
