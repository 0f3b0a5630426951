"""Read models: documents that are exactly as up to date as they say."""
