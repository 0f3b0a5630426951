"""Bodies in their stored form (direct, compressed or as claim checks), and JSON that loses nothing."""
