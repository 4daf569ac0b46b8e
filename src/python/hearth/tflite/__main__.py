# SPDX-License-Identifier: Apache-2.0
"""python -m hearth.tflite SCRIPT ARGS...: runs a program that imports TensorFlow Lite, with Hearth."""

import os
import runpy
import sys

from . import install

_USAGE = """usage: python -m hearth.tflite SCRIPT [ARGUMENT...]
       python -m hearth.tflite -m MODULE [ARGUMENT...]

Runs a Python program whose imports of tflite_runtime.interpreter, ai_edge_litert and, where
TensorFlow is not installed, tensorflow.lite are answered by Hearth."""


def main():
    arguments = sys.argv[1:]
    if arguments[:1] in (["-h"], ["--help"]):
        print(_USAGE)
        return 0
    is_module = arguments[:1] == ["-m"]
    if is_module:
        del arguments[0]
    if not arguments or arguments[0].startswith("-"):
        print(_USAGE, file=sys.stderr)
        return 2
    install()
    if is_module:
        sys.argv = arguments
        runpy.run_module(arguments[0], run_name="__main__", alter_sys=True)
        return 0
    if not os.path.exists(arguments[0]):
        print(f"hearth.tflite: there is no file {arguments[0]!r}.", file=sys.stderr)
        return 2
    sys.argv = arguments
    # As for `python SCRIPT`, where modules beside the script are found first.
    sys.path[0] = os.path.dirname(os.path.realpath(arguments[0]))
    runpy.run_path(arguments[0], run_name="__main__")
    return 0


if __name__ == "__main__":
    sys.exit(main())
