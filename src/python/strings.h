// SPDX-License-Identifier: Apache-2.0
// Tensors of strings as Python has them. All functions need the GIL.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <string>
#include <vector>

#include "hearth/hearth.hpp"

namespace hearth::python {

// The value of an input of strings.
struct StringInput {
  // From an array or nested lists of str, which become UTF-8, and bytes. Refuses all else with a
  // sentence that names the tensor.
  static StringInput of(nanobind::handle object, const TensorInfo& tensor);

  std::vector<std::string> texts;    // in row-major order
  std::vector<uint32_t> dimensions;  // empty for a tensor whose dimensions are all known
};

// An array of bytes objects for the elements that a run has written to an output.
nanobind::object arrayOfStrings(const Execution& execution, const void* elements,
                                const std::vector<uint32_t>& dimensions);
// An array of empty bytes objects.
nanobind::object emptyStrings(const std::vector<uint64_t>& shape);

}  // namespace hearth::python
