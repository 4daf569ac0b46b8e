# SPDX-License-Identifier: Apache-2.0
"""Runs models with a TensorFlow Lite C library, as a program does that opens it. Reads a job from standard
input (library, delegate or null, models) and writes the results as JSON."""

import ctypes
import hashlib
import json
import random
import struct
import sys

RUNS = 2


class Tensor(ctypes.Structure):
    """The begin of TfLiteTensor."""
    _fields_ = [("type", ctypes.c_int), ("data", ctypes.c_void_p), ("dims", ctypes.c_void_p),
                ("scale", ctypes.c_float), ("zero", ctypes.c_int), ("allocation", ctypes.c_int),
                ("bytes", ctypes.c_size_t)]


class Library:
    def __init__(self, path):
        self._library = ctypes.CDLL(path)

    def __call__(self, name, *arguments, result=ctypes.c_void_p):
        function = getattr(self._library, "TfLite" + name)
        function.restype = result
        return function(*(ctypes.c_void_p(each) if isinstance(each, int) and each > 2**31 else each
                          for each in arguments))


def fill(tensor, generator):
    """Small numbers, so that integers that index something mostly exist."""
    size = tensor.bytes
    if tensor.type == 1:
        values = (ctypes.c_float * (size // 4))(*(generator.random() * 2 - 1 for _ in range(size // 4)))
    elif tensor.type in (2, 4):
        kind = ctypes.c_int32 if tensor.type == 2 else ctypes.c_int64
        count = size // ctypes.sizeof(kind)
        values = (kind * count)(*(generator.randrange(2) for _ in range(count)))
    elif tensor.type == 6:
        values = (ctypes.c_uint8 * size)(*(generator.randrange(2) for _ in range(size)))
    else:
        values = (ctypes.c_uint8 * size).from_buffer_copy(generator.randbytes(size) if size else b"")
    ctypes.memmove(tensor.data, values, size)


def results(library, path, delegate):
    """The outputs of some runs: numbers of short float32 tensors, digests of others. A text says why there
    are none."""
    model = library("ModelCreateFromFile", path.encode())
    options = library("InterpreterOptionsCreate")
    if delegate:
        library("InterpreterOptionsAddDelegate", options, delegate, result=None)
    interpreter = library("InterpreterCreate", model, options)
    if not interpreter:
        return "There is no interpreter."
    try:
        if library("InterpreterAllocateTensors", interpreter, result=ctypes.c_int):
            return "The tensors cannot be allocated."
        generator = random.Random(1)
        found = []
        for _ in range(RUNS):
            for i in range(library("InterpreterGetInputTensorCount", interpreter, result=ctypes.c_int)):
                fill(library("InterpreterGetInputTensor", interpreter, i,
                             result=ctypes.POINTER(Tensor)).contents, generator)
            if library("InterpreterInvoke", interpreter, result=ctypes.c_int):
                return "The invocation fails."
            for i in range(library("InterpreterGetOutputTensorCount", interpreter, result=ctypes.c_int)):
                output = library("InterpreterGetOutputTensor", interpreter, i,
                                 result=ctypes.POINTER(Tensor)).contents
                content = ctypes.string_at(output.data, output.bytes) if output.bytes else b""
                is_short = output.type == 1 and output.bytes <= 4096
                found.append(struct.unpack(f"{output.bytes // 4}f", content) if is_short
                             else hashlib.sha256(content).hexdigest())
        return found
    finally:
        library("InterpreterDelete", interpreter, result=None)
        library("InterpreterOptionsDelete", options, result=None)
        library("ModelDelete", model, result=None)


def main():
    job = json.load(sys.stdin)
    library = Library(job["library"])
    delegate = None
    if job["delegate"]:
        plugin = ctypes.CDLL(job["delegate"])
        plugin.tflite_plugin_create_delegate.restype = ctypes.c_void_p
        plugin.tflite_plugin_create_delegate.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t,
                                                         ctypes.c_void_p]
        plugin.tflite_plugin_destroy_delegate.argtypes = [ctypes.c_void_p]
        delegate = plugin.tflite_plugin_create_delegate(None, None, 0, None)
    found = {path: results(library, path, delegate) for path in job["models"]}
    if delegate:
        plugin.tflite_plugin_destroy_delegate(delegate)
    json.dump(found, sys.stdout)


main()
