"""A dictionary for tests, as it was first trained, and a process that has met none."""

from __future__ import annotations

from typing import Final

import pytest

from epochal.codec import dictionaries

TRAINED: Final = bytes.fromhex(
    "37a430eceb6bcc192410303c75f01769c35fa40d7f9136fc455afffcf3cfbbb7df7eabb6f7de52ca34f3cfbd070337180c06f2999999d9b6"
    "01448000010202020202825215040404040404040404624dc94110044110044110841042082184102222220f444dc1216b8c200882200882"
    "200882104208218410424444e4010100000004000000080000004e6f746554616b656e4d6f7665644974656d41646465647b22736b75223a"
    "22412d222c227175616e74697479223a000744656c61796564207b22666c69676874223a22414131313431222c226d696e75746573223a"
)
"""Of delays of flights: `{"flight":"AA1141","minutes":12}`."""


def forget(patch: pytest.MonkeyPatch) -> None:
    """As if this process had just begun."""
    patch.setattr(dictionaries, "_KNOWN", {})
