"""What customers owe a shop, in tables of a SQL database."""
