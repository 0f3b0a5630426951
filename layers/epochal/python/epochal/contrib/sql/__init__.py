"""Read models in SQL databases."""
