"""The indexer: batches of stream records become entries of the index, and notices of them go out."""
