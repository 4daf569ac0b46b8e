// SPDX-License-Identifier: Apache-2.0
#include "tflite_abi/tensor_memory.h"

#include <algorithm>
#include <cstring>
#include <limits>

namespace hearth::tflite_abi {
namespace {

constexpr uint8_t kMark = 0xa5;
constexpr uint64_t kMarksBefore = TensorMemory::kAlignment;

}  // namespace

Result<TensorMemory> TensorMemory::allocate(uint64_t size) {
  constexpr uint64_t kPage = 4096;  // all larger pages consist of these
  // Room for marks before the tensor, to align it, to move it once more, and for the padding.
  constexpr uint64_t kExtra = 3 * kAlignment + kPadding;
  TensorMemory memory;
  if (size <= std::numeric_limits<size_t>::max() - kExtra)
    memory.block_.reset(std::calloc(size + kExtra, 1));
  if (memory.block_ == nullptr)
    return fail(ErrorCode::kOutOfMemory, "There is no memory for a tensor of {} bytes.", size);
  auto* const block = static_cast<uint8_t*>(memory.block_.get());
  memory.data_ =
      block + kMarksBefore + (kAlignment - reinterpret_cast<uintptr_t>(block) % kAlignment);
  memory.size_ = size;
  // The padding must lie in the page of the last byte.
  if ((reinterpret_cast<uintptr_t>(memory.data_) + size - 1) % kPage + kPadding >= kPage)
    memory.data_ += kPadding;
  return memory;
}

void TensorMemory::guard() {
  std::memset(data_ - kMarksBefore, kMark, kMarksBefore);
  std::memset(data_ + size_, kMark, kPadding);
}

bool TensorMemory::isWithin() const {
  const auto isMark = [](uint8_t byte) {
    return byte == kMark;
  };
  return std::all_of(data_ - kMarksBefore, data_, isMark) &&
         std::all_of(data_ + size_, data_ + size_ + kPadding, isMark);
}

}  // namespace hearth::tflite_abi
