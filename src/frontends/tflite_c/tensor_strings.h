// SPDX-License-Identifier: Apache-2.0
// Tensors of strings: programs, their operators and delegates see TFLite's format
// (memory/packed_strings.h) in memory of malloc(); a run takes and gives elements of the heap of
// strings.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "frontends/tflite_c/declarations.h"
#include "memory/string_heap.h"
#include "runtime/execution.h"

namespace hearth::tflite_c {

// What a run gets for an input of strings.
struct HeldStrings {
  memory::StringScope scope;
  std::vector<memory::StringHandle> elements;
};

// Reads the strings of an input, whose bytes the program may have written. kBadData for bytes that
// are no strings, or not as many as the tensor has elements.
Status readStrings(const TfLiteTensor& tensor, HeldStrings* held);

// Gives an output the strings of a run that succeeded; the elements are as many as the tensor has.
Status storeStrings(const runtime::Execution& execution, const void* elements,
                    TfLiteTensor* tensor);

// Gives a kernel of the program the strings of an input. Errors: those of memory::readString().
Status showStrings(std::span<const memory::StringHandle> elements, TfLiteTensor* tensor);

// Puts the strings that a kernel has written into the scope of the calling thread. Errors: those of
// readStrings() and memory::putString().
Status putStrings(const TfLiteTensor& tensor, std::span<memory::StringHandle> elements);

}  // namespace hearth::tflite_c
