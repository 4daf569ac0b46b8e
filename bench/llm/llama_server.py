# SPDX-License-Identifier: Apache-2.0
"""Runs the server of llama.cpp once: the model, a prompt and an answer by the most likely tokens."""

import http.client
import json
import re
import shutil
import socket
import subprocess
import time
from pathlib import Path

from comparison import Failure


def addOptions(parser):
    parser.add_argument("--llama", type=Path, metavar="MODEL.gguf", help="measure llama.cpp with this model as well")
    parser.add_argument("--llama-server", default=shutil.which("llama-server"), metavar="PROGRAM",
                        help="the program; default: the one on PATH")


def version(arguments):
    try:
        run = subprocess.run([arguments.llama_server or "llama-server", "--version"], capture_output=True, text=True,
                             check=False)
    except OSError:
        return "llama.cpp"
    found = re.search(r"version: (\S+)", run.stdout + run.stderr)
    return f"llama.cpp {found[1]}" if found else "llama.cpp"


def freePort():
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return listening.getsockname()[1]


def waitUntilReady(process, port, timeout):
    end = time.monotonic() + timeout
    while time.monotonic() < end:
        if process.poll() is not None:
            raise Failure(f"llama-server ended with the exit code {process.returncode}.")
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=timeout)
        try:
            connection.request("GET", "/health")
            if connection.getresponse().status == 200:
                return
        except OSError:
            pass
        finally:
            connection.close()
        time.sleep(0.005)
    raise Failure("llama-server does not get ready.")


def answer(port, prompt, tokens, timeout):
    """When the first text came, the whole text, and the server's own figures."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=timeout)
    body = {"prompt": prompt, "n_predict": tokens, "temperature": 0, "cache_prompt": False, "ignore_eos": True,
            "stream": True}
    connection.request("POST", "/completion", json.dumps(body), {"Content-Type": "application/json"})
    reply = connection.getresponse()
    if reply.status != 200:
        raise Failure(reply.read().decode("utf-8", "replace"))
    first, text, figures = None, "", None
    for line in reply:
        if not line.startswith(b"data: "):
            continue
        event = json.loads(line[len(b"data: "):])
        if event.get("content") and first is None:
            first = time.monotonic()
        text += event.get("content", "")
        figures = event.get("timings") or figures
    connection.close()
    if first is None or figures is None:
        raise Failure("llama-server gives no answer.")
    return first, text, figures


def once(arguments, model, prompt, timeout):
    """The figures of a fresh process, as those of the other sides."""
    if arguments.llama_server is None:
        raise Failure("There is no llama-server; --llama-server names one.")
    port = freePort()
    words = [*arguments.launcher.split(), arguments.llama_server, "--model", str(model), "--threads",
             str(arguments.threads), "--threads-batch", str(arguments.threads), "--ctx-size", str(arguments.context),
             "--parallel", "1", "--host", "127.0.0.1", "--port", str(port)]
    begin = time.monotonic()
    with subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            waitUntilReady(process, port, timeout)
            ready = time.monotonic()
            first, text, figures = answer(port, prompt, arguments.tokens, timeout)
            status = Path(f"/proc/{process.pid}/status").read_text(encoding="utf-8")
        finally:
            process.terminate()
    memory = {name: int(kib) / 1024 for name, kib in re.findall(r"(VmHWM|RssAnon):\s+(\d+)", status)}
    return {"ready_s": ready - begin, "first_token_s": first - begin, "prefill": figures["prompt_per_second"],
            "decode": figures["predicted_per_second"], "prompt_tokens": figures["prompt_n"],
            "peak_mib": memory["VmHWM"], "anonymous_mib": memory["RssAnon"], "text": text}
