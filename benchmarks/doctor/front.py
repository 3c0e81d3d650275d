"""A worker's REST interface with as many connectors as one likes: those are made up, all else is a real worker's.

`python3 -m benchmarks.doctor.front WORKER_URL CONNECTORS TASKS` prints its own URL and serves until it is ended.
"""

from __future__ import annotations

import http.client
import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

SOURCE = "org.apache.kafka.connect.file.FileStreamSourceConnector"


def connector_name(number: int) -> str:
    """Return the name of a connector."""
    return f"orders-{number:04}"


def connector_config(name: str, tasks: int) -> dict[str, str]:
    """Return a config as a source may have it."""
    more = {f"transforms.mask.fields.{number}": f"customer.address.line.{number}" for number in range(20)}
    base = {"connector.class": SOURCE, "tasks.max": str(tasks), "file": f"/data/{name}", "topic": name}
    return {"name": name, **base, **more}


def connector_entry(name: str, tasks: int, worker_id: str) -> dict[str, Any]:
    """Return the connector's entry in `GET /connectors?expand=info&expand=status`."""
    running = [{"id": task, "state": "RUNNING", "worker_id": worker_id} for task in range(tasks)]
    return {
        "info": {
            "name": name,
            "config": connector_config(name, tasks),
            "tasks": [{"connector": name, "task": task} for task in range(tasks)],
            "type": "source",
        },
        "status": {
            "name": name,
            "connector": {"state": "RUNNING", "worker_id": worker_id},
            "tasks": running,
            "type": "source",
        },
    }


def serve(worker_url: str, connectors: int, tasks: int) -> None:
    """Serve until the process is ended."""
    worker_id = worker_url.partition("://")[2]
    names = [connector_name(number) for number in range(connectors)]
    entries = {name: connector_entry(name, tasks, worker_id) for name in names}
    listing = json.dumps(entries).encode()

    class Front(BaseHTTPRequestHandler):
        protocol_version, disable_nagle_algorithm = "HTTP/1.1", True  # as a worker has them

        def setup(self) -> None:
            super().setup()
            self._worker = http.client.HTTPConnection(worker_id, timeout=60)

        def finish(self) -> None:
            self._worker.close()
            super().finish()

        def do_GET(self) -> None:
            path, _mark, query = self.path.partition("?")
            name = path.removeprefix("/connectors/").partition("/")[0]
            if path == "/connectors":
                self._answer(200, listing if "expand" in query else json.dumps(names).encode())
            elif name in entries and path.endswith("/status"):
                self._answer(200, json.dumps(entries[name]["status"]).encode())
            else:
                self._forward("GET", None)

        def do_PUT(self) -> None:
            self._forward("PUT", self.rfile.read(int(self.headers.get("Content-Length", "0"))))

        def _forward(self, method: str, body: bytes | None) -> None:
            headers = {"Content-Type": "application/json", "Accept": "application/json"}
            self._worker.request(method, self.path, body, headers)
            answer = self._worker.getresponse()
            self._answer(answer.status, answer.read())

        def _answer(self, status: int, body: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_what: object) -> None:
            """Log nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Front)
    print(f"http://127.0.0.1:{server.server_address[1]}", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    serve(sys.argv[1].rstrip("/"), int(sys.argv[2]), int(sys.argv[3]))
