# SPDX-License-Identifier: Apache-2.0
"""TensorFlow's side: converts graphs. Serves jobs in the virtual environment that environment.py
makes.

A job {"list": true} gives the names of all graphs with their families and
recipes. A job with graph, recipe and
`path` writes PATH.tflite, PATH.npz with the inputs of each run and what TensorFlow computes of
them in float32, and PATH.json with what the judge has to know. Arrays are named RUN/in/NAME and
RUN/reference/NAME.
"""

import json
import os
import sys
import zlib
from pathlib import Path

os.environ.update(TF_CPP_MIN_LOG_LEVEL="2", CUDA_VISIBLE_DEVICES="-1", TF_ENABLE_ONEDNN_OPTS="0")

import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402

sys.path.insert(0, str(Path(__file__).resolve().parent))
import graphs  # noqa: E402
import service  # noqa: E402

SAMPLES = 8
# The quantizer's recipes, by the names that rows have.
QUANTIZER_RECIPES = {
    "aiedge-dynamic8": "dynamic_wi8_afp32", "aiedge-weights8": "weight_only_wi8_afp32",
    "aiedge-dynamic4": "dynamic_wi4_afp32", "aiedge-weights4": "weight_only_wi4_afp32",
    "aiedge-dynamic4-blocks": "dynamic_wi4b32_afp32",
    "aiedge-dynamic8-blocks": "dynamic_wi8b32_afp32", "aiedge-dynamic2": "dynamic_wi2c_afp32",
    "aiedge-int8": "static_wi8_ai8", "aiedge-int16": "static_wi8_ai16"}


def named(values):
    """Values of the inputs by their names."""
    return {f"x{number}": value for number, value in enumerate(values)}


class Source:
    """A graph as TensorFlow traced it, with the inputs of its runs."""

    def __init__(self, graph):
        self.graph = graph
        seed = zlib.crc32(graph.name.encode())
        tf.keras.utils.set_random_seed(seed & 0x7FFFFFFF)
        built = graph.build()

        def function(*values):
            return {f"y{number}": value
                    for number, value in enumerate(tf.nest.flatten(built(*values)))}

        traced = tf.function(function, input_signature=[
            tf.TensorSpec(one.signature, one.dtype, f"x{number}")
            for number, one in enumerate(graph.inputs)])
        self.concrete = traced.get_concrete_function()
        self.module = tf.Module()
        self.module.built = built
        self.module.kept = list(self.concrete.graph.variables)
        self.module.traced = traced
        self._generator = np.random.default_rng(seed)
        self.inputs = [self._draw(run) for run in range(graph.runs)]
        self.samples = [self._draw(number % graph.runs) for number in range(SAMPLES)]
        self._float = None

    def _draw(self, run):
        return [one.array(self._generator, run) for one in self.graph.inputs]

    def reference(self, run):
        values = self.concrete(*map(tf.constant, self.inputs[run]))
        return {name: value.numpy() for name, value in values.items()}

    def convert(self, recipe):
        if recipe in QUANTIZER_RECIPES:
            return self._quantize(QUANTIZER_RECIPES[recipe])
        converter = tf.lite.TFLiteConverter.from_concrete_functions([self.concrete], self.module)
        converter.allow_custom_ops = self.graph.isCustom
        converter.experimental_enable_resource_variables = True
        if recipe == "sparse":
            converter.optimizations = [tf.lite.Optimize.EXPERIMENTAL_SPARSITY]
        elif recipe != "float32":
            converter.optimizations = [tf.lite.Optimize.DEFAULT]
        if recipe == "float16":
            converter.target_spec.supported_types = [tf.float16]
        elif recipe == "sparse-dynamic":
            converter.optimizations.append(tf.lite.Optimize.EXPERIMENTAL_SPARSITY)
        elif recipe.startswith(("int", "uint")):
            converter.representative_dataset = lambda: map(named, self.samples)
            kinds = tf.lite.OpsSet
            converter.target_spec.supported_ops = [
                kinds.EXPERIMENTAL_TFLITE_BUILTINS_ACTIVATIONS_INT16_WEIGHTS_INT8
                if recipe.startswith("int16") else kinds.TFLITE_BUILTINS_INT8,
                kinds.TFLITE_BUILTINS]
            converter._experimental_disable_per_channel = recipe == "int8-per-tensor"
            if recipe == "int16x8-bias32":
                converter._experimental_full_integer_quantization_bias_type = tf.int32
            if recipe.endswith("-io"):
                kind = tf.as_dtype(recipe.removesuffix("-io"))
                converter.inference_input_type = converter.inference_output_type = kind
        return converter.convert()

    def _quantize(self, name):
        from ai_edge_quantizer import quantizer, recipe
        if self._float is None:
            self._float = self.convert("float32")
        worker = quantizer.Quantizer(bytearray(self._float), getattr(recipe, name)())
        calibration = None
        if worker.need_calibration:
            calibration = worker.calibrate({"serving_default": [
                named(sample) for sample in self.samples]}, num_threads=1)
        return bytes(worker.quantize(calibration, enable_progress_report=False).quantized_model)


def facts(content):
    """Details of a model's inputs, and what the judge has to know of it: its operators, and steps
    of quantized results."""
    interpreter = tf.lite.Interpreter(
        model_content=content, experimental_op_resolver_type=tf.lite.experimental.OpResolverType
        .BUILTIN_WITHOUT_DEFAULT_DELEGATES)
    operators = interpreter._get_ops_details()
    tensors = {detail["index"]: detail for detail in interpreter.get_tensor_details()}
    sources = {output: operator for operator in operators for output in operator["outputs"]}
    runner = interpreter.get_signature_runner()
    inputs = runner.get_input_details()
    steps = {}
    for name, detail in runner.get_output_details().items():
        operator = sources.get(detail["index"])
        if detail["dtype"] == np.float32 and operator and operator["op_name"] == "DEQUANTIZE":
            detail = tensors[operator["inputs"][0]]
        steps[name] = [float(detail["quantization"][0]), int(detail["quantization"][1])]
    return inputs, {"operators": sorted({one["op_name"] for one in operators} - {"DELEGATE"}),
                    "steps": steps}


def inputsFor(source, details):
    """{RUN/in/NAME: array}, quantized where the model takes quantized inputs."""
    result = {}
    for run, values in enumerate(source.inputs):
        for name, value in named(values).items():
            kind, (scale, zero) = np.dtype(details[name]["dtype"]), details[name]["quantization"]
            if value.dtype == np.float32 and kind.kind in "iu":
                limits = np.iinfo(kind)
                value = np.clip(np.rint(value / scale) + zero, limits.min, limits.max).astype(kind)
            result[f"{run}/in/{name}"] = value
    return result


class Generator:
    def __init__(self):
        self._graphs = graphs.load()
        self._source = None

    def answer(self, job):
        if "list" in job:
            return {"graphs": [[graph.name, graph.family, list(graph.recipes)]
                               for graph in self._graphs.values()]}
        if self._source is None or self._source.graph.name != job["graph"]:
            self._source = None
            self._source = Source(self._graphs[job["graph"]])
        path = Path(job["path"])
        content = self._source.convert(job["recipe"])
        inputs, about = facts(content)
        arrays = inputsFor(self._source, inputs)
        for run in range(self._source.graph.runs):
            for name, value in self._source.reference(run).items():
                arrays[f"{run}/reference/{name}"] = value
        np.savez(path.with_suffix(".npz"), **arrays)
        path.with_suffix(".tflite").write_bytes(content)
        about |= {"runs": self._source.graph.runs, "isRandom": self._source.graph.isRandom}
        path.with_suffix(".json").write_text(json.dumps(about))
        return {}


if __name__ == "__main__":
    service.serve(Generator().answer)
