"""Keys of subjects, and the log of who was forgotten: two tables for applications that seal what is personal.

The first must not come back: whatever the stage says of its other tables, no moment of this one can be restored. The
second has no keys in it, and may. Neither is the deployment's own, whose functions pass sealed bodies through.
"""

from __future__ import annotations

from typing import Final

from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from constructs import Construct

from epochal.cdk.arguments import checked_arguments
from epochal.cdk.parts.iam_statements import on_key, on_table
from epochal.cdk.parts.principals import add_statements, refuse_other_accounts
from epochal.cdk.parts.tables import keyed_table
from epochal.cdk.reaction import STORE
from epochal.cdk.store import Store
from epochal.contrib.subjects.items import FORGET_LOG, SUBJECT_KEYS
from epochal.lazy_dataclasses import replace


class SubjectKeys(Construct):
    """Construct with the table of subjects' keys and the forget log.

    Both are kept and protected as the other tables of the store are, but the table of keys has no point-in-time
    recovery. The construct makes no KMS key: the one that wraps the subjects' keys (`open_subjects(…, kms_key=…)`) is
    yours, and you allow its use (`key.grant(role, "kms:GenerateDataKey", "kms:Decrypt")`). If the store has a
    `kms_key`, it also encrypts the two tables, and the grants include it.

    Attributes:
        keys: the table of subjects' keys.
        log: the table of the forget log.
    """

    @checked_arguments("SubjectKeys", {"store": STORE})
    def __init__(self, scope: Construct, id_: str, *, store: Store) -> None:
        """Add the table of persons' keys and the log of those forgotten to a stack.

        Args:
            scope: the stack, or a construct in it.
            id_: id of the construct in its scope.
            store: the store whose subjects they are for; the tables are named after it.
        """
        super().__init__(scope, id_)
        stage = store.stage
        self._key: Final = kms.Key.from_key_arn(self, "Key", stage.kms_key) if stage.kms_key else None
        for_ever = replace(stage, recovery_days=0)
        self.keys: Final = keyed_table(self, "Keys", spec=SUBJECT_KEYS, stage=for_ever, key=self._key)
        self.log: Final = keyed_table(self, "ForgetLog", spec=FORGET_LOG, stage=stage, key=self._key)

    def grant_sealing(self, grantee: iam.IGrantable) -> None:
        """Allow a grantee to seal bodies, and to unseal those whose subjects are not forgotten.

        Args:
            grantee: role, user, group, or construct with a role.
        """
        self._grant("grant_sealing", grantee, on_table(self.log, "GetItem"))

    def grant_forgetting(self, grantee: iam.IGrantable) -> None:
        """Allow a grantee to forget subjects, and to forget them again after a restore.

        Args:
            grantee: role, user, group, or construct with a role.
        """
        self._grant("grant_forgetting", grantee, on_table(self.log, "GetItem", "PutItem", "Scan"))

    def _grant(self, where: str, grantee: iam.IGrantable, log: iam.PolicyStatement) -> None:
        """Allow a grantee to use the table of keys and its KMS key, with these permissions on the log.

        Args:
            where: name of the method that was called, for errors.
        """
        keys = on_table(self.keys, "GetItem", "PutItem")
        refuse_other_accounts(where, grantee, self)
        add_statements(where, grantee, (keys, log, *on_key(self._key, write=True)))
