"""The commands that move events: imports, copies, exports, and SQL over exports."""

from __future__ import annotations

from typing import Final

from epochal.contrib.transfer.export.commands import export, sql
from epochal.contrib.transfer.importing.commands import copy, import_

COMMANDS: Final = (copy, export, import_, sql)
