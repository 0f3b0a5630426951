"""The embedded AWS on a developer's machine: start it, deploy to it, stop it; DynamoDB Local beside it.

`programs` knows the programs that must be there and how to get them, `processes` runs servers without leaking them,
`ministack` and `dynamodb_local` are the two servers, `deploy` drives the real CDK command line against the first.
Nothing here runs in a deployed function.
"""
