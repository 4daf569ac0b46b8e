// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/microkernels/portable/im2col.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "ops/strided_copy.h"

namespace hearth::cpu {

// Rows of at most this many bytes are copied as this many bytes, or half of them, in one or two
// moves.
static constexpr size_t kWide = 32;

Im2col::Im2col(const Convolution& g, size_t elementBytes, uint8_t fill, int64_t top, int64_t left)
    : batch_(g.batch),
      outputHeight_(g.outputHeight),
      outputWidth_(g.outputWidth),
      inputHeight_(g.inputHeight),
      inputWidth_(g.inputWidth),
      rows_(g.kernelHeight),
      columns_(g.kernelWidth),
      channels_(g.groupInputChannels * elementBytes),
      pixel_(g.groups * channels_),
      rowBytes_(g.kernelWidth * g.groupInputChannels * elementBytes),
      strideHeight_(g.strideHeight),
      strideWidth_(g.strideWidth),
      dilationHeight_(g.dilationHeight),
      dilationWidth_(g.dilationWidth),
      top_(top),
      left_(left),
      fill_(fill) {}

void Im2col::gather(const uint8_t* source, size_t first, size_t last, uint8_t* target,
                    size_t stride) const {
  if (first >= last) return;
  const uint8_t* end = target + (last - first - 1) * stride + windowBytes();
  while (first < last) {
    const size_t x = first % outputWidth_;
    const size_t count = std::min(outputWidth_ - x, last - first);
    const size_t line = first / outputWidth_;
    if (rowBytes_ <= kWide / 2)
      gatherLine<kWide / 2>(source, line, x, count, target, stride, end);
    else if (rowBytes_ <= kWide)
      gatherLine<kWide>(source, line, x, count, target, stride, end);
    else
      gatherLine<0>(source, line, x, count, target, stride, end);
    first += count;
    target += count * stride;
  }
}

template <size_t kBytes>
void Im2col::gatherLine(const uint8_t* source, size_t line, size_t first, size_t count,
                        uint8_t* target, size_t stride, const uint8_t* end) const {
  const auto width = static_cast<int64_t>(inputWidth_);
  const auto channels = static_cast<int64_t>(channels_);
  const auto y = static_cast<int64_t>(line % outputHeight_) * strideHeight_ - top_;
  const uint8_t* image = source + line / outputHeight_ * inputHeight_ * inputWidth_ * channels_;
  const uint8_t* sourceEnd = source + batch_ * inputHeight_ * inputWidth_ * channels_;
  // The input rows under the windows, at x = 0; null in the padding.
  std::vector<const uint8_t*> rows(rows_, nullptr);
  for (size_t r = 0; r < rows_; ++r) {
    const int64_t inputY = y + static_cast<int64_t>(r) * dilationHeight_;
    if (inputY >= 0 && inputY < static_cast<int64_t>(inputHeight_))
      rows[r] = image + inputY * width * channels;
  }
  const int64_t rowStep = dilationHeight_ * width * channels;
  // Windows before this one that begin in the image lie in it as a whole, and have room for surplus
  // bytes at both ends. Most do, so the others are told apart only once.
  size_t lastSimple = 0;
  if (kBytes != 0 && dilationWidth_ == 1 && rows_ > 0 && rows.front() != nullptr &&
      rows.back() != nullptr) {
    const auto hasRoom = [&](size_t i) {
      const auto x = static_cast<int64_t>(first + i) * strideWidth_ - left_;
      return x >= 0 && x + static_cast<int64_t>(columns_) <= width &&
             rows.back() + x * channels + kBytes <= sourceEnd &&
             target + i * stride + (rows_ - 1) * rowBytes_ + kBytes <= end;
    };
    lastSimple = count;
    while (lastSimple > 0 && !hasRoom(lastSimple - 1)) --lastSimple;
  }
  for (size_t i = 0; i < count; ++i, target += stride - windowBytes()) {
    const auto x = static_cast<int64_t>(first + i) * strideWidth_ - left_;
    if (x >= 0 && i < lastSimple) {
      const uint8_t* row = rows.front() + x * channels;
      for (size_t r = 0; r < rows_; ++r, target += rowBytes_, row += rowStep)
        std::memcpy(target, row, kBytes);
      continue;
    }
    const bool isInside =
        dilationWidth_ == 1 && x >= 0 && x + static_cast<int64_t>(columns_) <= width;
    // The next row overwrites surplus bytes; behind the last window there is no room for them.
    const bool hasRoom = target + (rows_ - 1) * rowBytes_ + kBytes <= end;
    for (size_t r = 0; r < rows_; ++r, target += rowBytes_) {
      if (rows[r] == nullptr)
        std::memset(target, fill_, rowBytes_);
      else if (!isInside)
        gatherRow(rows[r], x, target);
      else if (kBytes != 0 && hasRoom && rows[r] + x * channels + kBytes <= sourceEnd)
        std::memcpy(target, rows[r] + x * channels, kBytes);
      else
        std::memcpy(target, rows[r] + x * channels, rowBytes_);
    }
  }
}

void Im2col::gatherRow(const uint8_t* row, int64_t x, uint8_t* target) const {
  for (size_t c = 0; c < columns_; ++c, target += channels_) {
    const int64_t inputX = x + static_cast<int64_t>(c) * dilationWidth_;
    if (inputX < 0 || inputX >= static_cast<int64_t>(inputWidth_))
      std::memset(target, fill_, channels_);
    else
      std::memcpy(target, row + inputX * static_cast<int64_t>(channels_), channels_);
  }
}

// Place by place, since the places of a window do not lie together.
void Im2col::gatherGroup(size_t group, const uint8_t* source, size_t first, size_t last,
                         uint8_t* target) const {
  while (first < last) {
    const size_t x = first % outputWidth_;
    const size_t count = std::min(outputWidth_ - x, last - first);
    for (size_t row = 0; row < rows_; ++row)
      for (size_t column = 0; column < columns_; ++column)
        gatherPlace(source + group * channels_, first / outputWidth_, x, count, row, column,
                    target + row * rowBytes_ + column * channels_);
    first += count;
    target += count * windowBytes();
  }
}

void Im2col::gatherPlace(const uint8_t* source, size_t line, size_t first, size_t count, size_t row,
                         size_t column, uint8_t* target) const {
  const auto fill = [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) std::memset(target + i * windowBytes(), fill_, channels_);
  };
  const int64_t y = static_cast<int64_t>(line % outputHeight_) * strideHeight_ - top_ +
                    static_cast<int64_t>(row) * dilationHeight_;
  if (y < 0 || y >= static_cast<int64_t>(inputHeight_)) return fill(0, count);
  // The place of the first window, and which windows have theirs inside the image.
  const int64_t x = static_cast<int64_t>(first) * strideWidth_ - left_ +
                    static_cast<int64_t>(column) * dilationWidth_;
  const auto firstAt = [&](int64_t least) {
    const int64_t steps = (least - x + strideWidth_ - 1) / strideWidth_;
    return least <= x ? size_t{0} : std::min(count, static_cast<size_t>(steps));
  };
  const size_t begin = firstAt(0);
  const size_t end = firstAt(static_cast<int64_t>(inputWidth_));
  fill(0, begin);
  fill(end, count);
  if (begin == end) return;
  const size_t image = line / outputHeight_;
  const size_t pixel = (image * inputHeight_ + static_cast<size_t>(y)) * inputWidth_ +
                       static_cast<size_t>(x + static_cast<int64_t>(begin) * strideWidth_);
  ops::copyPieces(channels_, end - begin, source + pixel * pixel_,
                  static_cast<uint64_t>(strideWidth_) * pixel_, target + begin * windowBytes(),
                  windowBytes());
}

}  // namespace hearth::cpu
