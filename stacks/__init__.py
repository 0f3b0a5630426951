"""Epochal's deployment as code: CDK stacks per stage.

    store   tables and the bucket          what must outlive everything else
    feed    the indexer on the stream      heads in, epochs out
    api     HTTP API and its functions
    watch   alarms                         AWS only

From the library these import only what deployment and code must agree on: environment names, table keys and
HTTP routes (decision 21). Nothing here reads an account: synthesis needs no credentials, and the same
templates go to every account and region.
"""
