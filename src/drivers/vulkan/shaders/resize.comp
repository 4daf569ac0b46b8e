// SPDX-License-Identifier: Apache-2.0
// Resizing of images: an invocation computes one element of the output of four of the input. Tables
// say which rows and columns these are and how much the second one counts; where it counts nothing,
// the first is taken as it is.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "types.glsl"

layout(local_size_x = ROW_GROUP) in;

layout(binding = 0) readonly buffer DataBuffer { DATA data[]; };
layout(binding = 1) writeonly buffer OutputBuffer { DATA outputs[]; };
// Three words for each row of the output, then for each column: the first, the second, its weight.
layout(binding = 2) readonly buffer SampleBuffer { uint samples[]; };

layout(push_constant) uniform Parameters {
  uint batches, outputHeight, outputWidth, channels;
  uint dataBatch, dataRow, dataColumn, dataChannel;          // steps in elements
  uint outputBatch, outputRow, outputColumn, outputChannel;  // steps in elements
} p;

// Weights of quantised numbers have so many bits behind the point (lowering/resize.cc).
const int kWeightBits = 11;

#if defined(REAL)
float weightOf(uint word) { return uintBitsToFloat(word); }
float valueAt(uint index) { return float(data[index]); }
float mix2(float first, float second, float weight) {
  return first * (1.0 - weight) + second * weight;
}
#else
int weightOf(uint word) { return int(word); }
int valueAt(uint index) { return int(STORED(data[index])); }
int mix2(int first, int second, int weight) {
  return first * ((1 << kWeightBits) - weight) + second * weight;
}
#endif

void main() {
  const uint element = rowElement();
  if (element >= p.batches * p.outputHeight * p.outputWidth * p.channels) return;
  const uint channel = element % p.channels;
  const uint x = element / p.channels % p.outputWidth;
  const uint y = element / p.channels / p.outputWidth % p.outputHeight;
  const uint batch = element / p.channels / p.outputWidth / p.outputHeight;
  const uint row = 3 * y;
  const uint column = 3 * (p.outputHeight + x);
  const uint base = batch * p.dataBatch + channel * p.dataChannel;
  const uint above = base + samples[row] * p.dataRow;
  const uint below = base + samples[row + 1] * p.dataRow;
  const uint left = samples[column] * p.dataColumn;
  const uint right = samples[column + 1] * p.dataColumn;
  const uint place =
      batch * p.outputBatch + y * p.outputRow + x * p.outputColumn + channel * p.outputChannel;
  if (samples[row + 2] == 0 && samples[column + 2] == 0) {
    outputs[place] = data[above + left];
    return;
  }
  const SUM weight = weightOf(samples[column + 2]);
  const SUM mixed = mix2(mix2(valueAt(above + left), valueAt(above + right), weight),
                         mix2(valueAt(below + left), valueAt(below + right), weight),
                         weightOf(samples[row + 2]));
#if defined(REAL)
  outputs[place] = DATA(mixed);
#else
  // Halves are rounded up.
  outputs[place] = DATA(STORED((mixed + (1 << (2 * kWeightBits - 1))) >> (2 * kWeightBits)));
#endif
}
