"""Alarms on the other stacks, and a dashboard: a stack of their own, which the embedded AWS does without."""

from __future__ import annotations

from typing import Any, Final

from aws_cdk import Stack
from aws_cdk import aws_budgets as budgets
from constructs import Construct

from epochal.cdk.parts.stores import Stores
from epochal.cdk.parts.watch import Watch
from epochal.cdk.stages import Stage

TOLD_AT: Final = (("ACTUAL", 50), ("FORECASTED", 100), ("ACTUAL", 100))
"""Shares of the month's budget, in per cent."""


class WatchStack(Stack):
    """Alarms on what has a name that stays, wherever it is; and a dashboard of them all."""

    def __init__(self, scope: Construct, id_: str, *, stage: Stage, **stack: Any) -> None:
        super().__init__(scope, id_, **stack)
        stores = Stores.named(Construct(self, "Stores"), stage)
        self.watch: Final = Watch(self, stage=stage, stores=stores)
        if stage.monthly_budget:
            self._budget(stage)

    def _budget(self, stage: Stage) -> None:
        """What carries the stage's tag, which has to be activated for costs once in an organisation."""
        budget = budgets.CfnBudget
        topic = budget.SubscriberProperty(subscription_type="SNS", address=stage.alarm_topic)
        budget(
            self,
            "Budget",
            budget=budget.BudgetDataProperty(
                budget_name=stage.named("month"),
                budget_type="COST",
                time_unit="MONTHLY",
                budget_limit=budget.SpendProperty(amount=stage.monthly_budget, unit="USD"),
                cost_filters={"TagKeyValue": [f"user:epochal:stage${stage.name}"]},
            ),
            notifications_with_subscribers=[
                budget.NotificationWithSubscribersProperty(
                    notification=budget.NotificationProperty(
                        notification_type=kind,
                        comparison_operator="GREATER_THAN",
                        threshold=percent,
                        threshold_type="PERCENTAGE",
                    ),
                    subscribers=[topic],
                )
                for kind, percent in TOLD_AT
            ],
        )
