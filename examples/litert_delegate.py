# SPDX-License-Identifier: Apache-2.0
"""A LiteRT program that runs on Hearth: only the line that makes the delegate, and its use in the
next one, differ from a program without.

usage: litert_delegate.py MODEL INPUT.npy [LIBRARY]
"""

import sys

import numpy as np
from ai_edge_litert.interpreter import Interpreter, load_delegate

model, values, library = (sys.argv[1:] + ["libhearth_delegate.so"])[:3]
hearth = load_delegate(library)
interpreter = Interpreter(model, experimental_delegates=[hearth])
interpreter.allocate_tensors()
interpreter.set_tensor(interpreter.get_input_details()[0]["index"], np.load(values))
interpreter.invoke()
scores = interpreter.get_tensor(interpreter.get_output_details()[0]["index"])
print(scores.argmax())
