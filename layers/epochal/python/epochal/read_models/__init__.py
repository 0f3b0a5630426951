"""Read models: documents that are exactly as far as they say."""
