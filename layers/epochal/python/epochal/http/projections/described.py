"""What each operation on projection states takes and answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from epochal.http import problems
from epochal.http.openapi.description import (
    KNOWN_STATES,
    NO_CACHE,
    TAKES_JSON,
    Description,
    Perform,
    parameter,
)
from epochal.http.openapi.shapes import text, whole
from epochal.http.projections import operations
from epochal.http.projections.operations import MAX_VERSIONS, VERSIONS
from epochal.http.projections.schemas import NAME, VERSION

_NAME: Final = parameter("path", "name", NAME, required=True)
_WHICH: Final = (_NAME, parameter("path", "version", VERSION, required=True))

DESCRIPTIONS: Final[Mapping[Perform, Description]] = {
    operations.list_projection_states: Description(
        summary="List the versions of a projection that have a state",
        description="Without the states. A projection that has none is an empty page.",
        parameters=(
            _NAME,
            parameter("query", "from", text("`next` of the page before.")),
            parameter("query", "limit", whole("Versions at most.", 1, MAX_VERSIONS, default=VERSIONS)),
        ),
        gives="ProjectionVersions",
    ),
    operations.read_projection_state: Description(
        summary="Read the state of a version of a projection",
        description="The state itself up to 3 MB; beyond that in gzip, or a URL to get it from, as it is stored.",
        parameters=(*_WHICH, KNOWN_STATES),
        gives="ProjectionState",
        headers={"ETag": text("The exact state, for `If-None-Match`."), **NO_CACHE},
        not_modified=True,
        fails=(problems.PROJECTION_NOT_FOUND, problems.MISSING_BODY),
    ),
    operations.write_projection_state: Description(
        summary="Store the state of a version of a projection",
        description="Unless the stored one has processed more events. At most 4 MB: the library, and the command line, "
        "write larger ones.",
        parameters=_WHICH,
        takes="WriteProjectionState",
        gives="ProjectionWritten",
        fails=(*TAKES_JSON, problems.PROJECTION_BEHIND),
    ),
    operations.delete_projection_state: Description(
        summary="Delete the state of a version of a projection",
        description="If it is there. What it left in the bucket `epochal projections orphans` removes.",
        parameters=_WHICH,
        gives="ProjectionDeleted",
    ),
}
