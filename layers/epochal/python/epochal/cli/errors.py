"""What only the command line refuses."""

from __future__ import annotations

from epochal.errors import EpochalError


class NoStore(EpochalError):
    """Nothing says which store is meant."""

    def __init__(self, why: str) -> None:
        super().__init__(
            f"no store is named, and {why}; to name one: --stack epochal-prod-store, or --tips-table and --index-table"
        )


class StackMissing(EpochalError, LookupError):
    """There is no stack of that name, or it is not Epochal's."""

    def __init__(self, stack: str, why: str) -> None:
        super().__init__(f"stack {stack}: {why}")
        self.stack = stack


class AggregateMissing(EpochalError, LookupError):
    """There is no such aggregate."""

    def __init__(self, aggregate: str) -> None:
        super().__init__(f"{aggregate}: there is no such aggregate")
        self.aggregate = aggregate


class StreamMissing(EpochalError, LookupError):
    """There is no such stream."""

    def __init__(self, stream: str) -> None:
        super().__init__(f"{stream}: there is no such stream")
        self.stream = stream
