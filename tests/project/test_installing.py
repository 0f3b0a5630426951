"""Set-up installs by uv what pip is configured to, and by pip where uv has no word for that."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

import pytest

from tests.support import installing
from tests.support.installing import NotByUv, words_of

ROOT = Path(__file__).resolve().parents[2]

CONFIGURATION = r"""
global.cert='/etc/own.pem'
global.constraint='/etc/caps.txt'
global.extra-index-url='https://a.example/simple\nhttps://b.example/simple'
global.find-links='/wheels /more'
global.index-url='https://user:word@own.example/simple'
global.timeout='180'
"""


def test_uv_is_told_the_indexes_the_files_and_the_certificates_of_pip() -> None:
    assert words_of(CONFIGURATION, {"REQUESTS_CA_BUNDLE": "/etc/other.pem"}) == {
        "SSL_CERT_FILE": "/etc/own.pem",
        "UV_CONSTRAINT": "/etc/caps.txt",
        "UV_INDEX": "https://a.example/simple https://b.example/simple",
        "UV_FIND_LINKS": "/wheels,/more",
        "UV_DEFAULT_INDEX": "https://user:word@own.example/simple",
    }


def test_an_option_of_install_counts_before_a_global_one_and_the_environment_before_both() -> None:
    lines = [":env:.cert='/3'", "global.cert='/1'", "install.cert='/2'", "download.cert='/4'"]
    assert words_of("\n".join(lines), {}) == {"SSL_CERT_FILE": "/3"}
    assert words_of("\n".join(lines[1:]), {}) == {"SSL_CERT_FILE": "/2"}


def test_certificates_that_the_environment_names_for_pip_are_those_of_uv() -> None:
    assert words_of("", {"REQUESTS_CA_BUNDLE": "/etc/own.pem"}) == {"SSL_CERT_FILE": "/etc/own.pem"}
    assert words_of("", {}) == {}


def test_an_option_that_uv_has_no_word_for_is_left_to_pip_and_named() -> None:
    with pytest.raises(NotByUv, match=r"has client-cert, no-index$"):
        words_of("global.no-index='true'\nuser.x='y'\ninstall.client-cert='/own.pem'\n:env:.retries='1'", {})


@pytest.fixture
def wheels(tmp_path: Path) -> Path:
    """An index of one package, in files."""
    folder = tmp_path / "simple" / "epochal-toy"
    folder.mkdir(parents=True)
    name = "epochal_toy-1.0-py3-none-any.whl"
    with ZipFile(folder / name, "w") as wheel:
        inside = "epochal_toy-1.0.dist-info"
        wheel.writestr(f"{inside}/METADATA", "Metadata-Version: 2.1\nName: epochal-toy\nVersion: 1.0\n")
        wheel.writestr(f"{inside}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{inside}/RECORD", "")
    (folder / "index.html").write_text(f'<a href="{name}">{name}</a>')
    return tmp_path / "simple"


def installs(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """What set-up says of a package, without installing it."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PIP_", "UV_"))}
    return subprocess.run(
        [sys.executable, "-m", "tests.support.installing", "--dry-run", "--no-deps", *arguments],
        cwd=ROOT,
        env={**kept, "PIP_CONFIG_FILE": os.devnull, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.slow
def test_uv_takes_packages_from_the_index_that_pip_is_configured_with(wheels: Path, tmp_path: Path) -> None:
    if not installing.UV.exists():
        pytest.skip("pip installed these packages: there is no uv")
    done = installs(
        "epochal-toy==1.0",
        PIP_INDEX_URL=wheels.as_uri(),
        UV_CACHE_DIR=str(tmp_path / "cache"),
        UV_OFFLINE="yes",
    )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.slow
def test_pip_installs_what_uv_cannot_and_that_is_said(wheels: Path) -> None:
    done = installs("epochal-toy==1.0", PIP_NO_INDEX="yes", PIP_FIND_LINKS=str(wheels / "epochal-toy"))
    assert done.returncode == 0
    assert done.stderr == "pip installs, which takes a minute longer: pip's configuration has no-index\n"


@pytest.mark.slow
def test_a_package_that_neither_finds_ends_with_an_error(wheels: Path, tmp_path: Path) -> None:
    done = installs("epochal-none", PIP_INDEX_URL=wheels.as_uri(), UV_CACHE_DIR=str(tmp_path / "cache"))
    assert done.returncode == 1
    assert "No matching distribution found for epochal-none" in done.stderr
