"""A process of eosctl that kills itself at a moment of its own: before a note in its journal, or before a REST write.

Python tells of both by itself (audit events): nothing of eosctl is replaced. What a write has done before it is noted
is killed at the next note; what is noted before anything is done, at the next write.
"""

from __future__ import annotations

KILLS_ITSELF = r"""
import os, runpy, signal, sys

at, told = int(sys.argv[1]), os.open(sys.argv[2], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
count = 0

def tick(what):
    global count
    count += 1
    os.write(told, what + b"\n")
    if count == at:
        os.kill(os.getpid(), signal.SIGKILL)

def listen(event, arguments):
    if event == "http.client.send":
        line = bytes(arguments[1][:300]).split(b"\r\n")[0]
        if line.split(b" ")[0] in (b"PUT", b"POST", b"PATCH", b"DELETE") and b"/connector-plugins/" not in line:
            tick(line)
    elif event == "open" and "/journals/" in str(arguments[0]) and (arguments[2] or 0) & os.O_APPEND:
        tick(b"note")

sys.addaudithook(listen)
sys.argv[:] = ["eosctl", *sys.argv[3:]]
runpy.run_module("eosctl", run_name="__main__")
"""
