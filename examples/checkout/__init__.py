"""A checkout: stock, payment, a time limit, and what is undone where one of them fails."""
