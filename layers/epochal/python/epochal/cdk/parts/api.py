"""The HTTP API: one gateway route for each of the library's routes, three functions behind them. A stage may have the
functions' own URLs instead (`function_urls`).

Routes are explicit, instead of one `$default` route that a function takes apart: so permissions, JWT scopes, throttling
and metrics are per operation, and an unknown path is refused before any function runs.

Callers sign with SigV4 (an IAM policy names the routes they may call) or, where the stage has an issuer,
bring its tokens. There is no third way: no route is open.
"""

from __future__ import annotations

import json
from typing import Final, cast

from aws_cdk import ArnFormat, Duration, Stack
from aws_cdk import aws_apigatewayv2 as apigateway
from aws_cdk import aws_certificatemanager as acm
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from aws_cdk.aws_apigatewayv2_authorizers import HttpIamAuthorizer, HttpJwtAuthorizer
from aws_cdk.aws_apigatewayv2_integrations import HttpLambdaIntegration
from constructs import Construct

from epochal.cdk.parts import grants
from epochal.cdk.parts.function_settings import settings_of
from epochal.cdk.parts.function_urls import function_urls
from epochal.cdk.parts.functions import MEMORY_MB, WAITING_MB, Function, Shared, layer, log_group
from epochal.cdk.parts.limits import check_routes
from epochal.cdk.parts.outputs import output
from epochal.cdk.stages import Stage
from epochal.http.operation import Operation
from epochal.http.routes import operations
from epochal.settings import REQUEST_SECONDS

TIMEOUT: Final = Duration.seconds(int(REQUEST_SECONDS) + 3)
"""Timeout of a function. A request is decided within REQUEST_SECONDS; three more seconds are for writing the answer.
The gateway gives up after 30 seconds."""

FUNCTIONS: Final = ("append", "replay", "feed")

ACCESS_LOG: Final = {
    "id": "$context.requestId",
    # The route, not the path: names of streams may identify people.
    "route": "$context.routeKey",
    "status": "$context.status",
    "error": "$context.error.message",
    "ms": "$context.responseLatency",
    "caller": "$context.identity.userArn",
    "ip": "$context.identity.sourceIp",
}
"""Fields of a line of the access log. Each byte costs money with each request; CloudWatch adds the time of a line."""

_CLASSES: Final = {"infrequent": "INFREQUENT_ACCESS", "standard": "STANDARD"}


class Api:
    """The functions `append`, `replay` and `feed` of the HTTP API, and the gateway that calls them.

    Attributes:
        functions: the functions by name.
        gateway: the gateway; None where the functions have URLs instead.
    """

    def __init__(self, scope: Construct, shared: Shared) -> None:
        """Make the functions, and the gateway or the functions' URLs."""
        stage = shared.stage
        self._scope: Final = scope
        self._outputs: Final = shared.outputs
        self.functions: Final = self._functions(shared)
        self.gateway: Final = self._gateway(stage) if stage.api == "gateway" else None
        if self.gateway is None:
            function_urls(scope, self.functions, shared.outputs)

    def _functions(self, shared: Shared) -> dict[str, lambda_.Function]:
        """Make the functions of the API; return them by name."""
        stage, stores = shared.stage, shared.stores
        settings = settings_of(stage, stores)
        folder = shared.code.schemas
        checks = (
            layer(self._scope, "EventSchemas", shared.code, folder, "Schemas of events") if folder else None
        )
        functions = {
            "append": "appends, prunes and deletes",
            "replay": "reads what is stored",
            "feed": "reads the feed",
        }
        return {
            name: Function(
                self._scope,
                name.capitalize(),
                name=name,
                description=description,
                shared=shared,
                timeout=TIMEOUT,
                environment=settings.environment(name),
                memory_mb=WAITING_MB if name == "feed" else MEMORY_MB,
                allowed=grants.allowed(name, stage, stores),
                more_layers=[checks] if checks and name == "append" else [],
            ).function
            for name, description in functions.items()
        }

    def _gateway(self, stage: Stage) -> apigateway.HttpApi:
        """Make the gateway with its stage, routes, domain and outputs."""
        api = apigateway.HttpApi(
            self._scope,
            "Api",
            api_name=stage.named("api"),
            description="Epochal: append to streams, replay them, follow the feed",
            create_default_stage=False,
        )
        live = self._stage(stage, api)
        output(self._scope, "ApiUrl", live.url, "Where the HTTP API is", group=self._outputs)
        if stage.domain_name:
            self._domain(stage, api, live)
        output(self._scope, "ApiId", api.api_id, "Names the API in policies and metrics", group=self._outputs)
        return api

    def _domain(self, stage: Stage, api: apigateway.HttpApi, live: apigateway.HttpStage) -> None:
        """Make a custom domain for the gateway, and outputs with the target of its DNS alias.

        The owner of the domain makes the alias, since DNS may be anywhere.
        """
        certificate = acm.Certificate.from_certificate_arn(
            self._scope, "Certificate", stage.domain_certificate
        )
        domain = apigateway.DomainName(
            self._scope, "Domain", domain_name=stage.domain_name, certificate=certificate
        )
        apigateway.ApiMapping(self._scope, "DomainMapping", api=api, domain_name=domain, stage=live)
        for name, value, description in (
            ("DomainTarget", domain.regional_domain_name, "What an alias of the domain leads to"),
            ("DomainZone", domain.regional_hosted_zone_id, "The hosted zone of that name"),
        ):
            output(self._scope, name, value, description, group=self._outputs)

    def _routes(self, stage: Stage, api: apigateway.HttpApi) -> list[apigateway.HttpRoute]:
        """Make a gateway route for each operation, with authorizer and scopes; raise `BadSetting` if too many.

        Raises:
            BadSetting: a function has more routes than its resource policy has room for.
        """
        for name in self.functions:
            paths = [operation.path for operation in operations() if operation.function == name]
            check_routes(self._scope, stage, name, paths)
        authorizer = _authorizer(stage)
        integrations = {
            name: HttpLambdaIntegration(f"{name.capitalize()}Integration", function)
            for name, function in self.functions.items()
        }
        return [
            route
            for operation in operations()
            for route in api.add_routes(
                path=operation.path,
                methods=[apigateway.HttpMethod(operation.method)],
                integration=integrations[operation.function],
                authorizer=authorizer,
                authorization_scopes=_scopes(stage, operation),
            )
        ]

    def _stage(self, stage: Stage, api: apigateway.HttpApi) -> apigateway.HttpStage:
        """Make the API's only stage with its routes, throttling limits and, if configured, access logs.

        The stage depends on the routes, since AWS refuses a limit for a route that does not exist yet.
        """
        live = apigateway.HttpStage(
            self._scope,
            "Live",
            http_api=api,
            stage_name="$default",
            auto_deploy=True,
            throttle=apigateway.ThrottleSettings(
                rate_limit=stage.requests_per_second, burst_limit=stage.burst
            ),
        )
        live.node.add_dependency(*self._routes(stage, api))
        resource = cast(apigateway.CfnStage, live.node.default_child)
        resource.route_settings = {
            key: {"ThrottlingRateLimit": most, "ThrottlingBurstLimit": most}
            for key, most in stage.limits().items()
        }
        if stage.access_logs:
            resource.access_log_settings = self._access_log(stage)
        return live

    def _access_log(self, stage: Stage) -> apigateway.CfnStage.AccessLogSettingsProperty:
        """Make the log group of the access log; return the stage's property that refers to it."""
        # A log group under /aws/vendedlogs/ takes no space in the account's one resource policy for logs.
        # A group keeps its class for life, so each class has a group of its own name.
        kind = stage.access_log_class
        group = log_group(
            self._scope,
            f"AccessLog{kind.title()}",
            name=f"/aws/vendedlogs/{stage.named('api')}-{kind}",
            stage=stage,
        )
        cast(logs.CfnLogGroup, group.node.default_child).log_group_class = _CLASSES[kind]
        arn = Stack.of(self._scope).format_arn(
            service="logs",
            resource="log-group",
            resource_name=group.log_group_name,
            arn_format=ArnFormat.COLON_RESOURCE_NAME,
        )
        caller = {"caller": "$context.authorizer.claims.sub"} if stage.jwt_issuer else {}
        line = {**ACCESS_LOG, **caller}
        return apigateway.CfnStage.AccessLogSettingsProperty(
            destination_arn=arn, format=json.dumps(line, separators=(",", ":"))
        )


def _authorizer(stage: Stage) -> apigateway.IHttpRouteAuthorizer:
    """Return the authorizer of routes: the stage's JWT issuer if it has one, else IAM."""
    if stage.jwt_issuer:
        return HttpJwtAuthorizer("Issuer", stage.jwt_issuer, jwt_audience=list(stage.jwt_audience))
    return HttpIamAuthorizer()


def _scopes(stage: Stage, operation: Operation) -> list[str] | None:
    """Return the scopes of which a token must carry one for an operation; None without a JWT issuer.

    Signed requests have no scopes: IAM policies name routes.
    """
    return list(stage.jwt_scopes.get(operation.scope, (operation.scope,))) if stage.jwt_issuer else None
