"""Hides secrets in configs, by the settings that are known to hold none. Pure.

Shown are settings that are known to be harmless, references of config providers (`${file:/x:key}`), and, unless a name
sounds like a secret, booleans, numbers and names of classes. `***` replaces all others. Addresses are shown by their
parts.

The harmless settings of connectors, converters, workers and clients are listed by their names. The list is of what may
be shown, not of what may not: connectors have thousands of settings, and a new one is a secret until it is known to be
none. Checked on the settings of the connectors in tests/core/clients/connector_settings.py.
"""

from __future__ import annotations

import re
from collections.abc import Container, Mapping

from eosctl.core.clients.logins import HIDDEN, without_logins
from eosctl.core.wording import encodable
from eosctl.errors import InputFileError

_LONGEST = 300  # of names that anybody has; a longer one only costs time
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_SECRET = re.compile(
    r"passw|passphrase|passcode|secret|token|credential|jaas|private|hook|signature|certificate|authori[sz]ation"
    r"|connect(ion)?\.?string|user\.?info|keyfile|keytab|api\.?key|(access|account|master|shared|signing)\.?key"
    r"|key$|key\.(id|json|pem|base64|content|value|material)$"
    r"|(^|\.)(pwd|pw|psw|pswd|pass|pin|otp|sas|sig|auth|dsn|salt|hmac|cookie|licen[cs]e|jwt|pem|headers?)$"
    r"|(^|\.)headers?\.(?!converter(\.|$))|(^|\.)(api|https?|url|uri|request|endpoint)\.path$"
)
_NO_SECRET = re.compile(
    r"(?:.*\.)?(?:credentials\.(?:source|provider\.class)|ssl\.client\.auth|output\.format\.key"
    r"|inter\.worker\.key\.(?:generation\.algorithm|size|ttl\.ms)|token\.(?:url|endpoint|endpoint\.url)"
    r"|sasl\.login\.(?:refresh|retry)\..+\.ms)"
)
"""Names that contain a word of `_SECRET` and hold no secret: they end so."""
_OF_FILE = (
    r"(?:plugin|file|input|output|finished|errors?|credentials?|key|(?:key|trust)\.?store|cert|certificate|ca|data|log"
    r"|lib|allowed|config|storage|script|wallet)"
)
"""Settings whose `path` is that of a file; the path of others is part of a URL, which may have a token in it."""
_ENDINGS = rf"""
    connector.class class type types mode modes strategy policy format formats method level protocol protocols mechanism
    mechanisms algorithm provider providers adapter adapters plugin handler builder engine dialect compression codec
    encoding charset locale timezone time.zone version isolation compatibility granularity style case resolution
    precision scale unit converter converters transforms predicates predicate negate serializer deserializer
    authenticator retriever formatter transformer mapper chain operation operations cipher.suite cipher.suites
    dns.lookup status.codes discovery nullability topic topics regex pattern prefix suffix replacement delimiter
    separator (?:name|topic|table|index)\.template
    groups filters since from table tables collection collections database databases dbname
    databasename db schema schemas schema.names keyspace dataset bucket container queue queue.manager exchange channel
    channels index indexes indices stream streams object objects view views project instance region sid catalog
    namespace partition partitions column columns field fields metafield timefield full.document format.value include
    exclude include.list exclude.list whitelist blacklist includes excludes renames spec mapping topic2table.map
    topic2.table.map topicmap overrides source target authsource hostname hostnames host hosts port server servers
    broker brokers domain endpoint endpoints address addresses node nodes url urls uri uris url.name name.list list
    listeners contact.points origin quorum datacenter warehouse file files filename {_OF_FILE}\.paths?
    dir dirs directory
    directories location folder home keystore truststore key.store trust.store keytab sslcert sslrootcert sslmode
    (?<!user\.)name (?<!user\.)names alias clusters subscription transaction replication
    (?:client|group|server|project|tenant|connect|cluster|instance|database|subscription|broker|task|rack)\.id enable
    enabled max min size count ms bytes sec secs seconds minutes hours days interval timeout limit retries factor
    threads attempts records rows poll width depth length lag support boundary tolerance on.error on.malformed.documents
    on.null.values acks
"""
_HARMLESS = re.compile(rf"(?:^|.*\.)(?:{'|'.join(ending for ending in _ENDINGS.split())})")
_ADDRESS = re.compile(r".*(?:^|\.)(?:url|urls|uri|uris|endpoints?|address(?:es)?|url\.name|listeners)")
_PATH = re.compile(
    rf".*(?:^|\.)(?:file|{_OF_FILE}\.path|location|dir|directory|folder|filename|(?:key|trust)\.?store|keytab|sslcert"
    r"|sslrootcert)"
)
_PAIRS = re.compile(
    r".*(?:^|\.)(?:spec|renames|mapping|topic2\.?table\.map|topicmap|columns|format|formats|pattern|regex|replacement"
    r"|list|timezone)"
)


def words_of(name: str) -> str:
    """Return the name of a setting in small letters, with dots between its words, however it is written."""
    return re.sub(r"[_-]", ".", _HUMP.sub(".", name)).lower()


def sounds_secret(name: str) -> bool:
    """Return whether the name of a setting suggests that its value is a secret."""
    words = words_of(name)
    return len(words) > _LONGEST or (bool(_SECRET.search(words)) and _NO_SECRET.fullmatch(words) is None)


def is_harmless(name: str) -> bool:
    """Return whether a setting of that name is known to hold no secret."""
    return not sounds_secret(name) and any(each.fullmatch(words_of(name)) for each in (_HARMLESS, _NO_SECRET))


def names_address(name: str) -> bool:
    """Return whether the value of a setting is an address, judged by the name of the setting alone."""
    return _ADDRESS.fullmatch(words_of(name)) is not None


def names_path(name: str) -> bool:
    """Return whether the value of a setting is the path of a file or directory (a password file's, too)."""
    return _PATH.fullmatch(words_of(name)) is not None


def takes_pairs(name: str) -> bool:
    """Return whether colons in the value of a harmless setting separate names, times and patterns."""
    return _PAIRS.fullmatch(words_of(name)) is not None


_SHORTEST = 4  # a shorter value is part of any text
_HOST = r"(?:(?:[\w.-]+|\[[0-9a-f:.]+\])(?::\d+|\(\d+\))?|:\d+)"
_HOST_ADDRESS = re.compile(
    r"(?P<scheme>(?:(?:[a-z][\w+.-]*:)+@?//|jdbc:oracle:\w+:@)?)(?:(?<=//)(?P<user>[^/@\s?;,]*)@)?"
    rf"(?P<hosts>{_HOST}(?:\s*,\s*{_HOST})*)(?P<rest>(?:[/?;…]|(?<=\d):(?!\d)).*)?",
    re.I | re.S,
)
_NEXT_URL = re.compile(r"(?<!\s)\s*,\s*(?=[a-z][\w+.-]*://)", re.I)
_FILE_PATH = re.compile(r"(?:(?:[a-z][\w+.-]*:)+/(?:/(?=/)|(?!/))|~?\.{0,2}/)[\w./ +-]*|[\w.-]+", re.I)
_ABSOLUTE = re.compile(r"(?:/|[A-Za-z]:[\\/])[\w./\\ +-]*")
_REFERENCES = re.compile(r"\$\{[\w.-]+:[^{}]*\}(?:[:;,@/]*\$\{[\w.-]+:[^{}]*\})*")
_CLASS = r"[a-z][a-z0-9_]{0,40}(?:\.[a-z][a-z0-9_]{0,40})+\.[A-Z][A-Za-z0-9_]{0,80}(?:\$[A-Z][A-Za-z0-9_]{0,80})?"
_PLAIN = re.compile(rf"[+-]?\d{{1,19}}(?:\.\d{{1,9}})?(?:ms|s|m|h|d|[kmgt]i?b?)?|{_CLASS}(?:\s*,\s*{_CLASS})*")
_SECRET_SHAPE = re.compile(
    r"-----BEGIN|PRIVATE KEY|^data:|^[\[{].*[\"']|\beyJ[\w-]{10}|^(?:AKIA|ASIA)[A-Z0-9]{12}|^xox[a-z]-|^gh[a-z]_\w{20}"
    r"|^(?:basic|bearer|digest|negotiate|apikey)\s+\S|;\s*[\w.-]{1,60}\s*=",
    re.I | re.S,
)
_BLOB = re.compile(r"(?=.*[A-Z])(?=.*[a-z])(?=.*\d)(?!/)[A-Za-z0-9+/]{40,}={0,2}")
_PAIR = re.compile(r"[^\s:/,\\()\[\]{}|*]+:(?!\d+(?:\s*,|$))[^\\].*", re.S)
_SALT = re.compile(r"(?<=\.with\.salt\.).+", re.S)  # Debezium's column.mask.hash.ALGORITHM.with.salt.SALT
_NAMES = re.compile(r"""(?<![\w.-])([\w.-]+)["']?\s*[=:]""")
_NAMED = re.compile(r"""(?<![\w.-])([\w.-]+)(?:\s*=|["']\s*:)\s*""")
_AUTHORIZATION = re.compile(r"(\bauthorization\b[\"']?\s*[:=]\s*).*|\b((?:basic|bearer)\s+)[\w+/=.~-]{12,}", re.I)


def hide_secrets(config: Mapping[str, object]) -> dict[str, object]:
    """Return a config fit to be shown or stored: `***` for values that are not known to be harmless.

    Values that are hidden already stay as they are.
    """
    return {shown_name(name): shown_value(name, value) for name, value in config.items()}


def shown_name(name: str) -> str:
    """Return the name of a setting, fit to be shown: one of Debezium's has a salt in it."""
    return encodable(_SALT.sub(HIDDEN, name))


def shown_value(name: str, value: object) -> object:
    """Return the value of one setting, fit to be shown."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int | float):
        return HIDDEN if sounds_secret(name) else value
    if not isinstance(value, str):
        return HIDDEN
    text = value.strip()
    if not text or _REFERENCES.fullmatch(text) or text in ("true", "false"):
        return encodable(value)
    if names_path(name) and _ABSOLUTE.fullmatch(text):
        return encodable(value)
    if sounds_secret(name):
        return HIDDEN
    if _PLAIN.fullmatch(text):
        return value
    if not is_harmless(name):
        return HIDDEN
    if "://" in text or text.lower().startswith("jdbc:") or names_address(name):
        return shown_address(name, value)
    return HIDDEN if _looks_secret(text, pairs=takes_pairs(name)) else encodable(value)


def without_values(text: str, config: Mapping[str, object], *, secret: Container[str] = ()) -> str:
    """Return a worker's message about a config without the config's hidden values, and without those of `secret`."""
    shown = dict[str, str]()
    for name, value in config.items():
        found = value.strip() if isinstance(value, str) else ""
        if len(found) >= _SHORTEST or (found and sounds_secret(name)):
            fit = HIDDEN if name in secret else str(shown_value(name, found))
            shown |= {found: fit} if fit != found else {}
    for each in sorted(shown, key=len, reverse=True):
        text = text.replace(each, shown[each])
    return text


def _looks_secret(text: str, *, pairs: bool) -> bool:
    """Return whether a value looks like a secret, though its name is harmless."""
    if _SECRET_SHAPE.search(text) or _BLOB.fullmatch(text):
        return True
    if any(sounds_secret(found[1]) for found in _NAMES.finditer(text)):
        return True
    return not pairs and ("@" in text or _PAIR.fullmatch(text) is not None)


def shown_address(name: str, value: str) -> str:
    """Return where a setting leads, fit to be shown: scheme, hosts and ports, or a path; `***` if it can't be parsed.

    Behind the host there may be a password, with a separator that only the driver knows: `…` stands for it.
    """
    text = value.strip()
    if not text or _REFERENCES.fullmatch(text):
        return encodable(text)
    if sounds_secret(name) and not (names_path(name) and _ABSOLUTE.fullmatch(text)):
        return HIDDEN
    if _FILE_PATH.fullmatch(text):
        return encodable(text)
    return ",".join(map(_shown_hosts, _NEXT_URL.split(text)))


def _shown_hosts(address: str) -> str:
    found = _HOST_ADDRESS.fullmatch(address)
    if found is None or "@" in (found["rest"] or ""):
        return HIDDEN
    user = "" if found["user"] is None else f"{HIDDEN}@"
    rest = "…" if (found["rest"] or "/") != "/" else ""
    return encodable(f"{found['scheme']}{user}{found['hosts']}{rest}")


def shown_line(line: str) -> str:
    """Return a line of a log, fit to be shown: all behind `NAME=` of a secret is `***`, and URLs have no login."""
    for found in _NAMED.finditer(line):
        if sounds_secret(found[1]) and found.end() < len(line):
            return shown_line(line[: found.start()]) + found[0] + HIDDEN
    if "-----BEGIN" in line:
        return HIDDEN
    line = _AUTHORIZATION.sub(lambda match: f"{match[1] or match[2]}{HIDDEN}", line)
    return without_logins(line)


def holds_secrets(body: object) -> bool:
    """Return whether JSON holds a string of properties that can't be parsed or that `hide_secrets` would change.

    Any other string is judged by its look.
    """
    if isinstance(body, Mapping):
        return any(holds_secrets(each) for each in body.values())
    if isinstance(body, list):
        return any(holds_secrets(each) for each in body)
    if not isinstance(body, str):
        return False
    if "\n" not in body and "=" not in body:
        return _looks_secret(body, pairs=True)
    from eosctl.core.java.properties import parse_properties  # it needs msgspec, which the bootstrap does not have yet

    try:
        values = parse_properties(body, source="text").values
    except InputFileError:
        return True
    return hide_secrets(values) != values
