"""Print the document."""

from __future__ import annotations

import sys

from epochal.http.openapi.document import text

sys.stdout.write(text())
