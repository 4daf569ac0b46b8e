# SPDX-License-Identifier: Apache-2.0
"""Answers requests with Ray Serve: a picture is posted, the digit that it shows comes back. Needs the
packages hearth, ray[serve] and pillow.

usage, in this folder:
    MODEL=../../models/digits/digits.tflite serve run serve_digits:app
    curl --data-binary @../../models/digits/samples/digit_3.png http://localhost:8000/
"""

import io
import os

import hearth
import numpy
from PIL import Image
from ray import serve


@serve.deployment
class Digits:
    """One for each replica. Runs of requests that come meanwhile go on beside each other."""

    def __init__(self, model):
        self.compiled = hearth.Model(model).compile(threads=1)

    async def __call__(self, request):
        picture = Image.open(io.BytesIO(await request.body())).convert("L").resize((28, 28))
        pixels = numpy.asarray(picture, numpy.float32).reshape(1, 28, 28, 1) / 127.5 - 1
        outputs = await self.compiled.create_execution().start(pixels)
        scores = outputs["probabilities"][0]
        return {"digit": int(scores.argmax()), "score": float(scores.max())}


def application(model, replicas=2):
    return Digits.options(num_replicas=replicas).bind(os.path.abspath(model))


app = application(os.environ.get("MODEL", "../../models/digits/digits.tflite"))
