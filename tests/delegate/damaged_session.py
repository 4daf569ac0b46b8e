# SPDX-License-Identifier: Apache-2.0
"""Runs damaged copies of models in LiteRT, alone and then with the delegate; prints a JSON list of
[copy, how it ended alone, how it ended with the delegate]: "ran", "refused", or a signal's number.

usage: damaged_session.py LIBRARY COUNT MODEL...
"""

import json
import os
import pathlib
import random
import resource
import signal
import sys
import traceback

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "mutate"))
import mutate_models  # noqa: E402
from ai_edge_litert.interpreter import Interpreter, load_delegate  # noqa: E402

RAN, REFUSED = 10, 11
SECONDS = 120
# LiteRT itself would allocate whatever size a damaged shape gives.
BYTES = 6 << 30


def runModel(content, delegates):
    interpreter = Interpreter(model_content=content, experimental_delegates=delegates)
    interpreter.allocate_tensors()
    for detail in interpreter.get_input_details():
        interpreter.set_tensor(detail["index"], np.zeros(detail["shape"], detail["dtype"]))
    interpreter.invoke()


def ending(content, library):
    """How a process that runs the model ends."""
    child = os.fork()
    if child == 0:
        code = RAN
        try:
            signal.alarm(SECONDS)
            resource.setrlimit(resource.RLIMIT_AS, (BYTES, BYTES))
            runModel(content, [load_delegate(library, {"store_mode": "off"})] if library else [])
        except (ValueError, RuntimeError, MemoryError):
            code = REFUSED
        except BaseException:  # pylint: disable=broad-except
            traceback.print_exc()
            code = 1
        os._exit(code)
    status = os.waitpid(child, 0)[1]
    if os.WIFSIGNALED(status):
        return os.WTERMSIG(status)
    return {RAN: "ran", REFUSED: "refused"}.get(os.WEXITSTATUS(status), "failed")


def main():
    library, count, *paths = sys.argv[1:]
    models = [pathlib.Path(path).read_bytes() for path in paths]
    results = []
    for number in range(int(count)):
        rng = random.Random(number)
        content = mutate_models.damaged(rng, models[number % len(models)])
        alone = ending(content, None)
        # A copy that LiteRT alone does not survive says nothing about the delegate.
        results.append([number, alone,
                        ending(content, library) if alone in ("ran", "refused") else None])
    print(json.dumps(results))


if __name__ == "__main__":
    main()
