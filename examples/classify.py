# SPDX-License-Identifier: Apache-2.0
"""Says what a picture shows, by Hearth and by LiteRT with Hearth's delegate. Needs the packages hearth,
ai-edge-litert and pillow.

usage: classify.py MODEL.tflite PICTURE
"""

import sys

import hearth
import numpy as np
from ai_edge_litert.interpreter import Interpreter, load_delegate
from PIL import Image

model, picture = sys.argv[1:]
compiled = hearth.Model(model).compile()
_, height, width, channels = compiled.inputs[0].shape
image = Image.open(picture).convert("RGB" if channels == 3 else "L").resize((width, height))
pixels = np.asarray(image, np.uint8).reshape(1, height, width, channels)
if compiled.inputs[0].dtype != "uint8":
    pixels = pixels.astype(np.float32) / 127.5 - 1
scores, = compiled.run(pixels).values()
print("Hearth:", scores.argmax())

delegate = load_delegate(hearth.delegate_library())
interpreter = Interpreter(model, experimental_delegates=[delegate])
interpreter.allocate_tensors()
interpreter.set_tensor(interpreter.get_input_details()[0]["index"], pixels)
interpreter.invoke()
print("LiteRT:", interpreter.get_tensor(interpreter.get_output_details()[0]["index"]).argmax())
