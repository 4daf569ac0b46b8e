# SPDX-License-Identifier: Apache-2.0
"""Synthetic .tflite workloads: real layer shapes, generated weights, NumPy only.

`generate.py` is the command. The modules behind it:

- `graph`: the in-memory network (tensors, operators) that everything else exchanges
- `tflite_schema`: the documented codes and field slots of the .tflite format
- `tflite_writer`, `tflite_reader`: that network to and from a file
- `networks`: the architectures
- `weights`: reproducible weights
- `transformer`, `diffusion`: language models and the networks of Stable Diffusion, of `layers`
- `stored_weights`: their weights as float32, float16, int8 and int4
- `flexbuffer`: attributes of composite operators
- `reference`: runs a network in NumPy; `check.py` compares it with the command
- `quantize`: turns a float network into a full-integer one, and that into its float32 twin
"""
