// SPDX-License-Identifier: Apache-2.0
#include "tools/media/picture_tensor.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "tools/media/resize.h"

namespace hearth::tools {
namespace {

using Stored = std::array<uint8_t, 4>;

template <typename T>
Stored store(T value) {
  Stored stored{};
  static_assert(sizeof(T) <= sizeof(Stored));
  std::memcpy(stored.data(), &value, sizeof(T));
  return stored;
}

template <typename T>
Stored quantize(double real, const TensorInfo& tensor) {
  const double value = std::nearbyint(real / tensor.scale) + tensor.zeroPoint;
  return store(static_cast<T>(
      std::clamp<double>(value, std::numeric_limits<T>::min(), std::numeric_limits<T>::max())));
}

// Converts one sample of one channel. Callers make a table of the 256 samples.
Result<Stored> convert(unsigned sample, unsigned channel, const TensorInfo& tensor,
                       const std::optional<Normalization>& normalization) {
  if (normalization) {
    const double real = (sample - normalization->mean[channel]) / normalization->std[channel];
    if (tensor.type == HEARTH_TYPE_FLOAT32) return store(static_cast<float>(real));
    if (tensor.type == HEARTH_TYPE_FLOAT16) return store(static_cast<_Float16>(real));
    if (tensor.scale > 0) {
      if (tensor.type == HEARTH_TYPE_UINT8) return quantize<uint8_t>(real, tensor);
      if (tensor.type == HEARTH_TYPE_INT8) return quantize<int8_t>(real, tensor);
      if (tensor.type == HEARTH_TYPE_INT16) return quantize<int16_t>(real, tensor);
    }
    return fail(ErrorCode::kUnsupported,
                "A normalised picture does not go into the {} tensor \"{}\", which has no scale.",
                typeName(tensor.type), tensor.name);
  }
  const double real = sample / 127.5 - 1.0;
  switch (tensor.type) {
    case HEARTH_TYPE_UINT8:
      return store(static_cast<uint8_t>(sample));
    case HEARTH_TYPE_INT8:
      return store(static_cast<int8_t>(static_cast<int>(sample) - 128));
    case HEARTH_TYPE_FLOAT32:
      return store(static_cast<float>(real));
    case HEARTH_TYPE_FLOAT16:
      return store(static_cast<_Float16>(real));
    default:
      return fail(ErrorCode::kUnsupported,
                  "A picture does not go into the {} tensor \"{}\"; uint8, int8, float16 and "
                  "float32 take one.",
                  typeName(tensor.type), tensor.name);
  }
}

bool isChannelCount(uint32_t dimension) {
  return dimension == 1 || dimension == 3;
}

}  // namespace

Result<PictureLayout> pictureLayout(const TensorInfo& tensor) {
  const std::vector<uint32_t>& d = tensor.dimensions;
  if (d.size() == 4 && d[0] <= 1) {
    if (isChannelCount(d[3])) return PictureLayout{d[1], d[2], d[3], false};
    if (isChannelCount(d[1])) return PictureLayout{d[2], d[3], d[1], true};
  }
  if (d.size() == 3 && d[0] <= 1) return PictureLayout{d[1], d[2], 1, false};
  if (d.size() == 3 && isChannelCount(d[2])) return PictureLayout{d[0], d[1], d[2], false};
  if (d.size() == 2 && d[0] > 1 && d[1] > 1) return PictureLayout{d[0], d[1], 1, false};
  return fail(ErrorCode::kBadData, "A picture does not fit the tensor \"{}\" of shape {}.",
              tensor.name, shapeText(tensor));
}

Result<Array> pictureToTensor(const Picture& picture, const TensorInfo& tensor,
                              const std::optional<Normalization>& normalization) {
  HEARTH_ASSIGN(const PictureLayout layout, pictureLayout(tensor));
  const uint32_t width = layout.width != 0 ? layout.width : picture.width;
  const uint32_t height = layout.height != 0 ? layout.height : picture.height;
  const unsigned channels = layout.channels;
  HEARTH_ASSIGN(const Picture resized,
                resizeBilinear(channels == 1 ? toGrey(picture) : picture, width, height));

  std::vector<Stored> table(256 * channels);
  for (unsigned channel = 0; channel < channels; ++channel)
    for (unsigned sample = 0; sample < 256; ++sample) {
      HEARTH_ASSIGN(table[channel * 256 + sample], convert(sample, channel, tensor, normalization));
    }

  Array array;
  array.type = tensor.type;
  if (layout.isPlanar)
    array.shape = {1, channels, height, width};
  else if (tensor.dimensions.size() == 4)
    array.shape = {1, height, width, channels};
  else if (tensor.dimensions.size() == 3 && tensor.dimensions[0] <= 1)
    array.shape = {1, height, width};
  else if (tensor.dimensions.size() == 3)
    array.shape = {height, width, channels};
  else
    array.shape = {height, width};

  const size_t element = typeSize(tensor.type);
  const size_t pixels = static_cast<size_t>(width) * height;
  array.bytes.resize(pixels * channels * element);
  for (size_t i = 0; i < pixels; ++i)
    for (unsigned channel = 0; channel < channels; ++channel) {
      const Stored& stored = table[channel * 256 + resized.samples[i * channels + channel]];
      const size_t at = layout.isPlanar ? channel * pixels + i : i * channels + channel;
      std::memcpy(array.bytes.data() + at * element, stored.data(), element);
    }
  return array;
}

}  // namespace hearth::tools
