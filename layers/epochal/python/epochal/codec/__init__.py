"""Bodies as they are stored: compressed, claimed, or as they stand; and JSON that loses nothing."""
