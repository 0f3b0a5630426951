"""Events of a store as Parquet files on S3, which Athena asks: the feed through Amazon Data Firehose into a Glue table.

Lake(self, "Lake", store=store)
Lake(self, "Sales", store=store, categories=["Order"], query_gb=10)

    a reaction        puts rows (`rows`) to Firehose; the rest is AWS's own
    Firehose          gathers them for minutes, and writes them as Parquet with the columns of the table `deliveries`
    `deliveries`      all that has arrived, by the day of its arrival; the same row may have come twice
    `events`          a view of it: each event once
    a workgroup       asks; a query that would scan too much is ended

Nothing of it is paid by the hour. Names of columns are promises: files outlive the code.
"""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Sequence
from typing import Final

from aws_cdk import Aws, CfnOutput, Duration
from aws_cdk import aws_athena as athena
from aws_cdk import aws_glue as glue
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kinesisfirehose as firehose
from aws_cdk import aws_kms as kms
from aws_cdk import aws_logs as logs
from aws_cdk import aws_s3 as s3
from constructs import Construct

from epochal.cdk.arguments import NAMES, checked_arguments
from epochal.cdk.parts import iam_statements
from epochal.cdk.parts.alarms import LASTING, ONCE, Alarms, metric
from epochal.cdk.parts.buckets import private_bucket
from epochal.cdk.parts.functions import log_group
from epochal.cdk.parts.limits import check_bucket_name
from epochal.cdk.parts.principals import add_statements, refuse_other_accounts
from epochal.cdk.reaction import STORE
from epochal.cdk.rules import BadSetting, a_number, a_text, or_null
from epochal.cdk.stages import Stage
from epochal.cdk.store import Store
from epochal.contrib.lake import TABLE, VIEW
from epochal.contrib.publish.cdk import Publish
from epochal.contrib.publish.rows import ROW_AT
from epochal.contrib.transfer.rows import COLUMNS

EVENTS: Final = "events/"
ERRORS: Final = "errors/"
RESULTS: Final = "athena/"
"""Prefixes of the bucket."""

FIRST_DAY: Final = "2026-01-01"
"""First day of a lake's partitions: without a condition on the day, a query reads every day since then."""

_LATE_SECONDS: Final = 15 * 60
"""Seconds beyond the buffering time after which rows are late."""

_TYPES: Final = {
    "text": ("string", "varchar"),
    "int": ("bigint", "bigint"),
    "time": ("timestamp", "timestamp(3)"),
    "texts": ("array<string>", "array(varchar)"),
    "json": ("string", "varchar"),
    "base64": ("string", "varchar"),
    "bool": ("boolean", "boolean"),
}
"""For each kind of column: Glue's type, and the type that a view has for it."""

COLUMN_TYPES: Final = {column.name: _TYPES[column.kind] for column in COLUMNS} | {ROW_AT: _TYPES["text"]}
"""Types of a lake's columns: those of a row, and the place of the row itself if it is too large for a record."""

_ONCE: Final = ("category", "stream", "index", "type", "time", "id")
"""Columns that identify an event. They are equal in all copies, so a condition on them also filters the files."""


_NAME: Final = a_text(
    r"[a-z][a-z0-9]*(-[a-z0-9]+)*", "words of lower-case letters and digits, separated by hyphens"
)


def _name_of(id_: str) -> str:
    """Return a lake's name, made of its construct's id; raise `BadSetting` if none can be made.

    Raises:
        BadSetting: no name can be made of the id.
    """
    try:
        name: str = _NAME(re.sub(r"[^A-Za-z0-9]+", "-", id_).strip("-").lower())
    except ValueError as error:
        raise BadSetting("Lake.name", str(error)) from None
    return name


class Lake(Construct):
    """A data lake on S3 that fills itself from the beginning of the feed.

    Attributes:
        bucket: the bucket with `events/`, `errors/` (rows that Firehose could not convert) and `athena/` (results of
            queries, kept for a week).
        delivery: the delivery stream of Firehose.
        reaction: the reaction that puts rows into the delivery stream.
        database, workgroup: names of the Glue database and the Athena workgroup.
    """

    @checked_arguments(
        "Lake",
        {
            "store": STORE,
            "categories": NAMES,
            "types": NAMES,
            "name": or_null(_NAME),
            # Buffer sizes that Firehose allows if it converts records.
            "buffer_seconds": a_number(60, 900),
            "buffer_mb": a_number(64, 128),
            "query_gb": a_number(1, 1_000_000),
            "expire_days": or_null(a_number(1, 1_000_000)),
        },
    )
    def __init__(
        self,
        scope: Construct,
        id_: str,
        *,
        store: Store,
        categories: Sequence[str] | None = None,
        types: Sequence[str] | None = None,
        name: str | None = None,
        buffer_seconds: int = 300,
        buffer_mb: int = 128,
        query_gb: int = 100,
        expire_days: int | None = None,
    ) -> None:
        """Add to a stack the bucket, delivery stream, tables, workgroup, reaction and alarms of a data lake.

        Args:
            scope: the stack, or a construct in it.
            id_: id of the construct.
            store: the store whose events are written to the lake.
            categories: categories of streams, types of aggregates and groups of tags whose events are written; all if
                not given.
            types: types of events that are written; all if not given.
            name: name of the reaction, the delivery stream, the workgroup and, with `_` for `-`, the database, each
                after the store's name; derived from `id_` if not given. Another name makes another lake, to which all
                events are sent again.
            buffer_seconds: seconds for which rows are buffered, 60 to 900. Events can be queried after that time, and
                each interval makes a file.
            buffer_mb: megabytes of rows after which they are written earlier, 64 to 128.
            query_gb: gigabytes after which a scanning query is cancelled; 1,000 cost 5 dollars.
            expire_days: days after which files of events are deleted; never if not given.

        Raises:
            BadSetting: a number is out of bounds, the name is invalid or too long for a bucket, or `Publish` refuses a
                setting.
        """
        super().__init__(scope, id_)
        name = name or _name_of(id_)
        stage, key = store.stage, store.stores(self).key
        check_bucket_name(
            self,
            stage,
            name,
            setting="Lake.name",
            remedy="Give it a shorter name=, or the store a shorter name",
        )
        full = stage.named(name)
        self.database: Final = full.replace("-", "_")
        self.workgroup: Final = full
        self.bucket: Final = self._add_bucket(name, stage, key, expire_days)
        tables = self._add_tables()
        self.delivery: Final = self._add_delivery_stream(
            full, stage, key, (buffer_seconds, buffer_mb), tables
        )
        self.reaction: Final = Publish(
            self,
            "Rows",
            store=store,
            to=self.delivery,
            categories=categories,
            types=types,
            name=name,
            as_rows=True,
        )
        self._add_workgroup(key, query_gb)
        self._add_alarms(Alarms(self, stage), name, full, buffer_seconds)
        for output, value in {
            "DatabaseName": self.database,
            "WorkgroupName": self.workgroup,
            "BucketName": self.bucket.bucket_name,
        }.items():
            CfnOutput(self, output, value=value, description=f"{output} of the lake {name}")

    def grant_query(self, grantee: iam.IGrantable) -> None:
        """Grant a role the permissions to run queries in the workgroup and read their tables and files.

        Args:
            grantee: role, user, group, or construct with a role.
        """
        workgroup = f"arn:{Aws.PARTITION}:athena:{Aws.REGION}:{Aws.ACCOUNT_ID}:workgroup/{self.workgroup}"
        asking = ("StartQueryExecution", "StopQueryExecution", "GetQueryExecution", "GetQueryResults")
        reading = ("GetDatabase", "GetTable", "GetTables", "GetPartition", "GetPartitions")
        statements = (
            _may("athena", (*asking, "GetWorkGroup"), [workgroup]),
            _may("glue", reading, self._catalog_arns(TABLE, VIEW)),
            iam_statements.on_bucket(self.bucket, "GetBucketLocation", "ListBucket"),
            iam_statements.on_objects(self.bucket, EVENTS, "GetObject"),
            iam_statements.on_objects(self.bucket, RESULTS, "GetObject", "PutObject", "AbortMultipartUpload"),
            *iam_statements.on_key(self.bucket.encryption_key, write=True),
        )
        refuse_other_accounts("grant_query", grantee, self)
        add_statements("grant_query", grantee, statements)

    def _add_bucket(
        self, name: str, stage: Stage, key: kms.IKey | None, expire_days: int | None
    ) -> s3.Bucket:
        """Add the bucket, with lifecycle rules that delete errors, results and expired events."""
        days_by_prefix = {ERRORS: 90, RESULTS: 7} | ({EVENTS: expire_days} if expire_days else {})
        rules = [
            s3.LifecycleRule(id=prefix.strip("/"), prefix=prefix, expiration=Duration.days(days))
            for prefix, days in days_by_prefix.items()
        ]
        return private_bucket(self, "Files", kind=name, stage=stage, key=key, rules=rules)

    def _add_tables(self) -> list[Construct]:
        """Add the Glue database, the table that Firehose fills, and its view; return a list of the table.

        Returns the constructs that the delivery stream depends on.
        """
        database = glue.CfnDatabase(
            self,
            "Database",
            catalog_id=Aws.ACCOUNT_ID,
            database_input=glue.CfnDatabase.DatabaseInputProperty(name=self.database),
        )
        table_class = glue.CfnTable
        columns = [
            table_class.ColumnProperty(name=name, type=hive) for name, (hive, _) in COLUMN_TYPES.items()
        ]
        begin = f"s3://{self.bucket.bucket_name}/{EVENTS}"
        # Athena computes the daily partitions from this, so no crawler and no new partition a day is needed.
        projection = {
            "classification": "parquet",
            "projection.enabled": "true",
            "projection.day.type": "date",
            "projection.day.format": "yyyy-MM-dd",
            "projection.day.range": f"{FIRST_DAY},NOW",
            "storage.location.template": f"{begin}day=${{day}}/",
        }
        hadoop = "org.apache.hadoop.hive.ql.io.parquet"
        table = table_class(
            self,
            "Table",
            catalog_id=Aws.ACCOUNT_ID,
            database_name=self.database,
            table_input=table_class.TableInputProperty(
                name=TABLE,
                description="Rows as they arrived; a row may occur twice",
                table_type="EXTERNAL_TABLE",
                parameters=projection,
                partition_keys=[table_class.ColumnProperty(name="day", type="date")],
                storage_descriptor=table_class.StorageDescriptorProperty(
                    columns=columns,
                    location=begin,
                    input_format=f"{hadoop}.MapredParquetInputFormat",
                    output_format=f"{hadoop}.MapredParquetOutputFormat",
                    serde_info=table_class.SerdeInfoProperty(
                        serialization_library=f"{hadoop}.serde.ParquetHiveSerDe"
                    ),
                ),
            ),
        )
        view = table_class(
            self,
            "View",
            catalog_id=Aws.ACCOUNT_ID,
            database_name=self.database,
            table_input=table_class.TableInputProperty(
                name=VIEW,
                description="Each event once",
                table_type="VIRTUAL_VIEW",
                parameters={"presto_view": "true", "comment": "Presto View"},
                partition_keys=[],
                view_original_text=view_text(self.database),
                view_expanded_text="/* Presto View */",
                storage_descriptor=table_class.StorageDescriptorProperty(
                    columns=columns, serde_info=table_class.SerdeInfoProperty()
                ),
            ),
        )
        for resource in (table, view):
            resource.node.add_dependency(database)
        return [table]

    def _add_delivery_stream(
        self,
        full: str,
        stage: Stage,
        key: kms.IKey | None,
        buffer: tuple[int, int],
        after: Sequence[Construct],
    ) -> firehose.CfnDeliveryStream:
        """Add the delivery stream that writes rows to the bucket as Parquet, with its log and role; return it."""
        log = log_group(self, "Log", name=f"/aws/kinesisfirehose/{full}", stage=stage)
        line = logs.CfnLogStream(
            self, "LogStream", log_group_name=log.log_group_name, log_stream_name="delivery"
        )
        role = self._add_role(key, log)
        stream_class = firehose.CfnDeliveryStream
        seconds, megabytes = buffer
        delivery = stream_class(
            self,
            "Delivery",
            delivery_stream_name=full,
            delivery_stream_type="DirectPut",
            delivery_stream_encryption_configuration_input=stream_class.DeliveryStreamEncryptionConfigurationInputProperty(
                key_type="CUSTOMER_MANAGED_CMK" if key else "AWS_OWNED_CMK",
                key_arn=key.key_arn if key else None,
            ),
            extended_s3_destination_configuration=stream_class.ExtendedS3DestinationConfigurationProperty(
                bucket_arn=self.bucket.bucket_arn,
                role_arn=role.role_arn,
                prefix=f"{EVENTS}day=!{{timestamp:yyyy-MM-dd}}/",
                error_output_prefix=f"{ERRORS}!{{firehose:error-output-type}}/!{{timestamp:yyyy-MM-dd}}/",
                buffering_hints=stream_class.BufferingHintsProperty(
                    interval_in_seconds=seconds, size_in_m_bs=megabytes
                ),
                # Parquet compresses by itself.
                compression_format="UNCOMPRESSED",
                cloud_watch_logging_options=stream_class.CloudWatchLoggingOptionsProperty(
                    enabled=True, log_group_name=log.log_group_name, log_stream_name=line.ref
                ),
                data_format_conversion_configuration=stream_class.DataFormatConversionConfigurationProperty(
                    enabled=True,
                    input_format_configuration=stream_class.InputFormatConfigurationProperty(
                        deserializer=stream_class.DeserializerProperty(
                            open_x_json_ser_de=stream_class.OpenXJsonSerDeProperty()
                        )
                    ),
                    output_format_configuration=stream_class.OutputFormatConfigurationProperty(
                        serializer=stream_class.SerializerProperty(
                            parquet_ser_de=stream_class.ParquetSerDeProperty(compression="SNAPPY")
                        )
                    ),
                    schema_configuration=stream_class.SchemaConfigurationProperty(
                        catalog_id=Aws.ACCOUNT_ID,
                        database_name=self.database,
                        table_name=TABLE,
                        region=Aws.REGION,
                        role_arn=role.role_arn,
                        version_id="LATEST",
                    ),
                ),
            ),
        )
        delivery.node.add_dependency(role, *after)
        return delivery

    def _add_role(self, key: kms.IKey | None, log: logs.ILogGroup) -> iam.Role:
        """Add the role with which Firehose reads the table, and writes to the bucket and its log; return it."""
        ours = {"StringEquals": {"aws:SourceAccount": Aws.ACCOUNT_ID}}
        write = ("AbortMultipartUpload", "GetObject", "PutObject")
        statements = [
            iam_statements.on_bucket(
                self.bucket, "GetBucketLocation", "ListBucket", "ListBucketMultipartUploads"
            ),
            iam_statements.on_objects(self.bucket, EVENTS, *write),
            iam_statements.on_objects(self.bucket, ERRORS, *write),
            _may("glue", ("GetTable", "GetTableVersion", "GetTableVersions"), self._catalog_arns(TABLE)),
            _may("logs", ("PutLogEvents",), [log.log_group_arn]),
            *iam_statements.on_key(key, write=True),
        ]
        return iam.Role(
            self,
            "Role",
            assumed_by=iam.ServicePrincipal("firehose.amazonaws.com", conditions=ours),
            inline_policies={"allowed": iam.PolicyDocument(statements=statements)},
        )

    def _catalog_arns(self, *tables: str) -> list[str]:
        """Return the ARNs that Glue needs permissions on: tables, their database and its catalog."""
        begin = f"arn:{Aws.PARTITION}:glue:{Aws.REGION}:{Aws.ACCOUNT_ID}"
        arns = [f"{begin}:table/{self.database}/{table}" for table in tables]
        return [f"{begin}:catalog", f"{begin}:database/{self.database}", *arns]

    def _add_workgroup(self, key: kms.IKey | None, query_gb: int) -> None:
        """Add the Athena workgroup, with its result location and a scan limit that queries cannot change."""
        workgroup_class = athena.CfnWorkGroup
        encryption = workgroup_class.EncryptionConfigurationProperty(
            encryption_option="SSE_KMS" if key else "SSE_S3", kms_key=key.key_arn if key else None
        )
        workgroup_class(
            self,
            "Workgroup",
            name=self.workgroup,
            recursive_delete_option=True,
            work_group_configuration=workgroup_class.WorkGroupConfigurationProperty(
                enforce_work_group_configuration=True,
                bytes_scanned_cutoff_per_query=query_gb * 10**9,
                result_configuration=workgroup_class.ResultConfigurationProperty(
                    output_location=f"s3://{self.bucket.bucket_name}/{RESULTS}",
                    encryption_configuration=encryption,
                ),
            ),
        )

    def _add_alarms(self, alarms: Alarms, name: str, full: str, seconds: int) -> None:
        """Add the alarms of a lake, for late and for unconverted rows, beside those of every reaction."""
        age = metric("AWS/Firehose", "DeliveryToS3.DataFreshness", full, statistic="Maximum")
        late = f"Rows of the lake {name} wait in Firehose: it cannot write to the bucket."
        alarms.when(
            f"lake-{name}-late",
            late,
            age,
            above=seconds + _LATE_SECONDS,
            minutes=LASTING,
            entry="lake-name-late",
        )
        refused = metric("AWS/Firehose", "FailedConversion.Records", full)
        what = f"Firehose could not convert rows of the lake {name}, and put them below {ERRORS}."
        alarms.when(f"lake-{name}-unconverted", what, refused, minutes=ONCE, entry="lake-name-unconverted")


def once(database: str) -> str:
    """Build the SQL of the view that has each event once.

    It groups by the columns that identify an event, so a condition on the time, the stream or the type also filters
    files, and columns that a query does not use are not read. The day of arrival is not among the columns, since copies
    of one event may have arrived on different days.
    """
    key = [f'"{column}"' for column in _ONCE]
    names = [
        f'"{column_type}"' if column_type in _ONCE else f'arbitrary("{column_type}") AS "{column_type}"'
        for column_type in COLUMN_TYPES
    ]
    # The names are constants, or have been checked against a rule.
    return f'SELECT {", ".join(names)} FROM "{database}"."{TABLE}" GROUP BY {", ".join(key)}'  # noqa: S608


def view_text(database: str) -> str:
    """Encode the view in the form in which Athena stores views in Glue."""
    view = {
        "originalSql": once(database),
        "catalog": "awsdatacatalog",
        "schema": database,
        "columns": [{"name": name, "type": presto} for name, (_, presto) in COLUMN_TYPES.items()],
    }
    return f"/* Presto View: {b64encode(json.dumps(view).encode()).decode()} */"


def _may(service: str, actions: Sequence[str], resources: list[str]) -> iam.PolicyStatement:
    """Build a policy statement that allows actions of a service on resources."""
    return iam.PolicyStatement(actions=[f"{service}:{action}" for action in actions], resources=resources)
