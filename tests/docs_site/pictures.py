"""Draw docs/pictures/*.svg: what doctor and watch show on a real cluster. `python -m tests.docs_site.pictures`.

It starts a sandbox with two workers, gives it connectors with mistakes in their configs, and kills one worker while
watch runs. The text is what the terminal has then, to the letter.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from base64 import b64encode
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import groupby
from pathlib import Path

from rich.console import Console
from rich.style import Style
from rich.text import Text

from tests.terminals import Cell, EmulatedTerminal

ROOT = Path(__file__).resolve().parents[2]
PICTURES = ROOT / "docs" / "pictures"
COLUMNS = 110
_PATIENCE_S = 120.0
_EOSCTL = ["-c", "from eosctl.__main__ import main; main()"]
_CONNECTORS: Mapping[str, Mapping[str, str]] = {
    "orders": {"producer.override.transaction.timeout.ms": "1000000"},
    "payments": {"offsets.topic": "payments-offsets"},
    "invoices": {},
}
_ANSI_NAMES = {"brown": "yellow", "brightbrown": "bright_yellow"}
# rich's own, without the font that it takes from the network
_SVG = """\
<svg class="rich-terminal" viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
<style>
.{unique_id}-matrix {{ font-family: ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace;
  font-size: {char_height}px; line-height: {line_height}px; font-variant-east-asian: full-width; }}
.{unique_id}-title {{ font-size: 18px; font-weight: bold; font-family: sans-serif; }}
{styles}
</style>
<defs>
<clipPath id="{unique_id}-clip-terminal">
<rect x="0" y="0" width="{terminal_width}" height="{terminal_height}" />
</clipPath>
{lines}
</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
"""


def main() -> None:
    """Draw both pictures anew."""
    PICTURES.mkdir(exist_ok=True)
    with _sandbox() as environ:
        words = [*_EOSCTL, "doctor"]
        _draw("doctor", _until_said(words, environ, "timeout_above_broker"))
        _draw("watch", _watched(environ))


@contextmanager
def _sandbox() -> Iterator[dict[str, str]]:
    """Yield the environment that leads eosctl to a group of two workers with three connectors."""
    state = Path(tempfile.mkdtemp(prefix="eosctl-pictures-"))
    environ = {**os.environ, "XDG_STATE_HOME": str(state)}
    try:
        printed = _run(environ, "sandbox", "up", "--workers", "2")
        environ |= dict(re.findall(r"^export (\w+)=(.*)$", printed, re.MULTILINE))
        for name, more in _CONNECTORS.items():
            source = state / f"{name}.txt"
            source.write_text("".join(f"{number}\n" for number in range(1000)), encoding="ascii")
            own = {"connector.class": "FileStreamSource", "tasks.max": "1", "file": str(source), "topic": name}
            _put_connector(environ, name, {**own, **more})
        yield environ
    finally:
        _run(environ, "sandbox", "down")
        shutil.rmtree(state)


def _run(environ: Mapping[str, str], *words: str) -> str:
    return subprocess.run(
        [sys.executable, *_EOSCTL, *words], env=environ, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True
    ).stdout


def _put_connector(environ: Mapping[str, str], name: str, config: Mapping[str, str]) -> None:
    password = Path(environ["EOSCTL_CONNECT_PASSWORD_FILE"]).read_text(encoding="utf-8").strip()
    login = b64encode(f"{environ['EOSCTL_CONNECT_USERNAME']}:{password}".encode()).decode()
    url = f"{environ['EOSCTL_CONNECT_URL'].split(',')[0]}/connectors/{name}/config"
    headers = {"Content-Type": "application/json", "Authorization": f"Basic {login}"}
    request = urllib.request.Request(url, json.dumps(config).encode(), headers, method="PUT")
    with urllib.request.urlopen(request, timeout=_PATIENCE_S):
        pass


def _until_said(words: list[str], environ: Mapping[str, str], wanted: str) -> list[list[Cell]]:
    """Return the screen of a command once it says `wanted`: a connector takes a moment to fail."""
    until_s = time.monotonic() + _PATIENCE_S
    while True:
        with EmulatedTerminal(words, columns=COLUMNS, rows=60, environ=environ) as terminal:
            terminal.end()
            cells = terminal.cells()
        if any(wanted in line for line in _lines(cells)):
            return cells
        if time.monotonic() > until_s:
            raise TimeoutError("\n".join(_lines(cells)))
        time.sleep(1)


def _watched(environ: Mapping[str, str]) -> list[list[Cell]]:
    """Return watch's screen after one of the two workers was killed."""
    words = [*_EOSCTL, "watch", "--interval", "2s"]
    with EmulatedTerminal(words, columns=COLUMNS, rows=21, environ=environ) as terminal:
        terminal.wait_for_text("transaction timeout of")
        os.kill(_pid_of_a_worker(environ), signal.SIGKILL)
        terminal.wait_for_text("1 of 1 worker")
        time.sleep(12)
        terminal.lines()
        cells = terminal.cells()
        terminal.press("q")
        terminal.end()
    return cells


def _pid_of_a_worker(environ: Mapping[str, str]) -> int:
    document = json.loads(_run(environ, "sandbox", "status", "-o", "json"))
    return next(int(row["pid"]) for row in document["data"]["rows"] if row["node"].endswith("worker-1"))


def _lines(cells: list[list[Cell]]) -> list[str]:
    return ["".join(cell.text for cell in row).rstrip() for row in cells]


def _draw(name: str, cells: list[list[Cell]]) -> None:
    """Write docs/pictures/NAME.svg; empty lines at the end are left out."""
    filled = [number for number, line in enumerate(_lines(cells), start=1) if line]
    console = Console(record=True, width=COLUMNS, file=open(os.devnull, "w"), force_terminal=True)  # noqa: SIM115
    console.print(Text(f"$ eosctl {name}", style="bold"))
    for row in cells[: max(filled)]:
        runs = groupby(row, key=_style)
        console.print(Text.assemble(*(("".join(cell.text for cell in run), style) for style, run in runs)), crop=True)
    svg = console.export_svg(title="", code_format=_SVG, unique_id=name)
    (PICTURES / f"{name}.svg").write_text(svg, encoding="utf-8")


def _style(cell: Cell) -> Style:
    color = _ANSI_NAMES.get(cell.color, cell.color)
    if color.startswith("bright") and "_" not in color:
        color = color.replace("bright", "bright_")
    return Style(color=color, bold=cell.bold, reverse=cell.reverse)


if __name__ == "__main__":
    main()
