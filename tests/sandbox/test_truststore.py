"""A PEM bundle as a Java trust store, read back by Java's own keytool."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
import trustme

from eosctl.machine.java import require_java
from eosctl.sandbox.downloads.jars import ca_file, read_pem, trust_options


def _bundle(path: Path, count: int) -> Path:
    text = b"# a comment between\n".join(trustme.CA().cert_pem.bytes() for _ in range(count))
    path.write_bytes(text)
    return path


def test_a_bundle_is_read_in_order_and_text_between_is_passed_over(tmp_path: Path) -> None:
    bundle = _bundle(tmp_path / "ca.pem", 3)
    certificates = read_pem(bundle.read_text())
    assert len({certificate[:1] for certificate in certificates}) == 1
    assert len(set(certificates)) == 3
    assert read_pem("") == []


@pytest.mark.live
def test_keytool_reads_every_certificate(tmp_path: Path) -> None:
    """Java's wheel trusts its own list only: behind a company's proxy no jar could be fetched."""
    store, kind, password = trust_options(_bundle(tmp_path / "ca.pem", 3), tmp_path)
    keytool = require_java(os.environ).home / "bin" / "keytool"
    command = [str(keytool), "-list", "-keystore", store.partition("=")[2], "-storetype", kind.partition("=")[2]]
    done = subprocess.run([*command, "-storepass", password.partition("=")[2]], capture_output=True, text=True)
    assert "contains 3 entries" in done.stdout, done.stdout + done.stderr


def test_ssl_cert_file(tmp_path: Path) -> None:
    bundle = _bundle(tmp_path / "ca.pem", 1)
    assert ca_file({"SSL_CERT_FILE": str(bundle)}) == bundle
    assert ca_file({"SSL_CERT_FILE": str(tmp_path / "absent")}) is None
    assert ca_file({}) is None
