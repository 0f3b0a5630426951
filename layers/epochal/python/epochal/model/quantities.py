"""How messages write a number of things."""


def quantity(number: int, what: str = "event") -> str:
    """A number of things in words: `1 event`, `1,200 events`."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"
