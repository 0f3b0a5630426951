"""Real flights through a real deployment: `make demo`.

zones, dataset         the flights of 2013, read from the package that ships them
happenings             a flight as events, all flights in the order of time, grouped into appends
aircraft               the snapshot that travels with every append
ledger, verification   what was sent, against what the feed says
client, routes         the store over HTTP, or through the library
writers                several writers at once, each stream's order kept
display, demo          what is shown at each step, and the steps
"""
