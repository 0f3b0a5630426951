"""The lake: events as Parquet files in S3, which Athena reads."""
