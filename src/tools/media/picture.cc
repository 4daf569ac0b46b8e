// SPDX-License-Identifier: Apache-2.0
#include "tools/media/picture.h"

#include <climits>
#include <cstdlib>
#include <memory>

namespace {

// The largest allocation of the decoder, in bytes, set from the picture's own dimensions: a few
// compressed bytes can ask for gigabytes.
thread_local size_t stbAllocationLimit = 0;

void* stbAllocate(size_t size) {
  return size <= stbAllocationLimit ? std::malloc(size) : nullptr;
}
void* stbReallocate(void* old, size_t size) {
  return size <= stbAllocationLimit ? std::realloc(old, size) : nullptr;
}

}  // namespace

#define STBI_MALLOC(size) stbAllocate(size)
#define STBI_REALLOC(old, size) stbReallocate(old, size)
#define STBI_FREE(pointer) std::free(pointer)
#define STB_IMAGE_STATIC
#define STB_IMAGE_IMPLEMENTATION
#define STBI_NO_STDIO
#define STBI_NO_HDR
#define STBI_NO_LINEAR
#define STBI_ONLY_PNG
#define STBI_ONLY_JPEG
#define STBI_ONLY_BMP
#define STB_IMAGE_WRITE_STATIC
#define STB_IMAGE_WRITE_IMPLEMENTATION
#define STBI_WRITE_NO_STDIO
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-function"
#pragma GCC diagnostic ignored "-Wsign-compare"
#include <stb/stb_image.h>
#include <stb/stb_image_write.h>
#pragma GCC diagnostic pop

namespace hearth::tools {
namespace {

constexpr size_t kHeaderAllocation = size_t{1} << 20;

}  // namespace

Result<Picture> decodePicture(std::span<const uint8_t> bytes, uint64_t maxPixels) {
  if (bytes.size() > INT_MAX)
    return fail(ErrorCode::kBadData, "The picture file has {} bytes; at most {} are read.",
                bytes.size(), INT_MAX);
  const int length = static_cast<int>(bytes.size());
  int width = 0;
  int height = 0;
  int channels = 0;
  stbAllocationLimit = kHeaderAllocation;
  if (!stbi_info_from_memory(bytes.data(), length, &width, &height, &channels) || width <= 0 ||
      height <= 0)
    return fail(ErrorCode::kBadData,
                "The file is no PNG, JPEG or BMP picture that can be read ({}).",
                stbi_failure_reason() != nullptr ? stbi_failure_reason() : "no known header");
  const uint64_t pixels = static_cast<uint64_t>(width) * static_cast<uint64_t>(height);
  if (pixels > maxPixels)
    return fail(ErrorCode::kBadData, "The picture has {} x {} pixels; at most {} are decoded.",
                width, height, maxPixels);
  // Inflated PNG rows: 4 channels of 16 bits and a filter byte; the buffer grows by doubling.
  stbAllocationLimit = 2 * (pixels * 8 + static_cast<uint64_t>(height)) + kHeaderAllocation;
  const std::unique_ptr<stbi_uc, void (*)(void*)> samples(
      stbi_load_from_memory(bytes.data(), length, &width, &height, &channels, 3), stbi_image_free);
  if (samples == nullptr)
    return fail(ErrorCode::kBadData, "The picture cannot be decoded ({}).", stbi_failure_reason());
  Picture picture{static_cast<uint32_t>(width), static_cast<uint32_t>(height), 3, {}};
  picture.samples.assign(samples.get(), samples.get() + static_cast<size_t>(width) * height * 3);
  return picture;
}

Picture toGrey(const Picture& picture) {
  if (picture.channels == 1) return picture;
  Picture grey{picture.width, picture.height, 1, {}};
  grey.samples.resize(static_cast<size_t>(picture.width) * picture.height);
  for (size_t i = 0; i < grey.samples.size(); ++i) {
    const uint8_t* rgb = picture.samples.data() + i * 3;
    // 0.299, 0.587 and 0.114 in 1/65536, which sum to exactly 1.
    grey.samples[i] =
        static_cast<uint8_t>((rgb[0] * 19595u + rgb[1] * 38470u + rgb[2] * 7471u + 32768u) >> 16);
  }
  return grey;
}

Result<std::vector<uint8_t>> encodePng(const Picture& picture) {
  std::vector<uint8_t> file;
  const auto append = [](void* context, void* data, int size) {
    auto* out = static_cast<std::vector<uint8_t>*>(context);
    const auto* first = static_cast<const uint8_t*>(data);
    out->insert(out->end(), first, first + size);
  };
  const auto channels = static_cast<int>(picture.channels);
  if (!stbi_write_png_to_func(append, &file, static_cast<int>(picture.width),
                              static_cast<int>(picture.height), channels, picture.samples.data(),
                              static_cast<int>(picture.width) * channels))
    return fail(ErrorCode::kOutOfMemory, "There is no memory to write a PNG of {} x {} pixels.",
                picture.width, picture.height);
  return file;
}

}  // namespace hearth::tools
