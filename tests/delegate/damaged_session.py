# SPDX-License-Identifier: Apache-2.0
"""Runs damaged copies of models in LiteRT, alone and then with the delegate; prints a JSON list of
[copy, how it ended alone, how it ended with the delegate, why the results differ]. An end is "ran",
"refused", "failed" or a signal's number, or null if there was no such run; the last is null where the
results agree or cannot be compared.

usage: damaged_session.py LIBRARY COUNT MODEL...

Every other copy has damaged bytes, the others have other values in some fields.
"""

import ctypes
import json
import os
import pathlib
import pickle
import random
import resource
import signal
import sys
import tempfile
import traceback

import numpy as np

TESTS = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS / "mutate"), str(TESTS.parent / "bench" / "compatibility")]
import edit_models  # noqa: E402
import judge  # noqa: E402
import mutate_models  # noqa: E402
from ai_edge_litert.interpreter import Interpreter, OpResolverType, load_delegate  # noqa: E402

RAN, REFUSED = 10, 11
SECONDS = 120
# LiteRT itself would allocate whatever size a damaged shape gives.
BYTES = 6 << 30
# LiteRT with and without the kernels of XNNPACK, and with the delegate.
ALONE, PLAIN, DELEGATE = range(3)
# Where LiteRT crashes now and then, the delegate is not to blame.
MORE_TRIES = 4
# glibc's M_PERTURB, and bytes with which it then fills what is allocated.
PERTURB = -6
FILLINGS = (0x11, 0xEE)
# Sums of larger numbers overflow or not, by the order in which they are added.
LARGEST = 1e30


def sideOptions(side, library):
    if side == DELEGATE:
        return {"experimental_delegates": [load_delegate(library, {"store_mode": "off"})]}
    if side == PLAIN:
        return {"experimental_op_resolver_type": OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES}
    return {}


def largestStep(interpreter):
    """The largest scale of an integer tensor, of which an output may be a step away."""
    scales = [detail["quantization"][0] for detail in interpreter.get_tensor_details()
              if detail["dtype"] in (np.int8, np.uint8, np.int16)]
    return max([float(scale) for scale in scales if np.isfinite(scale)], default=0.0)


def runModel(content, options):
    """Pairs of an output and the size of a step, of two runs."""
    interpreter = Interpreter(model_content=content, **options)
    interpreter.allocate_tensors()
    step = largestStep(interpreter)
    generator = np.random.default_rng(5)
    outputs = []
    for _ in range(2):
        for detail in interpreter.get_input_details():
            dtype = np.dtype(detail["dtype"])
            values = (generator.uniform(-1, 1, detail["shape"]) if dtype.kind == "f"
                      else generator.integers(0, 100, detail["shape"]))
            interpreter.set_tensor(detail["index"], values.astype(dtype))
        interpreter.invoke()
        for detail in interpreter.get_output_details():
            outputs.append((interpreter.get_tensor(detail["index"]), step))
    return outputs


class Runner:
    def __init__(self, library, folder):
        self._library = library
        self._path = pathlib.Path(folder) / "outputs"

    def run(self, content, side, filling=0):
        """How a process that runs the model ends, and the outputs if it has run."""
        child = os.fork()
        if child == 0:
            code = RAN
            try:
                signal.alarm(SECONDS)
                ctypes.CDLL(None).mallopt(PERTURB, filling)
                resource.setrlimit(resource.RLIMIT_AS, (BYTES, BYTES))
                outputs = runModel(content, sideOptions(side, self._library))
                self._path.write_bytes(pickle.dumps(outputs))
            except (ValueError, RuntimeError, MemoryError, TypeError):
                code = REFUSED
            except BaseException:  # pylint: disable=broad-except
                traceback.print_exc()
                code = 1
            os._exit(code)
        status = os.waitpid(child, 0)[1]
        if os.WIFSIGNALED(status):
            return os.WTERMSIG(status), None
        end = {RAN: "ran", REFUSED: "refused"}.get(os.WEXITSTATUS(status), "failed")
        return end, pickle.loads(self._path.read_bytes()) if end == "ran" else None

    def compare(self, content):
        """The entry of one copy, without its number."""
        alone, expected = self.run(content, ALONE)
        if alone not in ("ran", "refused"):
            return alone, None, None
        end, found = self.run(content, DELEGATE)
        if end not in ("ran", "refused") or (alone == "ran" and end != "ran"):
            for _ in range(MORE_TRIES):
                again = self.run(content, ALONE)[0]
                if again != alone:
                    return again, None, None
            if isinstance(self.run(content, PLAIN)[0], int):
                return alone, None, None
        if expected is None or found is None:
            return alone, end, None
        plain = self.run(content, PLAIN)[1]
        why = difference(found, [expected] if plain is None else [expected, plain])
        return alone, end, why if why is None or self.isDefined(content, expected) else None

    def isDefined(self, content, expected):
        """Whether LiteRT's results do not depend on what its memory held before."""
        for filling in FILLINGS:
            again = self.run(content, ALONE, filling)[1]
            if again is None or difference(again, [expected]) is not None:
                return False
        return True


def isComparable(peers):
    """Whether LiteRT's own results have one shape and are numbers."""
    shapes = {peer.shape for peer in peers}
    return len(shapes) == 1 and all(
        peer.dtype.kind not in "fc" or
        (np.isfinite(peer).all() and judge.rangeOf([peer]) < LARGEST) for peer in peers)


def difference(found, sides):
    """Why the outputs differ from those of LiteRT, or None."""
    for position, (array, step) in enumerate(found):
        peers = [side[position][0] for side in sides]
        if not isComparable(peers):
            continue
        verdict = judge.judge(array, peers, "dynamic", (step, 0))
        if verdict.outcome != judge.AGREES and verdict.difference > (
                judge.toleranceOf("dynamic") * judge.rangeOf(peers)):
            return f"output {position} {verdict.why}"
    return None


def main():
    library, count, *paths = sys.argv[1:]
    models = [pathlib.Path(path).read_bytes() for path in paths]
    results = []
    with tempfile.TemporaryDirectory() as folder:
        runner = Runner(library, folder)
        for number in range(int(count)):
            change = edit_models.edited if number % 2 else mutate_models.damaged
            content = change(random.Random(number), models[number // 2 % len(models)])
            results.append([number, *runner.compare(content)])
    print(json.dumps(results))


if __name__ == "__main__":
    main()
