"""Epochal's deployment as code: CDK stacks per stage.

    store   tables and the bucket          what must outlive everything else
    feed    the indexer on the stream      heads in, epochs out
    api     HTTP API and its functions
    watch   alarms                         AWS only

What the stacks hold is made by the library's constructs (`epochal.cdk`), which anyone's app may use. Nothing here
reads an account: synthesis needs no credentials, and the same templates go to every account and region.
"""
