# SPDX-License-Identifier: Apache-2.0
"""Runs LiteRT-LM once: the model, a prompt and an answer by the most likely tokens. Prints a line of JSON with
times since the import of its module, which a native program does not have."""

import argparse
import json
import sys
import time
from pathlib import Path

import litert_lm


def memory():
    """MiB: the most that was resident, and what is anonymous now."""
    found = {}
    for line in Path("/proc/self/status").read_text().splitlines():
        name, _, value = line.partition(":")
        if name in ("VmHWM", "RssAnon"):
            found[name] = int(value.split()[0]) / 1024
    return found["VmHWM"], found["RssAnon"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("model")
    parser.add_argument("--prompt", type=Path, required=True)
    parser.add_argument("--tokens", type=int, required=True)
    parser.add_argument("--threads", type=int, required=True)
    parser.add_argument("--context", type=int, required=True)
    parser.add_argument("--cache", required=True, help="folder for its packed weights")
    parser.add_argument("--wait", action="store_true", help="until standard input ends, with the model in memory")
    arguments = parser.parse_args()
    litert_lm.set_min_log_severity(litert_lm.LogSeverity.ERROR)

    begin, processorBegin = time.monotonic(), time.process_time()
    engine = litert_lm.Engine(arguments.model,
                              backend=litert_lm.Backend.CPU(thread_count=arguments.threads),
                              max_num_tokens=arguments.context, cache_dir=arguments.cache,
                              enable_benchmark=True)
    ready = time.monotonic()
    session = engine.create_session(
        apply_prompt_template=False, max_output_tokens=arguments.tokens,
        sampler_config=litert_lm.SamplerConfig(top_k=1, top_p=1.0, temperature=1.0, seed=1))
    session.run_prefill([arguments.prompt.read_text(encoding="utf-8")])
    first, text = None, ""
    for response in session.run_decode_async():
        first = first or time.monotonic()
        text += response.texts[0]
    processor = time.process_time() - processorBegin
    info = session.get_benchmark_info()
    peak, anonymous = memory()
    print(json.dumps({"ready_s": ready - begin, "first_token_s": first - begin, "processor_s": processor,
                      "prefill": info.last_prefill_tokens_per_second,
                      "decode": info.last_decode_tokens_per_second,
                      "prompt_tokens": info.last_prefill_token_count,
                      "peak_mib": peak, "anonymous_mib": anonymous, "text": text}), flush=True)
    if arguments.wait:
        sys.stdin.read()


if __name__ == "__main__":
    main()
