// SPDX-License-Identifier: Apache-2.0
#include "tools/media/input_file.h"

#include <algorithm>
#include <cstring>
#include <span>

#include "base/format.h"
#include "tools/media/file.h"
#include "tools/media/npy.h"

namespace hearth::tools {
namespace {

Result<Array> npyInput(std::span<const uint8_t> bytes, const TensorInfo& tensor) {
  HEARTH_ASSIGN(Array array, parseNpy(bytes));
  if (array.type != tensor.type)
    return fail(ErrorCode::kBadData, "The array has type {}; the input \"{}\" takes {}.",
                typeName(array.type), tensor.name, typeName(tensor.type));
  bool isEqual = array.shape.size() == tensor.dimensions.size();
  for (size_t i = 0; isEqual && i < array.shape.size(); ++i)
    isEqual = tensor.dimensions[i] == array.shape[i] ||
              (tensor.dimensions[i] == 0 && array.shape[i] <= UINT32_MAX);
  // A tensor without dimensions and size has unknown rank and takes anything.
  const bool hasUnknownRank = tensor.dimensions.empty() && tensor.byteSize == 0;
  if (!isEqual && !hasUnknownRank)
    return fail(ErrorCode::kBadData, "The array has shape {}; the input \"{}\" takes {}.",
                shapeText(array.shape), tensor.name, shapeText(tensor));
  return array;
}

Result<Array> wavInput(std::span<const uint8_t> bytes, const TensorInfo& tensor,
                       uint32_t sampleRate) {
  HEARTH_ASSIGN(std::vector<int16_t> samples, parseWav(bytes, sampleRate));
  const std::vector<uint32_t>& d = tensor.dimensions;
  if (d.empty() || d.size() > 2 || (d.size() == 2 && d[0] > 1))
    return fail(ErrorCode::kBadData, "Sound does not fit the tensor \"{}\" of shape {}.",
                tensor.name, shapeText(tensor));
  if (d.back() != 0) samples.resize(d.back());
  Array array;
  array.type = tensor.type;
  array.shape.assign(d.size(), 1);
  array.shape.back() = samples.size();
  if (tensor.type == HEARTH_TYPE_INT16) {
    array.bytes.resize(samples.size() * sizeof(int16_t));
    std::memcpy(array.bytes.data(), samples.data(), array.bytes.size());
  } else if (tensor.type == HEARTH_TYPE_FLOAT32) {
    std::vector<float> values(samples.size());
    std::transform(samples.begin(), samples.end(), values.begin(),
                   [](int16_t sample) { return static_cast<float>(sample) / 32768.0f; });
    array.bytes.resize(values.size() * sizeof(float));
    std::memcpy(array.bytes.data(), values.data(), array.bytes.size());
  } else {
    return fail(ErrorCode::kUnsupported,
                "Sound does not go into the {} tensor \"{}\"; float32 and int16 take it.",
                typeName(tensor.type), tensor.name);
  }
  return array;
}

Result<Array> rawInput(std::span<const uint8_t> bytes, const TensorInfo& tensor) {
  if (tensor.byteSize == 0 || bytes.size() != tensor.byteSize)
    return fail(ErrorCode::kBadData,
                "The raw file has {} bytes; the input \"{}\" of {} {} takes exactly {}.",
                bytes.size(), tensor.name, typeName(tensor.type), shapeText(tensor),
                tensor.byteSize);
  Array array;
  array.type = tensor.type;
  array.shape.assign(tensor.dimensions.begin(), tensor.dimensions.end());
  array.bytes.assign(bytes.begin(), bytes.end());
  return array;
}

Result<InputValue> readInput(const std::string& path, const TensorInfo& tensor,
                             const std::optional<Normalization>& normalization,
                             uint32_t sampleRate) {
  HEARTH_ASSIGN(std::vector<uint8_t> bytes, readFile(path));
  const std::string extension = extensionOf(path);
  InputValue value;
  if (extension == "npy") {
    HEARTH_ASSIGN(value.array, npyInput(bytes, tensor));
  } else if (extension == "png" || extension == "jpg" || extension == "jpeg" ||
             extension == "bmp") {
    HEARTH_TRY(pictureLayout(tensor));
    HEARTH_ASSIGN(value.picture, decodePicture(bytes));
    HEARTH_ASSIGN(value.array, pictureToTensor(*value.picture, tensor, normalization));
  } else if (extension == "wav") {
    HEARTH_ASSIGN(value.array, wavInput(bytes, tensor, sampleRate));
  } else {
    HEARTH_ASSIGN(value.array, rawInput(bytes, tensor));
  }
  return value;
}

class SplitMix64 {
 public:
  explicit SplitMix64(uint64_t seed) : state_(seed) {}
  uint64_t next() {
    uint64_t z = state_ += 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
  }

 private:
  uint64_t state_;
};

template <typename T, typename Draw>
void fill(TensorBytes& bytes, Draw draw) {
  for (size_t at = 0; at < bytes.size(); at += sizeof(T)) {
    const T value = static_cast<T>(draw());
    std::memcpy(bytes.data() + at, &value, sizeof(T));
  }
}

}  // namespace

Result<InputValue> readInputFile(const std::string& path, const TensorInfo& tensor,
                                 const std::optional<Normalization>& normalization,
                                 uint32_t sampleRate) {
  auto value = readInput(path, tensor, normalization, sampleRate);
  if (!value)
    return std::unexpected(
        std::move(value.error()).addContext(base::formatText("while reading the input {}", path)));
  return value;
}

Result<Array> randomInput(const TensorInfo& tensor, uint64_t seed, size_t index) {
  if (tensor.byteSize == 0)
    return fail(ErrorCode::kBadData,
                "The input \"{}\" of shape {} has unknown dimensions and takes no random values.",
                tensor.name, shapeText(tensor));
  Array array;
  array.type = tensor.type;
  array.shape.assign(tensor.dimensions.begin(), tensor.dimensions.end());
  array.bytes.resize(tensor.byteSize);
  SplitMix64 random(seed + (static_cast<uint64_t>(index) << 32));
  // 24 bits make every value of a float exact: k / 2^23 - 1.
  const auto real = [&random] {
    return static_cast<float>(random.next() >> 40) / 8388608.0f - 1.0f;
  };
  const bool isQuantized = tensor.scale != 0.0f;
  const auto integer = [&random, isQuantized] {
    return isQuantized ? random.next() >> 32 : random.next() >> 63;
  };
  switch (tensor.type) {
    case HEARTH_TYPE_FLOAT32:
    case HEARTH_TYPE_COMPLEX64:
      fill<float>(array.bytes, real);
      break;
    case HEARTH_TYPE_FLOAT16:
      fill<_Float16>(array.bytes, real);
      break;
    case HEARTH_TYPE_FLOAT64:
      fill<double>(array.bytes, real);
      break;
    case HEARTH_TYPE_INT8:
    case HEARTH_TYPE_UINT8:
      fill<uint8_t>(array.bytes, integer);
      break;
    case HEARTH_TYPE_INT16:
    case HEARTH_TYPE_UINT16:
      fill<uint16_t>(array.bytes, integer);
      break;
    case HEARTH_TYPE_INT32:
    case HEARTH_TYPE_UINT32:
      fill<uint32_t>(array.bytes, integer);
      break;
    case HEARTH_TYPE_INT64:
    case HEARTH_TYPE_UINT64:
      fill<uint64_t>(array.bytes, [&random] { return random.next() >> 63; });
      break;
    case HEARTH_TYPE_BOOL:
      fill<uint8_t>(array.bytes, [&random] { return random.next() >> 63; });
      break;
    case HEARTH_TYPE_INT4:
    case HEARTH_TYPE_STRING:
      return fail(ErrorCode::kUnsupported, "The {} input \"{}\" takes no random values.",
                  typeName(tensor.type), tensor.name);
  }
  return array;
}

}  // namespace hearth::tools
