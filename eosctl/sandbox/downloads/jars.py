"""Kafka's jars, downloaded and cached, and the Java trust store that the download may need.

The jars are resolved once by the Ivy inside pyspark, checked against the lock's sha256, and cached by content.

The trust store is made of a PEM bundle: $SSL_CERT_FILE, as Python and pip read it, for Java as well. A Java that came
as a wheel trusts its own list of authorities only, not the company's. The JKS format is
`sun.security.provider.JavaKeyStore` (OpenJDK 8 to 25), trusted-certificate entries only.
"""

from __future__ import annotations

import fcntl
import hashlib
import importlib.util
import os
import re
import shutil
import ssl
import struct
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit
from xml.sax.saxutils import quoteattr

from eosctl.core.wording import counted
from eosctl.core.workers.proxies import check_proxy, proxies_of
from eosctl.deadline import Event, OnEvent
from eosctl.errors import EosctlError, UnreachableError, UnsupportedError
from eosctl.foreign import Lines
from eosctl.machine.children import child_environ
from eosctl.machine.files import make_folder, open_regular
from eosctl.machine.java import Java
from eosctl.machine.packages import install_hint
from eosctl.sandbox.settings import Jar

_PASSWORD = "changeit"  # noqa: S105 - a checksum's seed, as in every JDK; the certificates in it are public
_BEGIN, _END = "-----BEGIN CERTIFICATE-----", "-----END CERTIFICATE-----"


def trust_options(ca_file: Path, directory: Path) -> list[str]:
    """Return JVM options that make Java trust the certificates of a PEM bundle; write the store into `directory`."""
    store = directory / "truststore.jks"
    store.write_bytes(encode_jks(read_pem(ca_file.read_text(encoding="utf-8", errors="replace"))))
    name = "javax.net.ssl.trustStore"
    return [f"-D{name}={store}", f"-D{name}Type=JKS", f"-D{name}Password={_PASSWORD}"]


def read_pem(text: str) -> list[bytes]:
    """Return the certificates (DER) of a PEM bundle, in order; skip text between them."""
    blocks = [block.partition(_END)[0] for block in text.split(_BEGIN)[1:]]
    return [ssl.PEM_cert_to_DER_cert(f"{_BEGIN}{block}{_END}") for block in blocks]


def encode_jks(certificates: Sequence[bytes]) -> bytes:
    """Encode a JKS file of trusted certificates: magic, version 2, entries, and a keyed SHA-1 over all of it."""
    now_ms = int(time.time() * 1000)
    parts = [struct.pack(">III", 0xFEEDFEED, 2, len(certificates))]
    for number, certificate in enumerate(certificates):
        entry = struct.pack(">I", 2) + _utf(f"ca-{number}") + struct.pack(">Q", now_ms) + _utf("X.509")
        parts.append(entry + struct.pack(">I", len(certificate)) + certificate)
    body = b"".join(parts)
    seed = _PASSWORD.encode("utf-16-be") + b"Mighty Aphrodite"
    return body + hashlib.sha1(seed + body).digest()  # noqa: S324 - the format's own checksum


def _utf(text: str) -> bytes:
    return struct.pack(">H", len(text)) + text.encode("ascii")


_SHORT_LIVED = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
# what Java or Ivy says when a download fails, wherever in its output that is
_REASON = re.compile(r"[^\n]*(?:PKIX|SSL\w*Exception|refused|UnknownHost|timed out|Unreachable|HTTP response)[^\n]*")


def cache_dir(environ: Mapping[str, str]) -> Path:
    """Return $EOSCTL_CACHE, else $XDG_CACHE_HOME/eosctl, else ~/.cache/eosctl."""
    if environ.get("EOSCTL_CACHE"):
        return Path(environ["EOSCTL_CACHE"])
    return Path(environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "eosctl"


def ca_file(environ: Mapping[str, str]) -> Path | None:
    """Return $SSL_CERT_FILE, as Python and pip read it; None if it is unset or not a file."""
    path = Path(environ.get("SSL_CERT_FILE") or "/nonexistent")
    return path if path.is_file() else None


def proxy_options(environ: Mapping[str, str]) -> list[str]:
    """Return $http_proxy, $https_proxy and $no_proxy (either case) as the system properties that Java reads instead.

    Raises UsageError for an invalid proxy.
    """
    options, named = list[str](), proxies_of(environ).by_scheme
    for scheme in ("http", "https"):
        if proxy := named.get(scheme):
            check_proxy(proxy)
            address = urlsplit(proxy.shown)
            options += [f"-D{scheme}.proxyHost={address.hostname}", f"-D{scheme}.proxyPort={address.port or 80}"]
    direct = environ.get("no_proxy") or environ.get("NO_PROXY")
    if options and direct:
        hosts = [host.strip() for host in direct.split(",") if host.strip()]
        options.append("-Dhttp.nonProxyHosts=" + "|".join(f"*{h}" if h.startswith(".") else h for h in hosts))
    return options


def ensure_jars(
    jars: Sequence[Jar],
    *,
    cache: Path,
    java: Java,
    maven_url: str | None,
    on_event: OnEvent,
    java_options: Sequence[str] = (),
    ca_file: Path | None = None,
) -> list[Path]:
    """Return the cached paths of all `jars`; fetch those that are missing or differ from the lock.

    `maven_url` (http, https or file) replaces Ivy's own idea of where Maven Central is; `java_options` are for the
    JVM that fetches (see `proxy_options`), `ca_file` the PEM bundle it is to trust in place of Java's own. Raises
    UnreachableError when a jar can't be had, EosctlError when one has another sha256 than the lock; then nothing was
    installed.
    """
    store = jar_store(cache)
    make_folder(store)
    with locked(store / ".lock"):
        missing = [jar for jar in jars if not is_there(path_in(store, jar), jar)]
        if missing:
            for abandoned in store.glob("fetch-*"):  # of a run that was killed: whoever holds the lock is alone here
                shutil.rmtree(abandoned, ignore_errors=True)
            megabytes = sum(jar.size for jar in missing) / 1e6
            on_event(Event(f"fetching {counted(len(missing), 'jar')} ({megabytes:.0f} MB)"))
            with tempfile.TemporaryDirectory(prefix="fetch-", dir=store) as directory:
                trust = trust_options(ca_file, Path(directory)) if ca_file else []
                options = [*java_options, *trust]
                _retrieve(missing, Path(directory), java=java, maven_url=maven_url, java_options=options)
                _install(missing, Path(directory), store)
    return [path_in(store, jar) for jar in jars]


def jar_store(cache: Path) -> Path:
    """Return the folder of the cache that has the jars."""
    return cache / "jars"


def path_in(store: Path, jar: Jar) -> Path:
    """Return where the store has this jar: by its sha256."""
    return store / jar.sha256[:16] / jar.file_name


def is_there(path: Path, jar: Jar) -> bool:
    """Decide whether `path` has the bytes of this jar."""
    try:
        return path.stat().st_size == jar.size and _digest(path) == jar.sha256
    except OSError:
        return False


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock file at `path`; wait until it is free."""
    with open(open_regular(path, os.O_RDWR | os.O_CREAT)[0], "wb") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def _retrieve(
    jars: Sequence[Jar], directory: Path, *, java: Java, maven_url: str | None, java_options: Sequence[str]
) -> None:
    """Run Ivy on a flat list of jars: without poms, so that nothing else is looked up."""
    ivy_file, settings = directory / "ivy.xml", directory / "ivysettings.xml"
    ivy_file.write_text(_ivy_xml(jars), encoding="utf-8")
    settings.write_text(_settings_xml(maven_url), encoding="utf-8")
    command = [str(java.executable), *_SHORT_LIVED, *java_options, "-jar", str(_ivy_jar()), "-warn"]
    command += ["-settings", str(settings), "-ivy", str(ivy_file), "-cache", str(directory / "cache")]
    command += ["-confs", "default", "-types", "jar"]
    command += ["-retrieve", f"{directory}/out/[artifact]-[revision].[ext]"]
    done = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, env=child_environ())
    absent = [jar for jar in jars if not (directory / "out" / jar.file_name).exists()]
    if absent:
        reason = _REASON.search(done.stdout + done.stderr)
        raise UnreachableError(
            f"could not fetch {len(absent)} of {len(jars)} jars, first {absent[0].file_name}"
            + (f": {reason[0].strip()}" if reason else ""),
            hint=Lines.of(
                "Set EOSCTL_MAVEN_URL to a Maven repository that this machine reaches (http, https or file:),",
                "and SSL_CERT_FILE to the certificates it is to trust, if they are your own.",
            ),
        )


def _ivy_jar() -> Path:
    spec = importlib.util.find_spec("pyspark")
    locations = list(spec.submodule_search_locations or []) if spec else []
    found = [path for location in locations for path in sorted(Path(location).glob("jars/ivy-*.jar"))]
    if not found:
        raise UnsupportedError("fetching Kafka's jars needs pyspark", hint=install_hint("spark"))
    return found[0]


def _ivy_xml(jars: Sequence[Jar]) -> str:
    lines = ['<ivy-module version="2.0">', '<info organisation="e" module="e"/>', "<dependencies>"]
    for jar in jars:
        lines.append(
            f"<dependency org={quoteattr(jar.group)} name={quoteattr(jar.artifact)} rev={quoteattr(jar.version)}"
            f' transitive="false" conf="default->default"><artifact name={quoteattr(jar.artifact)} type="jar"'
            ' ext="jar"/></dependency>'
        )
    return "\n".join([*lines, "</dependencies>", "</ivy-module>"])


def _settings_xml(maven_url: str | None) -> str:
    """Return Ivy's settings, without its own sha1 checks: every jar is checked against the lock's sha256."""
    root = f" root={quoteattr(maven_url.rstrip('/') + '/')}" if maven_url else ""
    return (
        '<ivysettings><property name="ivy.checksums" value=""/><settings defaultResolver="maven"/><resolvers>'
        f'<ibiblio name="maven" m2compatible="true" usepoms="false" useMavenMetadata="false"{root}/>'
        "</resolvers></ivysettings>"
    )


def _install(jars: Sequence[Jar], directory: Path, store: Path) -> None:
    """Move fetched jars into the store once the sha256 of every one of them has been checked."""
    for jar in jars:
        digest = _digest(directory / "out" / jar.file_name)
        if digest != jar.sha256:
            raise EosctlError(
                f"{jar.file_name}: sha256 {digest[:12]}…, but the lock says {jar.sha256[:12]}…; nothing was installed",
                hint="The repository serves another file than Maven Central did: check EOSCTL_MAVEN_URL.",
            )
    for jar in jars:
        target = path_in(store, jar)
        target.parent.mkdir(exist_ok=True)
        os.replace(directory / "out" / jar.file_name, target)
