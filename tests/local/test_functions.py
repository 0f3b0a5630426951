"""Functions of the embedded AWS run against their code and their layers alone, as on AWS."""

from __future__ import annotations

import io
import json
import sys
import zipfile
from itertools import count
from typing import Any, Final

import pytest

from epochal.contrib.local.endpoint import Endpoint
from epochal.contrib.local.function_logs import logs_of

pytestmark = pytest.mark.embedded

TRUST = {"Effect": "Allow", "Principal": {"Service": "lambda.amazonaws.com"}, "Action": "sts:AssumeRole"}
UNABLE: Final = "Unable to import module 'work': No module named '{}'"
_numbers = count()


def zipped(**files: str) -> bytes:
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w") as archive:
        for name, text in files.items():
            archive.writestr(zipfile.ZipInfo(f"{name.replace('__', '/')}.py"), text)
    return held.getvalue()


class Made:
    """A function, and what it answers and logs."""

    def __init__(self, embedded: Endpoint, code: str, handler: str = "work.handler", **layer: str) -> None:
        self.lambdas, self.logs, iam = embedded.clients("lambda", "logs", "iam")
        self.name = f"made-{next(_numbers)}"
        trust = json.dumps({"Version": "2012-10-17", "Statement": [TRUST]})
        role = iam.create_role(RoleName=self.name, AssumeRolePolicyDocument=trust)["Role"]["Arn"]
        layers = []
        if layer:
            content = {"ZipFile": zipped(**{f"python__{name}": text for name, text in layer.items()})}
            layers = [
                self.lambdas.publish_layer_version(LayerName=self.name, Content=content)["LayerVersionArn"]
            ]
        self.lambdas.create_function(
            FunctionName=self.name,
            Runtime=f"python3.{sys.version_info.minor}",
            Role=role,
            Handler=handler,
            Timeout=60,  # of three seconds, a busy machine takes more to import the SDK
            Code={"ZipFile": zipped(work=code)},
            Layers=layers,
        )

    def answer(self) -> Any:
        return json.loads(self.lambdas.invoke(FunctionName=self.name, Payload=b"{}")["Payload"].read())

    def log(self) -> str:
        found = self.logs.filter_log_events(logGroupName=f"/aws/lambda/{self.name}")["events"]
        return "\n".join(each["message"] for each in found)


@pytest.mark.parametrize("package", ["pytest", "rich", "epochal", "ministack"])
def test_what_only_the_host_has_cannot_be_imported(embedded: Endpoint, package: str) -> None:
    """In the words of Lambda, and with the place where it is imported in the log."""
    made = Made(embedded, f"import json\nimport {package}\n\ndef handler(event, context): ...\n")
    told = UNABLE.format(package)
    assert made.answer()["errorMessage"] == told
    assert 'work.py", line 2, in <module>' in made.log()
    assert told in made.log()


def test_the_standard_library_and_the_sdk_are_there_without_a_layer(embedded: Endpoint) -> None:
    code = """
import sqlite3, zoneinfo
import boto3, botocore, dateutil, jmespath, s3transfer, six, urllib3
from importlib.metadata import version

def handler(event, context):
    return [version("boto3"), boto3.client("sts").get_caller_identity()["Account"]]
"""
    import boto3  # noqa: PLC0415  only its version is asked for

    assert Made(embedded, code).answer() == [boto3.__version__, "000000000000"]


def test_code_comes_before_layers_and_layers_before_the_sdk(embedded: Endpoint) -> None:
    code = "import work, six\n\ndef handler(event, context):\n    return [work.__file__[-13:], six.mine]\n"
    made = Made(embedded, code, work="raise RuntimeError('of the layer')", six="mine = 'layer'")
    assert made.answer() == ["/code/work.py", "layer"]


def test_a_layer_is_unpacked_once_and_each_function_sees_its_own(embedded: Endpoint) -> None:
    code = "import os, six\n\ndef handler(event, context):\n    return [os.stat(six.__file__).st_ino, six.mine]\n"
    one, same, other = (Made(embedded, code, six=f"mine = {number}").answer() for number in (1, 1, 2))
    assert one == same
    assert (one[1], other[1]) == (1, 2)
    assert one[0] != other[0]


@pytest.mark.parametrize(
    ("code", "handler", "told"),
    [
        ("x = {}['absent']\n", "work.handler", "'absent'"),
        ("def other(event, context): ...\n", "work.handler", "module 'work' has no attribute 'handler'"),
        (
            "def __getattr__(name):\n    import rich\n",
            "work.named",
            UNABLE.format("rich"),
        ),
    ],
    ids=["a module that raises", "no handler", "a handler that is looked up"],
)
def test_a_module_that_fails_is_told_of_with_its_trace(
    embedded: Endpoint, code: str, handler: str, told: str
) -> None:
    made = Made(embedded, code, handler)
    for _ in range(2):  # a second environment fails alike
        assert made.answer()["errorMessage"] == told
    assert made.log().count("Traceback") >= 2


def test_prints_and_the_trace_of_what_a_handler_raises_are_in_the_logs_that_are_followed(
    embedded: Endpoint,
) -> None:
    code = "def handler(event, context):\n    print('began', event)\n    return {}['price']\n"
    made = Made(embedded, code)
    logs = logs_of([embedded], made.name)
    assert logs.more() == []
    prints = 0
    for _ in range(20):  # ministack waits 50 ms for prints: on a busy machine some are in no log
        assert made.answer()["errorMessage"] == "'price'"
        shown = [text for each in logs.more() for text in each.lines()]
        assert shown[-1] == "KeyError: 'price'"
        assert any('work.py", line 3, in handler' in each for each in shown)
        prints += shown.count("began {}")
        if prints > 1:
            return
    pytest.fail(f"{prints} prints are in the logs")
