#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes a model with Q8_0 weights for llama.cpp of another GGUF file.

    q8_model.py MODEL.gguf OUT.gguf

Weights of any type are made numbers and rounded to 8 bits in blocks of 32; what is no matrix, and all that the file says
of the model, stays. Needs the Python packages gguf and numpy.
"""

import argparse
from pathlib import Path

import gguf

Q8 = gguf.GGMLQuantizationType.Q8_0
NUMBERS = (gguf.GGMLQuantizationType.F32, gguf.GGMLQuantizationType.F16)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("out", type=Path)
    arguments = parser.parse_args()
    reader = gguf.GGUFReader(arguments.model)
    writer = gguf.GGUFWriter(arguments.out, reader.fields["general.architecture"].contents())
    for name, field in reader.fields.items():
        if name.startswith("GGUF.") or name in ("general.architecture", "general.file_type"):
            continue
        kind = field.types[0]
        writer.add_key_value(name, field.contents(), kind,
                             field.types[-1] if kind == gguf.GGUFValueType.ARRAY else None)
    writer.add_file_type(gguf.LlamaFileType.MOSTLY_Q8_0)
    count = 0
    for tensor in reader.tensors:
        if tensor.tensor_type in NUMBERS and len(tensor.shape) < 2:
            writer.add_tensor(tensor.name, tensor.data)
            continue
        numbers = gguf.quants.dequantize(tensor.data, tensor.tensor_type)
        writer.add_tensor(tensor.name, gguf.quants.quantize(numbers, Q8), raw_dtype=Q8)
        count += 1
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    print(f"{count} of {len(reader.tensors)} tensors are {Q8.name}")


if __name__ == "__main__":
    main()
