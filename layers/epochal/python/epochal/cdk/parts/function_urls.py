"""Functions' own URLs in place of the gateway: a million requests cost a dollar less.

A URL takes every request that the gateway would route to its function, signed with SigV4. It has no routes: a policy
names functions (`append`, `replay`, `feed`), and there are no tokens, limits of requests, or access logs.
"""

from __future__ import annotations

from collections.abc import Mapping

from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from epochal.cdk.parts.outputs import output


def function_urls(scope: Construct, functions: Mapping[str, lambda_.Function], outputs: str) -> None:
    """Make a URL for each function, and the outputs `AppendUrl`, `ReplayUrl` and `FeedUrl`.

    Args:
        outputs: prefix of the outputs' names.
    """
    for name, function in functions.items():
        url = function.add_function_url(auth_type=lambda_.FunctionUrlAuthType.AWS_IAM).url
        output(scope, f"{name.capitalize()}Url", url, f"Where the function {name} is", group=outputs)
