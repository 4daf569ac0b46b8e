// SPDX-License-Identifier: Apache-2.0
#include "python/strings.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstring>
#include <new>

#include "python/array.h"

namespace hearth::python {

namespace nb = nanobind;

namespace {

// A list as an array of objects of this shape.
template <typename Size>
nb::object arrayOf(const nb::list& elements, const std::vector<Size>& shape) {
  nb::list sizes;
  for (const Size size : shape) sizes.append(nb::int_(size));
  const nb::object array =
      nb::module_::import_("numpy").attr("empty")(nb::len(elements), nb::str("object"));
  array[nb::slice(nb::none(), nb::none(), nb::none())] = elements;
  return array.attr("reshape")(nb::tuple(sizes));
}

std::string textOf(nb::handle element, const TensorInfo& tensor) {
  char* bytes = nullptr;
  Py_ssize_t size = 0;
  if (PyBytes_Check(element.ptr()) && PyBytes_AsStringAndSize(element.ptr(), &bytes, &size) == 0)
    return std::string(bytes, static_cast<size_t>(size));
  if (!PyUnicode_Check(element.ptr()))
    refuse("An element for '" + tensor.name + "' is neither str nor bytes but " +
           nb::cast<std::string>(nb::str(element.type().attr("__name__"))) + ".");
  const nb::object encoded = nb::steal(PyUnicode_AsUTF8String(element.ptr()));
  if (!encoded.is_valid()) throw nb::python_error();
  if (PyBytes_AsStringAndSize(encoded.ptr(), &bytes, &size) != 0) throw nb::python_error();
  return std::string(bytes, static_cast<size_t>(size));
}

}  // namespace

StringInput StringInput::of(nb::handle object, const TensorInfo& tensor) {
  nb::object array;
  std::vector<uint64_t> shape;
  try {
    // As NumPy's own strings those of a list would lose the zeros at their end.
    const nb::object type =
        nb::hasattr(object, "dtype") ? nb::object(object.attr("dtype")) : nb::str("object");
    array = nb::module_::import_("numpy").attr("asarray")(object, type);
    shape = nb::cast<std::vector<uint64_t>>(array.attr("shape"));
  } catch (const nb::python_error& error) {
    refuse("What is given for '" + tensor.name + "' is no array of strings. " + error.what());
  }
  bool fits = shape.size() == tensor.dimensions.size();
  for (size_t i = 0; fits && i < shape.size(); ++i)
    fits = tensor.dimensions[i] == 0 || shape[i] == tensor.dimensions[i];
  if (!fits)
    refuse("The array for '" + tensor.name + "' has the shape " + arrayShapeText(shape) +
           ", the tensor " + shapeText(tensor) + ".");
  StringInput input;
  const nb::list elements = nb::cast<nb::list>(array.attr("ravel")().attr("tolist")());
  for (const nb::handle element : elements) input.texts.push_back(textOf(element, tensor));
  if (tensor.byteSize == 0) input.dimensions.assign(shape.begin(), shape.end());
  return input;
}

nb::object arrayOfStrings(const Execution& execution, const void* elements,
                          const std::vector<uint32_t>& dimensions) {
  uint64_t count = 1;
  for (const uint32_t dimension : dimensions) count *= dimension;
  nb::list texts;
  for (uint64_t i = 0; i < count; ++i) {
    uint64_t element = 0;
    std::memcpy(&element, static_cast<const uint8_t*>(elements) + i * sizeof element,
                sizeof element);
    const std::string text = execution.string(element);
    texts.append(nb::bytes(text.data(), text.size()));
  }
  return arrayOf(texts, dimensions);
}

nb::object emptyStrings(const std::vector<uint64_t>& shape) {
  uint64_t count = 1;
  for (const uint64_t size : shape)
    if (__builtin_mul_overflow(count, size, &count)) throw std::bad_alloc();
  nb::list texts;
  for (uint64_t i = 0; i < count; ++i) texts.append(nb::bytes("", 0));
  return arrayOf(texts, shape);
}

}  // namespace hearth::python
