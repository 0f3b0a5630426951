"""All stacks of one stage, wired together."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Final

from aws_cdk import App, Environment, Tags

from epochal.cdk.parts.functions import Code
from epochal.cdk.rules import BadSetting
from epochal.cdk.sources import Sources, code_of
from epochal.cdk.stages import Stage
from epochal.cdk.targets import Target, fit_stage, synthesizer, target_from
from stacks.api import ApiStack
from stacks.feed import FeedStack
from stacks.reactions import ReactionsStack
from stacks.stages import ALSO_CONTEXT, check_context, stage_from
from stacks.store import StoreStack
from stacks.watch import WatchStack

ACCOUNT: Final = "CDK_DEFAULT_ACCOUNT"
REGION: Final = "CDK_DEFAULT_REGION"
"""Where the CDK command line says of which account and region the caller's credentials and environment are."""


def deployment(app: App, sources: Sources) -> None:
    """Add the stacks that the context asks for to `app`.

    Raises:
        BadSetting: the stage, the target, a setting or a context value is not one.
        InstallerFailed: the second layer's wheels could not be fetched.
    """
    check_context(app.node.get_all_context())
    target = target_from(app.node.try_get_context("target"))
    told = app.node.try_get_context
    said = {name: told(name) for name in ALSO_CONTEXT}
    stage = fit_stage(stage_from(told("stage"), told("stages"), said), target)
    code = code_of(
        sources,
        target,
        sdk=stage.boto3 == "tested",
        layouts=stage.brought_layouts(),
        schemas=stage.event_schemas,
    )
    _stacks(app, stage, target, code, sources.root)
    _tag(app, stage)


def _stacks(app: App, stage: Stage, target: Target, code: Code, root: Path) -> None:
    def common(what: str) -> dict[str, Any]:
        return {
            "env": _place(stage),
            "description": f"Epochal {stage.name}: {what}",
            "synthesizer": synthesizer(target),
            "termination_protection": stage.deletion_protection,
        }

    store = StoreStack(app, stage.named("store"), stage=stage, code=code, **common("tables and bucket"))
    watched = target is Target.AWS
    feed = FeedStack(
        app, stage.named("feed"), stage=stage, code=code, watched=watched, **common("indexer and auditor")
    )
    api = ApiStack(app, stage.named("api"), stage=stage, code=code, watched=watched, **common("HTTP API"))
    # Stacks find what they need by names, which say nothing about who has to be there first.
    feed.add_stack_dependency(store)
    api.add_stack_dependency(store)
    if stage.reactions:
        reactions = ReactionsStack(
            app, stage.named("reactions"), stage=stage, code=code, root=root, **common("reactions")
        )
        reactions.add_stack_dependency(feed)
    if watched:
        watch = WatchStack(app, stage.named("watch"), stage=stage, **common("dashboard and alarms"))
        watch.add_stack_dependency(feed)
        watch.add_stack_dependency(api)


def _place(stage: Stage) -> Environment | None:
    """Any account and region; but a key exists in one region only, and a table with a replica names both of its own.

    Raises:
        BadSetting: nobody said which region is deployed to, or it is the replica's; the account is another.
    """
    _refuse_another_account(stage)
    region = stage.region or (stage.kms_key.split(":")[3] if stage.kms_key else "")
    if region or not stage.replica_region:
        account = stage.account or None
        return Environment(account=account, region=region or None) if account or region else None
    region = os.environ.get(REGION, "")
    setting = f"stages.{stage.name}.replica_region"
    if not region:
        raise BadSetting(setting, f"needs the region of the deployment, which cdk passes in {REGION}")
    if region == stage.replica_region:
        raise BadSetting(
            setting,
            f"must be a region other than {region}, to which the stage is deployed (docs/guide/failover.md)",
        )
    return Environment(account=stage.account or None, region=region)


def _refuse_another_account(stage: Stage) -> None:
    """CDK itself refuses to deploy to another account than a stack names, but only after it has synthesised for it."""
    here = os.environ.get(ACCOUNT, "")
    if stage.account and here and here != stage.account:
        raise BadSetting(
            f"stages.{stage.name}.account",
            f"is {stage.account}, but the credentials belong to account {here}",
        )


def _tag(app: App, stage: Stage) -> None:
    for name, value in {"epochal:stage": stage.name, **stage.tags}.items():
        Tags.of(app).add(name, value)
