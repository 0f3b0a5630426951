"""The reaction that `epochal prove` has catch up: a stage declares it to have its long catch-ups proven."""
