"""An account as CloudFormation keeps it, which judges updates by templates: what AWS refuses, and emulators do not.

    stacks change in the order in which they are deployed, each against what the others are by then
    what is new is made before what is old goes, so that of one name there are never two
    what is retained stays when its stack has no more of it, and its name is taken
    what only a new resource can have, the schemas say that cfn-lint ships (`createOnlyProperties`)

Templates are what `cdk synth` writes. A resource is known by its name, or else by its stack, its id and how often it
was replaced; so a value says the same whether a template names a table or refers to it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Final

import cfnlint

Template = Mapping[str, Any]
Properties = dict[str, Any]
Key = tuple[str, ...]
"""A type, and what no two resources of it may have in common."""

PLACE: Final = {
    "AWS::AccountId": "123456789012",
    "AWS::Partition": "aws",
    "AWS::Region": "eu-west-1",
    "AWS::URLSuffix": "amazonaws.com",
}
TABLE: Final = "AWS::DynamoDB::GlobalTable"
BUCKET: Final = "AWS::S3::Bucket"
MOST: Final = {"Parameters": 200, "Resources": 500, "Outputs": 200}
"""Of a template."""

ROUTE: Final = "AWS::ApiGatewayV2::Route"
STAGE: Final = "AWS::ApiGatewayV2::Stage"

ALONE: Final[Mapping[str, Key]] = {
    ROUTE: ("ApiId", "RouteKey"),
    "AWS::Events::Rule": ("Name",),
    "AWS::Lambda::EventSourceMapping": ("FunctionName", "EventSourceArn"),
    "AWS::Lambda::Url": ("TargetFunctionArn",),
    "AWS::SNS::Subscription": ("TopicArn", "Protocol", "Endpoint"),
    "AWS::SNS::Topic": ("TopicName",),
    "AWS::SQS::Queue": ("QueueName",),
}
"""What services let one resource have, where AWS's identifier is another."""

_DATA: Final = Path(cfnlint.__file__).parent / "data" / "schemas"


@dataclass(slots=True)
class Stack:
    """A deployed stack: its template, and its resources' properties with all references resolved."""

    template: Template
    properties: dict[str, Properties] = field(default_factory=dict)
    replaced: dict[str, int] = field(default_factory=dict)
    exports: dict[str, Any] = field(default_factory=dict)

    def resource(self, id_: str) -> Mapping[str, Any]:
        found: Mapping[str, Any] = self.template["Resources"][id_]
        return found

    def key(self, id_: str) -> Key | None:
        return key_of(self.resource(id_)["Type"], self.properties[id_])


class Account:
    """The stacks of an account by name, and the resources that deleted stacks have retained.

    Attributes:
        left: what no stack has any more and is there all the same.
        deleted: what held data and went with its stack's consent.
    """

    def __init__(self) -> None:
        self.stacks: Final[dict[str, Stack]] = {}
        self.left: Final[set[Key]] = set()
        self.deleted: Final[list[Key]] = []

    def deploy(self, templates: Mapping[str, Template]) -> list[str]:
        """Update stacks in the order of `templates`; return what AWS would refuse."""
        return [
            f"{name}: {refused}"
            for name, template in templates.items()
            for refused in self._update(name, template)
        ]

    def take_back(self, name: str, template: Template) -> list[str]:
        """Import retained resources into a stack, as `cdk import` does, by the names in its template."""
        if not self.left:
            return []
        now: Template = self.stacks[name].template if name in self.stacks else {"Resources": {}}
        made = _Update(self, name, template).after
        taken = {id_: each for id_, each in template["Resources"].items() if made.key(id_) in self.left}
        self.left.difference_update(key for id_ in taken if (key := made.key(id_)))
        unsaid = [
            f"{name}: {id_} has no DeletionPolicy"
            for id_, each in taken.items()
            if "DeletionPolicy" not in each
        ]
        return unsaid + self.deploy({name: {**now, "Resources": {**now["Resources"], **taken}}})

    def destroy(self, name: str) -> None:
        """Delete a stack."""
        stack = self.stacks.pop(name)
        for id_ in stack.template["Resources"]:
            self._let_go(stack, id_)

    def parameter(self, name: str) -> Any:
        """Return a value of Parameter Store; None if it does not exist."""
        for stack in self.stacks.values():
            for id_, each in stack.template["Resources"].items():
                if each["Type"] == "AWS::SSM::Parameter" and stack.properties[id_].get("Name") == name:
                    return stack.properties[id_]["Value"]
        return None

    def taken(self) -> dict[Key, tuple[str, str]]:
        """Return the stack and id of each resource by its unique key; both are empty for retained resources."""
        there = dict.fromkeys(self.left, ("", ""))
        for name, stack in self.stacks.items():
            for id_ in stack.template["Resources"]:
                if key := stack.key(id_):
                    there[key] = (name, id_)
        return there

    def _update(self, name: str, template: Template) -> Iterator[str]:
        update = _Update(self, name, template)
        yield from update.refusals()
        before, after = self.stacks.get(name), update.after
        self.stacks[name] = after
        for id_ in before.template["Resources"] if before else ():
            if id_ not in template["Resources"] and before:
                self._let_go(before, id_)

    def _let_go(self, stack: Stack, id_: str) -> None:
        resource, key = stack.resource(id_), stack.key(id_)
        if key is None:
            return
        if str(resource.get("DeletionPolicy", "")).startswith("Retain") or _stays(
            resource["Type"], stack.properties[id_]
        ):
            self.left.add(key)
        elif resource["Type"] in stateful():
            self.deleted.append(key)


class _Update:
    """The update of one stack."""

    def __init__(self, account: Account, name: str, template: Template) -> None:
        self._account: Final = account
        self._name: Final = name
        self._before: Final = account.stacks.get(name, Stack({"Resources": {}}))
        self._missing: Final[list[str]] = []
        self.after: Final = Stack(template)
        for id_ in template["Resources"]:
            self._known(id_)
        self.after.exports.update(
            (self._resolved(each["Export"]["Name"]), self._resolved(each["Value"]))
            for each in template.get("Outputs", {}).values()
            if "Export" in each
        )

    def refusals(self) -> Iterator[str]:
        """Yield the reasons for which AWS refuses the update."""
        yield from self._missing
        for section, most in MOST.items():
            if len(self.after.template.get(section, {})) > most:
                yield f"has more than {most} {section}"
        yield from self._exports()
        yield from self._names()
        yield from self._route_settings()
        for id_, new in self.after.template["Resources"].items():
            old = self._before.template["Resources"].get(id_)
            if old is None:
                continue
            if old["Type"] != new["Type"]:
                yield f"{id_} cannot become {new['Type']}, it is {old['Type']}"
            elif self._replaced(id_):
                yield from self._replacement(id_)
            else:
                yield from changes_refused(
                    new["Type"], id_, self._before.properties[id_], self.after.properties[id_]
                )

    def _exports(self) -> Iterator[str]:
        """Yield a refusal for each removed or changed export that another stack imports."""
        if not self._before.exports:
            return
        imported = {
            name: other
            for other, stack in self._account.stacks.items()
            if other != self._name
            for name in _imports(stack.template)
        }
        for name, value in self._before.exports.items():
            if name in imported and self.after.exports.get(name) != value:
                what = "changed" if name in self.after.exports else "deleted"
                yield f"export {name} cannot be {what}, {imported[name]} imports it"

    def _names(self) -> Iterator[str]:
        """Yield a refusal for each name that two resources would have, including those that are about to be deleted."""
        taken, own = self._account.taken(), dict[Key, str]()
        for id_ in self.after.template["Resources"]:
            key = self.after.key(id_)
            if key is None:
                continue
            if key in own:
                yield f"{id_} is called as {own[key]}: {key}"
            own[key] = id_
            stack, other = taken.get(key, (self._name, id_))
            if (stack, other) != (self._name, id_):
                yield f"{id_} exists already: {key}, {f'of {stack}' if stack else 'which was left'}"

    def _route_settings(self) -> Iterator[str]:
        """Yield a refusal for settings of removed routes, which API Gateway keeps if an update omits them."""
        for id_, resource in self.after.template["Resources"].items():
            if resource["Type"] != STAGE:
                continue
            api = self.after.properties[id_].get("ApiId")
            routes = {
                self.after.properties[other].get("RouteKey")
                for other, each in self.after.template["Resources"].items()
                if each["Type"] == ROUTE and self.after.properties[other].get("ApiId") == api
            }
            before = self._before.properties.get(id_, {})
            own = self.after.properties[id_].get("RouteSettings", {})
            stays = before.get("RouteSettings", {}) if before.get("ApiId") == api else {}
            for key in sorted({*own, *stays} - routes):
                what = "has" if key in own else "keeps"
                yield f"{id_} {what} settings of the route {key}, which is not there any more"

    def _replacement(self, id_: str) -> Iterator[str]:
        type_, key = self.after.resource(id_)["Type"], self.after.key(id_)
        changed = ", ".join(self._changed_for_ever(id_))
        if key is not None and key == self._before.key(id_):
            yield f"{id_} would be replaced for its {changed}, and there cannot be two: {key}"
        elif type_ in (TABLE, BUCKET):
            yield f"{id_} would be replaced for its {changed}, and what it holds would not come along"

    def _known(self, id_: str) -> str:
        """Return what a reference to a resource resolves to: its name, or its place and number of replacements."""
        if id_ not in self.after.properties:
            self.after.properties[id_] = {}  # in case it refers to itself
            resource = self.after.resource(id_)
            self.after.properties[id_] = self._resolved(resource.get("Properties", {}))
            self.after.replaced[id_] = self._before.replaced.get(id_, 0) + self._replaced(id_)
        key = self.after.key(id_)
        own = key and len(key) == 2 and key[0] not in ALONE
        return key[1] if key and own else f"{self._name}.{id_}#{self.after.replaced.get(id_, 0)}"

    def _replaced(self, id_: str) -> bool:
        old = self._before.template["Resources"].get(id_)
        return bool(old and old["Type"] == self.after.resource(id_)["Type"] and self._changed_for_ever(id_))

    def _changed_for_ever(self, id_: str) -> list[str]:
        """Return the changed properties that only a new resource can have."""
        before, after = self._before.properties[id_], self.after.properties[id_]
        return [
            ".".join(path)
            for path in create_only(self.after.resource(id_)["Type"])
            if _at(before, path) != _at(after, path)
        ]

    def _resolved(self, value: Any) -> Any:
        match value:
            case {"Ref": str(name)} if len(value) == 1:
                return self._referred(name)
            case {"Fn::GetAtt": [str(id_), str(attribute)]}:
                return f"{self._known(id_)}.{attribute}"
            case {"Fn::Join": [str(between), list(parts)]}:
                return between.join(str(self._resolved(each)) for each in parts)
            case {"Fn::Sub": str(text)}:
                return re.sub(r"\$\{([\w:]+)\}", lambda found: str(self._referred(found[1])), text)
            case {"Fn::ImportValue": name}:
                return self._imported(str(self._resolved(name)))
            case dict():
                whole = {key: self._resolved(each) for key, each in value.items()}
                return {key: each for key, each in whole.items() if each != "AWS::NoValue"}
            case list():
                return [self._resolved(each) for each in value]
            case _:
                return value

    def _referred(self, name: str) -> Any:
        if name in self.after.template["Resources"]:
            return self._known(name)
        parameter = self.after.template.get("Parameters", {}).get(name)
        if parameter is None or not parameter["Type"].startswith("AWS::SSM::Parameter::Value"):
            return PLACE.get(name, name) if parameter is None else parameter.get("Default")
        value = self._account.parameter(parameter["Default"])
        if value is None:
            self._missing.append(f"there is no parameter {parameter['Default']}")
        return value

    def _imported(self, name: str) -> Any:
        for stack in self._account.stacks.values():
            if name in stack.exports:
                return stack.exports[name]
        self._missing.append(f"nobody exports {name}")
        return None


def changes_refused(type_: str, id_: str, before: Properties, after: Properties) -> Iterator[str]:
    """Yield the reasons for which a service refuses to change an existing resource."""
    if type_ == TABLE:
        yield from (f"{id_} {refused}" for refused in _table_refused(before, after))
    if type_ == "AWS::Kinesis::Stream":
        old, new = (int(each.get("ShardCount", 0)) for each in (before, after))
        if old and new and not old / 2 <= new <= old * 2:
            yield f"{id_} cannot go from {old} shards to {new}, but to half or twice as many at most"
    if type_.startswith("Custom::") and before.get("ServiceToken") != after.get("ServiceToken"):
        yield f"{id_} cannot have another ServiceToken"


def key_of(type_: str, properties: Properties) -> Key | None:
    """Return what must be unique for a fully specified resource, which usually is the name."""
    values = [properties.get(name) for name in ALONE.get(type_) or _identifier(type_)]
    return (type_, *map(str, values)) if values and None not in values else None


@cache
def create_only(type_: str) -> list[Sequence[str]]:
    """Return the paths of properties whose change replaces the resource."""
    schema = _schema(type_)
    pointers = schema.get("createOnlyProperties", []) + schema.get("conditionalCreateOnlyProperties", [])
    return [pointer.split("/")[2:] for pointer in pointers]


@cache
def stateful() -> frozenset[str]:
    """Return the resource types that contain data."""
    found = json.loads((_DATA.parent / "AdditionalSpecs" / "StatefulResources.json").read_text())
    return frozenset(found["ResourceTypes"])


@cache
def _identifier(type_: str) -> Key:
    """Return the properties that identify a resource in AWS, as far as templates specify them."""
    schema = _schema(type_)
    if set(schema.get("primaryIdentifier", [])) & set(schema.get("readOnlyProperties", [])):
        return ()
    return tuple(pointer.removeprefix("/properties/") for pointer in schema.get("primaryIdentifier", []))


@cache
def _schemas() -> dict[str, str]:
    found: dict[str, str] = json.loads((_DATA / "providers" / f"{PLACE['AWS::Region']}.json").read_text())
    return found


def _schema(type_: str) -> dict[str, Any]:
    """Return the schema of a type; empty for custom resources, whose properties may all change."""
    if type_.startswith("Custom::"):
        return {}
    found: dict[str, Any] = json.loads((_DATA / "resources" / f"{_schemas()[type_]}.json").read_text())
    return found


def _stays(type_: str, properties: Properties) -> bool:
    """Return whether a deletion fails: of a bucket with objects, or of a protected table."""
    protected = any(each.get("DeletionProtectionEnabled") for each in properties.get("Replicas", ()))
    return type_ == BUCKET or (type_ == TABLE and protected)


def _at(properties: Any, path: Sequence[str]) -> Any:
    for name in path:
        properties = properties.get(name) if isinstance(properties, dict) else None
    return properties


def _imports(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        if "Fn::ImportValue" in value:
            yield str(value["Fn::ImportValue"])
        value = list(value.values())
    if isinstance(value, list):
        for each in value:
            yield from _imports(each)


def _table_refused(before: Properties, after: Properties) -> Iterator[str]:
    """Yield refusals by DynamoDB's documented rules for updates of a table."""
    old, new = _replicas(before), _replicas(after)
    if old.keys() != new.keys():
        if len(old.keys() ^ new.keys()) > 1:
            yield "can gain or lose one region in an update"
        rest = [{**each, "Replicas": None} for each in (before, after)]
        if rest[0] != rest[1] or any(old[each] != new[each] for each in old.keys() & new.keys()):
            yield "can change nothing else where it gains or loses a region"
        if any(old[each].get("DeletionProtectionEnabled") for each in old.keys() - new.keys()):
            yield "cannot lose a region where it is protected"
    streams = [each.get("StreamSpecification") for each in (before, after)]
    if len(new) > 1 and streams[1] is None:
        yield "must have a stream, being of several regions"
    if streams[0] != streams[1] and (len(old) > 1 or len(new) > 1):
        yield "cannot change its stream while it is of several regions"
    if all(streams) and streams[0] != streams[1]:
        yield "has a stream already, and can have another only once that is off"
    names = [{each["IndexName"] for each in of.get("GlobalSecondaryIndexes", ())} for of in (before, after)]
    if len(names[0] ^ names[1]) > 1:
        yield "can gain or lose one index in an update"
    yield from _cooler(before, after)
    modes = [each.get("BillingMode", "PROVISIONED") for each in (before, after)]
    if modes == ["PAY_PER_REQUEST", "PROVISIONED"]:
        yield from (f"has no SeedCapacity {where}" for where in _unseeded(after))


def _cooler(before: Properties, after: Properties) -> Iterator[str]:
    """Yield refusals for lower warm throughput of a table or an index; omitted values remain as they are."""
    old, new = (
        {"": table, **{each["IndexName"]: each for each in table.get("GlobalSecondaryIndexes", ())}}
        for table in (before, after)
    )
    for name in old.keys() & new.keys():
        for kind, units in old[name].get("WarmThroughput", {}).items():
            if new[name].get("WarmThroughput", {}).get(kind, units) < units:
                yield f"cannot have fewer warm {kind}{f' of {name}' if name else ''}"


def _unseeded(table: Properties) -> Iterator[str]:
    """Yield refusals for autoscaling without initial capacity, which cannot begin from on-demand mode."""
    places = [("of writes", table)]
    places += [
        (f"of writes of {each['IndexName']}", each) for each in table.get("GlobalSecondaryIndexes", ())
    ]
    for region, replica in _replicas(table).items():
        places += [(f"of reads in {region}", replica)]
        places += [
            (f"of reads of {each['IndexName']} in {region}", each)
            for each in replica.get("GlobalSecondaryIndexes", ())
        ]
    for where, place in places:
        kind = "Write" if where.startswith("of writes") else "Read"
        scaling = _at(place, (f"{kind}ProvisionedThroughputSettings", f"{kind}CapacityAutoScalingSettings"))
        if scaling is not None and "SeedCapacity" not in scaling:
            yield where


def _replicas(table: Properties) -> dict[str, Properties]:
    return {each["Region"]: each for each in table.get("Replicas", ())}
