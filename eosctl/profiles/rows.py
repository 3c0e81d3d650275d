"""The rows of `profile`: the profiles of the config file, resolved values, and the answers of a check."""

from __future__ import annotations

from typing import Annotated, Literal

from eosctl.output.rows import Counts, Header, Kind, Printed, Text

Check = Literal["kafka", "group", "worker"]
CheckStatus = Literal["ok", "wrong", "failed"]


class ProfileRow(Printed):
    """A profile of the config file."""

    profile: Annotated[str, "The name of the profile."]
    current: Annotated[bool, "Whether commands use it where none is named."]
    bootstrap_server: Annotated[str | None, "The brokers that it names."]
    group_id: Annotated[str | None, "The Connect group that it names.", Header("GROUP")]
    connect_urls: Annotated[list[str], "The workers that it names."]
    expect: Annotated[dict[str, object], "What must be found there before anything is written."]

    @Header("EXPECTED-CLUSTER")
    def expected_cluster(self) -> object:
        """Return the id of the Kafka cluster that must be found there before anything is written."""
        return self.expect.get("kafka_cluster_id")


class ValueRow(Printed):
    """A value and its name."""

    name: Annotated[str, "The name of the value."]
    value: Annotated[object, "The value; `***` stands for a secret."]


class OriginRow(ValueRow):
    """A value and its origin."""

    origin: Annotated[str, "Where the value is from: a flag, the environment, a profile, a file or the default."]


class CheckRow(Printed):
    """The answer of one cluster, group or worker that a profile names."""

    check: Annotated[Check, "What was asked."]
    subject: Annotated[str, "Where it was asked."]
    status: Annotated[CheckStatus, "`ok`; `wrong` where something else answered than is expected; `failed`."]
    found: Annotated[str | None, "What answered."]
    reason: Annotated[str | None, "Why it is wrong, or failed."]


class ProfilesSummary(Printed):
    """The number of profiles."""

    profiles: Annotated[int, "How many profiles there are."]


class ValuesSummary(Printed):
    """The number of values."""

    values: Annotated[int, "How many values there are."]


class ProfileSummary(Printed):
    """The profile, and whether it was changed."""

    profile: Annotated[str, "The name of the profile."]
    current: Annotated[bool, "Whether commands use it where none is named."]
    changed: Annotated[bool, "Whether the file was changed."]


class ProfileCheckSummary(Printed):
    """The number of answers per status."""

    counts: Annotated[Counts, "How many places have each status."]


class ConfigFileData(Printed):
    """The file of the profiles."""

    file: Annotated[str, "The config file."]


PROFILE_LIST = Kind(
    "profile-list",
    "The profiles of the config file.",
    row=ProfileRow,
    summary=ProfilesSummary,
    data=ConfigFileData,
    text=Text(
        columns=("profile", "current", "bootstrap_server", "group_id", "connect_urls", "expected_cluster"),
        empty="There is no profile. Make one: `eosctl profile set NAME bootstrap_server=HOST:PORT`",
    ),
)
PROFILE_SHOW = Kind("profile-show", "The values that a command would use.", row=ValueRow, summary=ValuesSummary)
PROFILE_ORIGINS = Kind(
    "profile-origins",
    "The values that a command would use, and where each comes from.",
    row=OriginRow,
    summary=ValuesSummary,
)
PROFILE_FILE = Kind(
    "profile-file",
    "A profile as it stands in the config file now.",
    row=ValueRow,
    summary=ProfileSummary,
    data=ConfigFileData,
)
PROFILE_CHECK = Kind(
    "profile-check", "What answers where a profile points to.", row=CheckRow, summary=ProfileCheckSummary
)
