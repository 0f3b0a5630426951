"""Deploys a project's CDK application to the embedded AWS, and finds the stores that are deployed there.

The same stacks go to AWS by `cdk deploy`; here one context value differs, `target=embedded`. What a deployment made is
known by the stacks' outputs. Each stack goes to the account and region that it names, and a store is met there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from epochal.contrib.local import cdk, ministack, processes, remembered_deployment
from epochal.contrib.local.assembly import Stack
from epochal.contrib.local.endpoint import Endpoint
from epochal.contrib.local.errors import NotRunning, OutputMissing, StoreUnclear
from epochal.contrib.local.processes import Server, Tell
from epochal.contrib.local.programs import Places
from epochal.contrib.local.remembered_deployment import Outputs, RememberedDeployment, environments_of
from epochal.deployment import Deployment
from epochal.dynamo.interpreter import interpreter, open_deployment
from epochal.lazy_dataclasses import dataclass
from epochal.settings import FOUND_BY, Settings, setting_of_output

INDEX, BUCKET = FOUND_BY

API = "ApiId"
"""The output that names the HTTP API of a store, where it has one."""

API_URL = "EPOCHAL_API_URL"
"""The variable that tells a shell where the HTTP API answers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalStore:
    """A store deployed to the embedded AWS: its name, endpoint, settings and HTTP API.

    Attributes:
        name: prefix of the store's outputs, or else the name of its stack.
        endpoint: the embedded AWS in the account and region of the store, for clients of its tables and bucket.
        settings: settings from the outputs: tables, what their keys are made with, and the bucket.
        api_id: id of the HTTP API; empty where the store has none.
    """

    name: str
    endpoint: Endpoint
    settings: Settings
    api_id: str = ""

    @property
    def api_url(self) -> str:
        """URL of the HTTP API, without a slash at its end or a host name to resolve; empty for none."""
        return f"{self.endpoint.url}/_aws/execute-api/{self.api_id}/$default" if self.api_id else ""

    @property
    def variables(self) -> dict[str, str]:
        """Environment variables that point AWS tools, commands and programs at the store.

        They are addresses, made-up credentials and names of tables. Settings that have their default are left out.
        """
        texts = [(setting_of_output(name), text) for name, text in self.settings.outputs().items()]
        settings = {
            setting.variable: text
            for setting, text in texts
            if setting is not None and setting.parse(text, setting.output) != setting.default
        }
        api = {API_URL: self.api_url} if self.api_id else {}
        return self.endpoint.environment({}) | settings | api

    def open(self) -> Deployment:
        """Open the store as a deployment, with its streams, tagged events, feed and so on."""
        return open_deployment(
            self.settings,
            execute=interpreter(self.endpoint.client("dynamodb")),
            s3=self.endpoint.client("s3"),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalDeployment:
    """The deployed stores of a project; attributes are those of the store where there is one only.

    Where there are several, `store` returns one of them by name.
    """

    endpoint: Endpoint
    stores: tuple[LocalStore, ...]

    def store(self, name: str | None = None) -> LocalStore:
        """Return the store of this name, or without a name the only one; raise unless exactly one matches.

        Raises:
            OutputMissing: no store is deployed.
            StoreUnclear: no store has the name, or without a name there are several.
        """
        if not self.stores:
            raise OutputMissing(INDEX)
        matching = [store for store in self.stores if name in (None, store.name)]
        if len(matching) != 1:
            raise StoreUnclear([store.name for store in self.stores], name)
        return matching[0]

    @property
    def settings(self) -> Settings:
        """Settings of the only store."""
        return self.store().settings

    @property
    def api_id(self) -> str:
        """Id of the only store's HTTP API; empty where the store has none."""
        return self.store().api_id

    @property
    def api_url(self) -> str:
        """URL of the only store's HTTP API; empty where the store has none."""
        return self.store().api_url

    @property
    def variables(self) -> dict[str, str]:
        """Environment variables that point AWS tools, commands and programs at the only store."""
        return self.store().variables

    def open(self) -> Deployment:
        """Open the only store as a deployment."""
        return self.store().open()


def deploy(
    places: Places,
    server: Server,
    *,
    app: str | None = None,
    context: Mapping[str, str] | None = None,
    tell: Tell = str,
) -> LocalDeployment:
    """Deploy or update every stack of a project on `server`, and return the deployment.

    Takes ten seconds or more.

    Args:
        places: the project to deploy.
        server: a running embedded AWS.
        app: the command of the project's CDK application, as `python app.py`, where it is not that of cdk.json.
        context: context values of the CDK application beside the target, `{"stage": "dev"}`.
        tell: function that takes a line for every resource that is made.

    Raises:
        ProgramMissing: Node is not installed, or npm, where the CDK command line has to be fetched.
        LookupNeeded: the application looks something up in an account that is not here.
        AccountRefused: a stack names an account that does not have twelve digits.
        CommandFailed: the deployment failed; carries the reason of each resource that was refused, or else the end of
            its output.
    """
    tell("synthesising the stacks")
    assembly = cdk.synthesise(
        places,
        ministack.endpoint(server),
        work=server.directory,
        app=app,
        context={"target": "embedded"} | dict(context or {}),
        tell=tell,
    )
    environments = environments_of(assembly)
    for environment in environments:
        stacks = [stack for stack in assembly.stacks if stack.environment == environment]
        cdk.prepare_account(stacks, ministack.endpoint(server, environment))
    cdk.deploy(places, ministack.endpoint(server, assembly.home), assembly, tell=tell)
    for environment in environments:
        make_fifo(ministack.endpoint(server, environment))
        set_recursive_loops(
            ministack.endpoint(server, environment),
            [stack.name for stack in assembly.stacks if stack.environment == environment],
        )
    deployed = RememberedDeployment(home=assembly.home, stacks=tuple(_outputs(assembly.stacks, server)))
    remembered_deployment.remember(server, deployed)
    return _running_deployment(server, deployed)


def current(places: Places) -> LocalDeployment:
    """Return what is deployed on the project's embedded AWS; raise `NotRunning` if nothing is.

    It is the embedded AWS that `ministack.up` started.

    Raises:
        NotRunning: the embedded AWS is not running, or nothing is deployed to it.
    """
    server = ministack.require(places)
    deployed = remembered_deployment.remembered(server)
    if deployed is None:
        raise NotRunning("nothing is deployed to the embedded AWS: run `epochal local up`")
    return _running_deployment(server, deployed)


def current_if_any(places: Places) -> LocalDeployment | None:
    """Return the deployment on the embedded AWS that `ministack.up` started; None if there is none."""
    try:
        return current(places)
    except NotRunning:
        return None


def _outputs(stacks: Sequence[Stack], server: Server) -> Iterator[Outputs]:
    """Yield the outputs of each stack, as CloudFormation describes them.

    The outputs that CDK writes go by names of stacks, which may be the same in several environments.
    """
    names = Counter(entry.name for entry in stacks)
    for stack in stacks:
        client = ministack.endpoint(server, stack.environment).client("cloudformation")
        (described,) = client.describe_stacks(StackName=stack.name)["Stacks"]
        yield Outputs(
            stack=stack.name if names[stack.name] == 1 else stack.id,
            environment=stack.environment,
            values={entry["OutputKey"]: entry["OutputValue"] for entry in described.get("Outputs", ())},
        )


def _running_deployment(server: Server, deployed: RememberedDeployment) -> LocalDeployment:
    """Make a deployment with the stores of the remembered stacks on a server."""
    return LocalDeployment(
        endpoint=ministack.endpoint(server, deployed.home),
        stores=stores_in(deployed.stacks, server.url),
    )


def stores_in(stacks: Sequence[Outputs], url: str) -> tuple[LocalStore, ...]:
    """Return the stores that the outputs of stacks describe, on the embedded AWS at `url`.

    The outputs of a store may begin with a name, and are then in one stack; where they do not, and there is one store,
    they may be in several.

    Raises:
        OutputMissing: a store has no output of a bucket.
    """
    stores = [
        (stack, name.removesuffix(INDEX)) for stack in stacks for name in stack.values if name.endswith(INDEX)
    ]
    if len(stores) == 1 and not stores[0][1]:
        ((stack, _),) = stores
        around = [other for other in stacks if other.environment == stack.environment]
        values = {name: value for other in around for name, value in other.values.items()}
        return (_store(stack.stack, values, stack, url),)
    return tuple(
        _store(
            prefix or stack.stack,
            {
                name.removeprefix(prefix): value
                for name, value in stack.values.items()
                if name.startswith(prefix)
            },
            stack,
            url,
        )
        for stack, prefix in stores
    )


def _store(name: str, values: Mapping[str, str], stack: Outputs, url: str) -> LocalStore:
    """Make a store from outputs without name prefixes; raise `OutputMissing` if they have no bucket.

    Raises:
        OutputMissing: there is no output of a bucket.
    """
    if BUCKET not in values:
        raise OutputMissing(BUCKET)
    environment = stack.environment
    return LocalStore(
        name=name,
        endpoint=Endpoint(url=url, account=environment.account, region=environment.region),
        settings=Settings.from_outputs(values),
        api_id=values.get(API, ""),
    )


# Corrections after a deployment of properties that the embedded AWS's CloudFormation ignores.
#
# It makes every topic a standard one, whatever the template says, and a message that a standard topic delivers to a
# FIFO queue has no message group. The embedded SNS knows FIFO topics, and can turn a topic into one. Likewise the
# embedded Lambda ends functions that call themselves through a queue after 16 calls, unless `RecursiveLoop` is set.

SUFFIX = ".fifo"
"""Suffix of the names of FIFO topics, and of no others."""


def make_fifo(endpoint: Endpoint) -> None:
    """Set the FIFO attribute of every topic on the embedded AWS whose name ends in `.fifo`.

    FIFO topics stay as they are.
    """
    sns = endpoint.client("sns")
    for page in sns.get_paginator("list_topics").paginate():
        for topic in page["Topics"]:
            if topic["TopicArn"].endswith(SUFFIX):
                sns.set_topic_attributes(
                    TopicArn=topic["TopicArn"], AttributeName="FifoTopic", AttributeValue="true"
                )


def set_recursive_loops(endpoint: Endpoint, stacks: Iterable[str]) -> None:
    """Set `RecursiveLoop` of the deployed functions whose templates have this property."""
    cloudformation, lambda_ = endpoint.clients("cloudformation", "lambda")
    for stack in stacks:
        resources = cloudformation.get_template(StackName=stack)["TemplateBody"]["Resources"]
        loops = {
            name: resource["Properties"]["RecursiveLoop"]
            for name, resource in resources.items()
            if "RecursiveLoop" in resource.get("Properties", {})
        }
        for name, value in loops.items():
            described = cloudformation.describe_stack_resource(StackName=stack, LogicalResourceId=name)
            function = described["StackResourceDetail"]["PhysicalResourceId"]
            lambda_.put_function_recursion_config(FunctionName=function, RecursiveLoop=value)


# One embedded AWS for the processes of a test run: the first process deploys, the last one stops it.
#
# A deployment of `epochal local up` for the project is used as it is, and left running.


@contextmanager
def shared(places: Places, folder: Path, *, app: str | None = None) -> Iterator[LocalDeployment]:
    """Yield the project's running deployment, or else one that processes share and the last of them stops.

    Processes with the same `folder` share a deployment: the first one deploys, the last one stops the embedded AWS.

    Raises:
        LocalError: see `ministack.up` and `deploy`.
    """
    import fcntl  # noqa: PLC0415  Windows has none, where commands must start all the same

    running = current_if_any(places)
    if running is not None:
        yield running
        return
    folder.mkdir(parents=True, exist_ok=True)
    own = Places(places.root, apart=folder)
    with (folder / "users").open("w") as users:
        try:
            with _alone(folder):
                # The lock is held as long as this process uses the deployment, and freed however the process ends.
                fcntl.flock(users, fcntl.LOCK_SH)
                current = current_if_any(own) or _deployed(own, app)
            yield current
        finally:
            with _alone(folder):
                fcntl.flock(users, fcntl.LOCK_UN)
                if _is_last(users.fileno()):
                    ministack.down(own)


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Hold the folder's lock in this block, so that no other process enters or leaves meanwhile."""
    import fcntl  # noqa: PLC0415  likewise

    with (folder / "door").open("w") as door:
        fcntl.flock(door, fcntl.LOCK_EX)
        yield


def _is_last(users: int) -> bool:
    """Return whether no other process locks the file of the descriptor `users`; if so, lock it."""
    import fcntl  # noqa: PLC0415  likewise

    try:
        fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _deployed(places: Places, app: str | None) -> LocalDeployment:
    """Start an embedded AWS on a free port, and deploy the project to it."""
    server = ministack.up(places, port=processes.free_port())
    return deploy(places, server, app=app)
