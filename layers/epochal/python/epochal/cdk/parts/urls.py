"""Functions' own addresses in place of the gateway: a request costs a dollar a million less.

A URL takes whatever the gateway would route to its function, signed with SigV4. It knows no routes: a policy names
functions (`append`, `replay`, `feed`), and there are no tokens, limits of requests, or access logs.
"""

from __future__ import annotations

from collections.abc import Mapping

from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from epochal.cdk.parts.outputs import output


def function_urls(scope: Construct, functions: Mapping[str, lambda_.Function], outputs: str) -> None:
    """A URL for each function, and an output that tells it: `AppendUrl`, `ReplayUrl`, `FeedUrl`."""
    for name, function in functions.items():
        url = function.add_function_url(auth_type=lambda_.FunctionUrlAuthType.AWS_IAM).url
        output(scope, f"{name.capitalize()}Url", url, f"Where the function {name} is", of=outputs)
