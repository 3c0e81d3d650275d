"""Settings of connectors, converters, workers and clients that are known, by their names, to hold no secret. Pure.

This lists what may be shown, not what may not: connectors have thousands of settings, and a new one is a secret until
it is known to be none. Checked on the settings of the connectors in tests/core/clients/connector_settings.py.
"""

from __future__ import annotations

import re

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
