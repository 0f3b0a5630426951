"""The embedded AWS on a developer's machine: start it, deploy to it, stop it.

`programs` knows the programs that must be there and how to get them, `processes` runs servers without leaking them,
`ministack` is the server, `deploy` drives the real CDK command line against it.
Nothing here runs in a deployed function.
"""
