# SPDX-License-Identifier: Apache-2.0
"""Synthetic .tflite workloads: real layer shapes, generated weights, NumPy only.

`generate.py` is the command. The modules behind it:

- `graph`: the in-memory network (tensors, operators) that everything else exchanges
- `tflite_schema`: the documented codes and field slots of the .tflite format
- `tflite_writer`, `tflite_reader`: that network to and from a file
- `networks`: the architectures
- `weights`: reproducible weights
- `reference`: runs a network in NumPy
- `quantize`: turns a float network into a full-integer one
"""
