"""The CDK application: `cdk deploy --all -c stage=prod` (docs/deploy.md)."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent
# The library that will be deployed, not one that happens to be installed: keys and code must agree.
sys.path.insert(0, str(ROOT / "layers" / "epochal" / "python"))
# CDK still runs on Node 20, past its end of life; the banner would fill the screen at every command.
os.environ.setdefault("JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION", "20")

# Ctrl-C ends it without a trace of wherever it was. What it talks to in Node ends with its standard input.
signal.signal(signal.SIGINT, signal.SIG_DFL)

from aws_cdk import App  # noqa: E402  the environment has to be set first

from epochal.cdk.parts.layers import InstallerFailed  # noqa: E402
from epochal.cdk.rules import BadSetting  # noqa: E402
from epochal.cdk.sources import Sources  # noqa: E402
from stacks.deployment import deployment  # noqa: E402  as has the path


def main() -> None:
    """Synthesise the stacks that the context asks for, or say in one line what is wrong with it."""
    app = App()
    try:
        deployment(app, Sources.in_repository(ROOT))
    except (BadSetting, InstallerFailed) as error:
        raise SystemExit(f"epochal: {error}") from None
    app.synth()


if __name__ == "__main__":
    main()
