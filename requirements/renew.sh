#!/usr/bin/env bash
# Write the lists of this folder anew from pyproject.toml: the newest versions, with the sha256 of each file on PyPI.
# Needs uv. The two commands of the README install these lists (eosctl/bootstrap.py), each package stands in one of them.
set -eu
cd "$(dirname "$0")"
export UV_CUSTOM_COMPILE_COMMAND="requirements/renew.sh"
lock() {
  uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-annotate --no-emit-index-url "$@"
}
others() { # all packages of the given lists, as options that leave them out
  sed -nE 's/^([A-Za-z0-9._-]+)==.*/--no-emit-package \1/p' "$@"
}
rm -f ./*.txt
everything="$(mktemp)"
trap 'rm -f "$everything"' EXIT
echo 'setuptools>=77' | lock - --output-file build.txt
lock ../pyproject.toml --extra spark --extra java --extra dev --output-file "$everything"
lock ../pyproject.toml --constraints "$everything" $(others build.txt) --output-file eosctl.txt
lock ../pyproject.toml --constraints "$everything" $(others build.txt eosctl.txt) --extra spark --output-file spark.txt
lock ../pyproject.toml --constraints "$everything" $(others build.txt eosctl.txt) --extra java --output-file java.txt
lock ../pyproject.toml --constraints "$everything" $(others build.txt eosctl.txt spark.txt) --extra dev --output-file dev.txt
# what makes a release has an environment of its own (tools/release.py), so that its versions bind nobody else's
lock --group ../pyproject.toml:release --output-file release.txt
