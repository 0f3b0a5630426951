"""Bodies as they are stored: compressed, claimed, or as they are; and JSON that loses nothing."""
