// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>

#include "base/result.h"

namespace hearth::tflite_abi {

// Zeroed memory of a tensor, which devices can use in place. Move-only.
class TensorMemory {
 public:
  // Where devices of Hearth use memory in place: at multiples of the alignment, with so many bytes
  // behind the last one in its page.
  static constexpr uint64_t kAlignment = 64;
  static constexpr uint64_t kPadding = 64;

  TensorMemory() = default;
  static Result<TensorMemory> allocate(uint64_t size);

  // Not null, even without bytes, once allocated.
  uint8_t* data() const { return data_; }
  uint64_t size() const { return size_; }

  // Marks bytes before allocated memory and the padding behind it; isWithin() then tells whether
  // nobody has written there.
  void guard();
  bool isWithin() const;

 private:
  struct Free {
    void operator()(void* memory) const { std::free(memory); }
  };
  std::unique_ptr<void, Free> block_;
  uint8_t* data_ = nullptr;
  uint64_t size_ = 0;
};

}  // namespace hearth::tflite_abi
