"""How the known sources of files and objects make source partitions of a connector's config: a rule for each. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable

from eosctl.offsets.history.config_reader import (
    Belongs,
    ConfigRule,
    ExpectedPartition,
    Meaning,
    NamedPartitions,
    NotKnownError,
    Partition,
    Reader,
)


def _file(config: Reader) -> NamedPartitions:
    if not (file := config.get("file")):
        raise NotKnownError("the config has no file: it reads its standard input")
    return NamedPartitions((ExpectedPartition({"filename": file}),))


FILE = ConfigRule(
    _file, "`filename` is `file`, as it is written", "read: FileStreamSourceTask of Kafka 3.3.2 and 4.3.1"
)


def _objects(
    container: str, place: tuple[str, ...], member: str, prefix: tuple[str, ...]
) -> Callable[[Reader], NamedPartitions]:
    """Return the rule of a source with a partition for each object in a bucket, under a prefix."""

    def read(config: Reader) -> NamedPartitions:
        bucket = next(filter(None, map(config.get, place)), "")
        start = next(filter(None, map(config.get, prefix)), "")
        config.beside("file.name.template", "distribution.type")
        if not bucket:
            raise NotKnownError(f"the config has no {place[0]}")

        def judge(partition: Partition) -> Belongs:
            name = partition.get(member)
            if partition.get(container) != bucket or not isinstance(name, str):
                return Belongs.NO
            if "{{" in start or "YYYY" in start:  # written for sinks; a source takes it as it is, or not
                return Belongs.UNKNOWN
            return Belongs.YES if name.startswith(start) else Belongs.NO

        return NamedPartitions(judge=judge)

    return read


_AIVEN = "Aiven-Open/cloud-storage-connectors-for-apache-kafka 3.4.2"
S3 = ConfigRule(
    _objects("bucket", ("aws.s3.bucket.name", "aws_s3_bucket"), "objectKey", ("aws.s3.prefix", "aws_s3_prefix")),
    "`bucket` is `aws.s3.bucket.name`, `objectKey` each object under `aws.s3.prefix`",
    f"read: S3SourceRecordIterator, AWSV2SourceClient and S3ConfigFragment of {_AIVEN}",
)
AZURE = ConfigRule(
    _objects("container", ("azure.storage.container.name",), "blobName", ("azure.blob.prefix",)),
    "`container` is `azure.storage.container.name`, `blobName` each blob under `azure.blob.prefix`",
    f"read: AzureBlobSourceRecordIterator, AzureBlobClient and AzureBlobConfigFragment of {_AIVEN}",
)
_FROM = re.compile(r"\bselect\b[^;]*?\bfrom\s+([^\s;]+)", re.I)
_KCQL = ("connect.s3.kcql", "connect.gcpstorage.kcql")
_SEARCHES = (
    "connect.s3.source.partition.search.recurse.levels", "connect.s3.partition.search.recurse.levels",
    "connect.gcpstorage.source.partition.search.recurse.levels", "connect.s3.source.partition.search.excludes",
    "connect.gcpstorage.source.partition.search.excludes",
)  # fmt: skip
_LONGEST_KCQL = 10_000  # searching a longer one can take long


def _lenses(config: Reader) -> NamedPartitions:
    property_name = next(filter(config.raw, _KCQL), _KCQL[0])
    kcql = config.first(*_KCQL)
    if len(kcql) > _LONGEST_KCQL:
        raise NotKnownError("the KCQL is too long to be taken apart")
    roots = [found[1].replace("`", "").partition(":") for found in _FROM.finditer(kcql)]
    if not roots or len(roots) != len(list(filter(str.strip, kcql.split(";")))):
        raise NotKnownError("the KCQL names its buckets in another way than `SELECT … FROM bucket:prefix`")

    config.keep(property_name, " ".join(sorted("".join(root) for root in roots)))
    config.beside(*_SEARCHES)

    def judge(partition: Partition) -> Belongs:
        prefix = partition.get("prefix")
        below = [root for bucket, _colon, root in roots if bucket == partition.get("container")]
        if not isinstance(prefix, str):
            return Belongs.NO
        # at which depth below a root folders are source partitions depends on its `/` and on the levels
        return Belongs.UNKNOWN if any(prefix.startswith(root) for root in below) else Belongs.NO

    return NamedPartitions(judge=judge)


LENSES = ConfigRule(
    _lenses,
    "`container` is the one in `SELECT … FROM container:prefix` of `connect.s3.kcql` or `connect.gcpstorage.kcql`, "
    "`prefix` each folder below that prefix, as deep as `….source.partition.search.recurse.levels` says",
    "read: CloudSourceBucketOptions, CloudLocation, CloudPartitionSearcher and AwsS3DirectoryLister of "
    "lensesio/stream-reactor 11.7.2",
)  # fmt: skip


def _spooldir(config: Reader) -> NamedPartitions:
    config.get("input.file.pattern")
    return NamedPartitions(judge=lambda partition: Belongs.UNKNOWN if "fileName" in partition else Belongs.NO)


SPOOLDIR = ConfigRule(
    _spooldir,
    "`fileName` is the name, without its folder, of each file that `input.file.pattern` matches",
    "read: AbstractSourceTask of jcustenborder/kafka-connect-spooldir 2.0.65",
    (
        Meaning(
            ("input.path",),
            "The source partition does not name the folder: a file of a known name in the other folder is read behind "
            "the present offset.",
        ),
    ),
)
