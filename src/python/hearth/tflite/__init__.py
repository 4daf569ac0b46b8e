# SPDX-License-Identifier: Apache-2.0
"""Runs programs that were written for TensorFlow Lite's Python API.

    from hearth.tflite import Interpreter

    interpreter = Interpreter(model_path="model.tflite")
    interpreter.allocate_tensors()

`python -m hearth.tflite SCRIPT ARGS...` runs a program as it is: its imports of
tflite_runtime.interpreter, ai_edge_litert and, where TensorFlow is not installed, tensorflow.lite are
answered by this package. docs/tflite-programs.md says more. New programs take hearth.Model.
"""

from ._imports import install
from .interpreter import (Delegate, Interpreter, InterpreterWithCustomOps, OpResolverType, SignatureRunner,
                          load_delegate)

__all__ = ["Delegate", "Interpreter", "InterpreterWithCustomOps", "OpResolverType", "SignatureRunner",
           "install", "load_delegate"]
