"""Sekiban's tables over HTTP: tagged events below `/dcb`, by the operations that those in pages have, and states.

tagged          on tagged events, which have more here than elsewhere
operations      on states of projections: each declares what it takes, performs it and shows the outcome
routes          the operations, which are read in a cold start
"""
