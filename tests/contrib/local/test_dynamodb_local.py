"""DynamoDB Local is fetched once, and unpacked only if it is what the repository pins."""

from __future__ import annotations

import hashlib
import io
import os
import tarfile
from dataclasses import replace
from pathlib import Path

import pytest

from epochal.contrib.local import programs
from epochal.contrib.local.errors import CommandFailed, DownloadCorrupt, ProgramMissing
from epochal.contrib.local.programs import Places
from tests.support import dynamodb_local

FILES = {
    "package/package.json": b"{}",
    "package/emulator/DynamoDBLocal.jar": b"a jar",
    "package/emulator/DynamoDBLocal_lib/native.so": b"a library",
    "package/emulator/../../escaped": b"outside",
}


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    """What the registry would send."""
    path = tmp_path / "archive.tgz"
    with tarfile.open(path, "w:gz") as tar:
        for name, content in FILES.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return path


@pytest.fixture
def npm(tmp_path: Path, archive: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An npm that packs `archive`; the file it keeps counts how often."""
    programs = tmp_path / "bin"
    programs.mkdir()
    calls = tmp_path / "calls"
    script = (
        "#!/bin/sh\n"
        'if [ "$1" = --version ]; then echo 10.1.0; exit; fi\n'
        f'echo "$2" >> "{calls}"\n'
        'while [ "$1" != --pack-destination ]; do shift; done\n'
        f'/bin/cp "{archive}" "$2/{dynamodb_local.PACKAGE.name}-{dynamodb_local.PACKAGE.version}.tgz"\n'
    )
    (programs / "npm").write_text(script)
    (programs / "npm").chmod(0o755)
    monkeypatch.setenv("PATH", str(programs))
    return calls


def pin(monkeypatch: pytest.MonkeyPatch, archive: Path) -> None:
    pinned = replace(dynamodb_local.PACKAGE, sha256=hashlib.sha256(archive.read_bytes()).hexdigest())
    monkeypatch.setattr(dynamodb_local, "PACKAGE", pinned)


def test_only_the_emulator_is_unpacked_and_nothing_outside_its_directory(
    tmp_path: Path, archive: Path, npm: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pin(monkeypatch, archive)
    directory = dynamodb_local.fetch(Places(tmp_path / "checkout"))
    unpacked = {str(path.relative_to(directory)) for path in directory.rglob("*") if path.is_file()}
    assert unpacked == {"DynamoDBLocal.jar", "DynamoDBLocal_lib/native.so"}
    assert (directory / "DynamoDBLocal.jar").read_bytes() == b"a jar"
    assert not list(tmp_path.rglob("escaped"))
    assert list((tmp_path / "checkout" / ".cache").iterdir()) == [directory]


def test_what_was_fetched_is_not_fetched_again(
    tmp_path: Path, archive: Path, npm: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pin(monkeypatch, archive)
    told: list[str] = []
    first = dynamodb_local.fetch(Places(tmp_path / "checkout"), tell=told.append)
    second = dynamodb_local.fetch(Places(tmp_path / "checkout"), tell=told.append)
    assert first == second
    assert npm.read_text().splitlines() == ["amplify-dynamodb-simulator@2.9.30"]
    assert told == ["fetching DynamoDB Local, 54 MB"]


def test_a_package_of_a_scope_is_found_under_the_name_that_npm_gives_its_archive(
    tmp_path: Path, archive: Path, npm: Path
) -> None:
    script = Path(os.environ["PATH"]) / "npm"
    script.write_text(script.read_text().replace(dynamodb_local.PACKAGE.name, "someone-something"))
    digest = hashlib.sha256(archive.read_bytes()).hexdigest()
    scoped = replace(dynamodb_local.PACKAGE, name="@someone/something", sha256=digest)
    assert (programs.fetch(scoped, tmp_path / "cache") / "DynamoDBLocal.jar").is_file()
    assert npm.read_text().splitlines() == [f"@someone/something@{scoped.version}"]


def test_another_digest_is_refused_and_leaves_nothing(tmp_path: Path, archive: Path, npm: Path) -> None:
    actual = hashlib.sha256(archive.read_bytes()).hexdigest()
    with pytest.raises(
        DownloadCorrupt, match=f"is {actual}, but the pinned digest is {dynamodb_local.PACKAGE.sha256}"
    ):
        dynamodb_local.fetch(Places(tmp_path / "checkout"))
    assert list((tmp_path / "checkout" / ".cache").iterdir()) == []


def test_another_version_does_not_pass_for_the_one_in_the_cache(
    tmp_path: Path, archive: Path, npm: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pin(monkeypatch, archive)
    first = dynamodb_local.fetch(Places(tmp_path / "checkout"))
    monkeypatch.setattr(dynamodb_local, "PACKAGE", replace(dynamodb_local.PACKAGE, sha256="0" * 64))
    with pytest.raises(DownloadCorrupt):
        dynamodb_local.fetch(Places(tmp_path / "checkout"))
    assert first.is_dir()


def test_an_npm_that_fails_is_quoted(tmp_path: Path, npm: Path) -> None:
    script = '#!/bin/sh\nif [ "$1" = --version ]; then echo 10.1.0; exit; fi\necho "no network" >&2; exit 7\n'
    (tmp_path / "bin" / "npm").write_text(script)
    with pytest.raises(CommandFailed, match="exited with status 7.*\nno network"):
        dynamodb_local.fetch(Places(tmp_path / "checkout"))


def test_without_npm_it_says_how_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ProgramMissing, match="npm: not on PATH.*apt-get install nodejs npm"):
        dynamodb_local.fetch(Places(tmp_path / "checkout"))


def test_without_java_it_says_how_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ProgramMissing, match="java: not on PATH.*apt-get install default-jre-headless"):
        dynamodb_local.start(Places(tmp_path / "checkout"))
