"""Installs packages into this environment: by uv, which takes a tenth of pip's time, or by pip where uv cannot.

pip's own configuration says where packages come from, and who is trusted: uv is told what `pip config list` tells.
Where that has an option that uv has no word for, or uv is not to be had, or fails, pip installs, and that is said.

    python -m tests.support.installing --requirement requirements.txt
"""

from __future__ import annotations

import os
import subprocess
import sys
from ast import literal_eval
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

PIP: Final = (sys.executable, "-m", "pip")
UV: Final = Path(sys.executable).with_name("uv")
CONSTRAINTS: Final = Path(__file__).parents[2] / "constraints.txt"

SECTIONS: Final = ("global", "install", ":env:")
"""Of pip's configuration, each over the one before."""

WORDS: Final = {
    "index-url": ("UV_DEFAULT_INDEX", " "),
    "extra-index-url": ("UV_INDEX", " "),
    "find-links": ("UV_FIND_LINKS", ","),
    "constraint": ("UV_CONSTRAINT", " "),
    "cert": ("SSL_CERT_FILE", " "),
}
"""The variable that tells uv what an option tells pip, and what is between values."""

WITHOUT_EFFECT: Final = {
    *("cache-dir", "config-file", "default-timeout", "disable-pip-version-check", "no-cache-dir", "no-color"),
    *("no-compile", "no-input", "progress-bar", "quiet", "require-virtualenv", "retries", "root-user-action"),
    *("timeout", "verbose"),
}
"""Options that change neither what is installed nor where it comes from."""


class NotByUv(Exception):
    """The reason for which pip must install rather than uv."""


def words_of(configuration: str, environment: Mapping[str, str]) -> dict[str, str]:
    """Convert the output of `pip config list` to uv's variables; raise `NotByUv` for an option that uv lacks."""
    options: dict[str, dict[str, str]] = {section: {} for section in SECTIONS}
    for line in configuration.splitlines():
        name, _, value = line.partition("=")
        section, _, option = name.rpartition(".")
        if section in options:
            options[section][option] = str(literal_eval(value))
    told = {option: value for section in SECTIONS for option, value in options[section].items() if value}
    if unknown := sorted(told.keys() - WORDS.keys() - WITHOUT_EFFECT):
        raise NotByUv(f"pip's configuration has {', '.join(unknown)}")
    words = {
        WORDS[option][0]: WORDS[option][1].join(value.split())
        for option, value in told.items()
        if option in WORDS
    }
    # What pip trusts where its configuration does not say.
    bundle = environment.get("REQUESTS_CA_BUNDLE") or environment.get("CURL_CA_BUNDLE")
    return {"SSL_CERT_FILE": bundle, **words} if bundle else words


def by_uv(arguments: Sequence[str]) -> None:
    """Raise `NotByUv` if uv cannot install these packages as pip would."""
    configuration = subprocess.run(
        [*PIP, "config", "list"], check=True, capture_output=True, text=True
    ).stdout
    words = words_of(configuration, os.environ)
    if not UV.exists():
        fetched = _run(
            *PIP, "install", "--quiet", "--no-compile", "--only-binary", "uv", "-c", str(CONSTRAINTS), "uv"
        )
        if fetched.returncode:
            raise NotByUv("pip finds no uv")
    # uv's own settings are of other projects: pip's count, and of several indexes pip takes the best.
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith("UV_") or "CACHE" in name
    }
    environment |= {"UV_NO_CONFIG": "1", "UV_INDEX_STRATEGY": "unsafe-best-match", **words}
    done = _run(
        str(UV), "pip", "install", "--quiet", "--python", sys.executable, *arguments, environment=environment
    )
    if done.returncode:
        raise NotByUv("\n".join(("uv fails:", *done.stdout.splitlines()[-5:])))


def main(arguments: Sequence[str]) -> int:
    """Install, and return the exit status of pip or uv."""
    try:
        by_uv(arguments)
    except NotByUv as why:
        sys.stderr.write(f"pip installs, which takes a minute longer: {why}\n")
        return subprocess.run(
            [*PIP, "install", "--quiet", "--no-compile", *arguments], check=False
        ).returncode
    return 0


def _run(*command: str, environment: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, check=False, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=environment
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
