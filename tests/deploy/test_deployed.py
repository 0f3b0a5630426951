"""The real stacks, deployed by the real command line."""

from __future__ import annotations

import urllib.error
import urllib.request

import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from epochal.local.deploy import LocalDeployment
from epochal.local.endpoint import KEY, SECRET


def test_a_deployment_names_tables_and_a_bucket_that_are_there(deployment: LocalDeployment) -> None:
    tables = deployment.endpoint.client("dynamodb").list_tables()["TableNames"]
    assert {deployment.settings.table("tips"), deployment.settings.index_table} <= set(tables)
    deployment.endpoint.client("s3").head_bucket(Bucket=deployment.settings.bucket)


def test_a_signed_request_to_the_api_url_is_answered(deployment: LocalDeployment) -> None:
    signed = AWSRequest("GET", f"{deployment.api_url}/health")
    SigV4Auth(Credentials(KEY, SECRET), "execute-api", deployment.endpoint.region).add_auth(signed)
    request = urllib.request.Request(signed.url, headers=dict(signed.headers))
    with urllib.request.urlopen(request) as answer:
        assert answer.status == 200


def test_an_unsigned_request_is_refused(deployment: LocalDeployment) -> None:
    with pytest.raises(urllib.error.HTTPError, match="403"):
        urllib.request.urlopen(f"{deployment.api_url}/health")
