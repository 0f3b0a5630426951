"""Data keys by KMS, each bound to its subject: another subject's key cannot be passed off as its own.

no permission, no such key, a key that is disabled     Refused
throttled, time-out, cut off, internal error           Unavailable
anything else                                          InvalidRequest: a defect of ours
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from epochal.dynamo.aws_errors import translated
from epochal.dynamo.clients import service_client
from epochal.dynamo.deployed import lazily
from epochal.dynamo.stores import HERE, Place
from epochal.errors import CorruptData, InvalidRequest
from epochal.subjects.sealing import KEY_BYTES, Subjects

if TYPE_CHECKING:
    from mypy_boto3_kms.client import KMSClient


@dataclass(frozen=True, slots=True)
class KmsWrapping:
    """Wraps under one KMS key. Its policy says who may unseal anything at all.

    Attributes:
        key_id: the KMS key's id, ARN or alias; only to wrap, since what is wrapped names its key.
    """

    client: KMSClient
    key_id: str

    def fresh(self, subject: str) -> tuple[bytes, bytes]:
        """A new data key, plain and wrapped.

        Raises:
            Refused: the KMS key is not there, or not for us to use.
            Unavailable: KMS does not answer.
        """
        with translated("kms:GenerateDataKey"):
            made = self.client.generate_data_key(
                KeyId=self.key_id, NumberOfBytes=KEY_BYTES, EncryptionContext={"subject": subject}
            )
        return made["Plaintext"], made["CiphertextBlob"]

    def unwrap(self, subject: str, wrapped: bytes) -> bytes:
        """The plain key.

        Raises:
            CorruptData: it was wrapped for another subject, or is damaged.
            Refused, Unavailable: as above.
        """
        try:
            with translated("kms:Decrypt"):
                opened = self.client.decrypt(CiphertextBlob=wrapped, EncryptionContext={"subject": subject})
        except InvalidRequest as error:
            if error.code != "InvalidCiphertextException":
                raise
            raise CorruptData(f"{subject}: its wrapped key is not its own") from error
        return opened["Plaintext"]


def open_subjects(table: str, *, kms_key: str, log: str = "", place: Place = HERE) -> Subjects:
    """Keys of subjects, wrapped by a KMS key, in a table without point-in-time recovery (docs/guide/forgetting.md).

    Needs the extra `subjects`, which is why it stands apart from what opens the other stores.

    Args:
        log: a second table, of forgotten subjects: they stay forgotten, whatever is restored.
    """
    client = lazily(
        partial(service_client, "kms", endpoint=place.endpoint, region=place.region, retried=True)
    )
    wrapping = place.blocking(KmsWrapping(client, kms_key))
    return Subjects(driver=place.driver(), table=table, wrapping=wrapping, log=log)
