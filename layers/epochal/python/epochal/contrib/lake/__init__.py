"""The lake: events as Parquet files in S3, which Athena reads."""

from typing import Final

TABLE: Final = "deliveries"
"""Table of the rows as they arrived."""

VIEW: Final = "events"
"""View that has each event once."""
