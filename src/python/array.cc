// SPDX-License-Identifier: Apache-2.0
#include "python/array.h"

#include <nanobind/stl/string.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <new>
#include <numeric>
#include <span>
#include <utility>

#include "python/interpreter_lock.h"

namespace hearth::python {

namespace nb = nanobind;

namespace {

constexpr size_t kAlignment = 64;
constexpr size_t kPage = 4096;  // all larger pages consist of these

uint64_t roundedUp(uint64_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

template <typename Size>
std::string tupleText(const std::vector<Size>& sizes) {
  std::string text = "(";
  for (size_t i = 0; i < sizes.size(); ++i) text += (i == 0 ? "" : ", ") + std::to_string(sizes[i]);
  return text + (sizes.size() == 1 ? ",)" : ")");
}

std::string quoted(const TensorInfo& tensor) {
  return "'" + tensor.name + "'";
}

// What a call of Python code returns, as a new reference; throws its exception.
template <typename Function>
nb::object result(Function function) {
  PyObject* const object = callWithLock(function);
  if (object == nullptr) throw nb::python_error();
  return nb::steal(object);
}

// The type of an array's elements as NumPy writes it.
std::string dtypeText(nb::handle array) {
  const nb::object type = array.attr("dtype");
  return nb::cast<std::string>(result([&] { return PyObject_Str(type.ptr()); }));
}

// " (object)"; empty for what has no type.
std::string typeText(nb::handle object) {
  return nb::hasattr(object, "dtype") ? " (" + dtypeText(object) + ")" : "";
}

// The type of NumPy's array with the other byte order changed into this machine's; else None.
nb::object nativeType(nb::handle array) {
  if (!nb::hasattr(array, "dtype")) return nb::none();
  const nb::object type = array.attr("dtype");
  if (!nb::hasattr(type, "isnative") || nb::cast<bool>(type.attr("isnative"))) return nb::none();
  return type.attr("newbyteorder")("=");
}

// Whether an array of this shape, whose dimensions are taken in this order, is what a tensor takes.
bool fitsIn(const std::vector<uint64_t>& shape, const std::vector<size_t>& order,
            std::span<const uint32_t> wanted) {
  if (shape.size() != wanted.size() || order.size() != wanted.size()) return false;
  for (size_t i = 0; i < wanted.size(); ++i)
    if (wanted[i] != 0 && shape[order[i]] != wanted[i]) return false;
  return true;
}

// What makes an array of a wrong shape right, in a sentence with a space before it; else empty.
std::string hintFor(const std::vector<uint64_t>& shape, const TensorInfo& tensor) {
  const std::vector<uint32_t>& wanted = tensor.dimensions;
  if (wanted.empty()) return "";
  const std::span<const uint32_t> sample = std::span(wanted).subspan(1);
  const bool takesOne = wanted[0] <= 1;
  if (takesOne && shape.size() == 3 && wanted.size() == 4) {
    if (fitsIn(shape, {0, 1, 2}, sample))
      return " It lacks the batch: array[numpy.newaxis] adds it.";
    if (fitsIn(shape, {1, 2, 0}, sample))
      return " It lacks the batch, and its channels come first: "
             "array.transpose(1, 2, 0)[numpy.newaxis].";
    if (fitsIn(shape, {2, 0, 1}, sample))
      return " It lacks the batch, and its channels come last: "
             "array.transpose(2, 0, 1)[numpy.newaxis].";
  }
  if (takesOne && shape.size() == 2 && wanted.size() == 4 && wanted[3] == 1 &&
      fitsIn(shape, {0, 1}, std::span(wanted).subspan(1, 2)))
    return " It lacks the batch and the channel: array[numpy.newaxis, :, :, numpy.newaxis] adds "
           "them.";
  if (takesOne && shape.size() + 1 == wanted.size()) {
    std::vector<size_t> order(shape.size());
    std::iota(order.begin(), order.end(), size_t{0});
    if (fitsIn(shape, order, sample)) return " It lacks the batch: array[numpy.newaxis] adds it.";
  }
  if (fitsIn(shape, {0, 2, 3, 1}, wanted))
    return " Its channels come first, the tensor's last: array.transpose(0, 2, 3, 1).";
  if (fitsIn(shape, {0, 3, 1, 2}, wanted))
    return " Its channels come last, the tensor's first: array.transpose(0, 3, 1, 2).";
  const bool isSized = std::ranges::all_of(shape, [](uint64_t size) { return size != 0; });
  if (shape.size() == wanted.size() && isSized)
    return " compile(shapes={" + quoted(tensor) + ": " + tupleText(shape) +
           "}) makes the model ready for this shape.";
  return "";
}

template <typename Array>
void check(const Array& array, nb::handle object, const TensorInfo& tensor) {
  if (array.dtype() != elementType(tensor.type)) {
    const std::string given =
        nb::hasattr(object, "dtype") ? dtypeText(object) : std::string("another type");
    refuse("The array for " + quoted(tensor) + " has " + given + ", the tensor " +
           elementTypeName(tensor.type) + "." +
           (given.starts_with("float") && tensor.type == HEARTH_TYPE_FLOAT32
                ? " array.astype(numpy.float32) converts it."
                : ""));
  }
  if (tensor.type == HEARTH_TYPE_INT4) return;  // the library checks the number of bytes
  bool fits = array.ndim() == tensor.dimensions.size();
  for (size_t i = 0; fits && i < array.ndim(); ++i)
    fits = tensor.dimensions[i] == 0 || array.shape(i) == tensor.dimensions[i];
  if (fits) return;
  std::vector<uint64_t> shape;
  for (size_t i = 0; i < array.ndim(); ++i) shape.push_back(array.shape(i));
  refuse("The array for " + quoted(tensor) + " has the shape " + arrayShapeText(shape) +
         ", the tensor " + shapeText(tensor) + "." + hintFor(shape, tensor));
}

// The capsule of an array with DLPack; None if it gives none.
nb::object dlpackOf(nb::handle object) {
  PyObject* const capsule =
      callWithLock([&] { return PyObject_CallMethod(object.ptr(), "__dlpack__", nullptr); });
  if (capsule != nullptr) return nb::steal(capsule);
  PyErr_Clear();
  return nb::none();
}

// The letters with which the buffer protocol names this type in its native form; null for types
// that it cannot name in one letter.
const char* bufferFormats(hearth_type type) {
  switch (type) {
    case HEARTH_TYPE_FLOAT16:
      return "e";
    case HEARTH_TYPE_FLOAT32:
      return "f";
    case HEARTH_TYPE_FLOAT64:
      return "d";
    case HEARTH_TYPE_INT8:
      return "b";
    case HEARTH_TYPE_UINT8:
      return "B";
    case HEARTH_TYPE_INT16:
      return "h";
    case HEARTH_TYPE_UINT16:
      return "H";
    case HEARTH_TYPE_INT32:
      return "il";
    case HEARTH_TYPE_UINT32:
      return "IL";
    case HEARTH_TYPE_INT64:
      return "lq";
    case HEARTH_TYPE_UINT64:
      return "LQ";
    case HEARTH_TYPE_BOOL:
      return "?";
    case HEARTH_TYPE_INT4:
    case HEARTH_TYPE_COMPLEX64:
    case HEARTH_TYPE_STRING:
      return nullptr;
  }
  return nullptr;
}

}  // namespace

void setError(hearth_status status, const char* message) {
  const nb::object errors = nb::module_::import_("hearth.errors");
  const auto classes = nb::cast<nb::dict>(errors.attr("CLASSES"));
  const nb::int_ number(static_cast<int>(status));
  const nb::object type =
      classes.contains(number) ? nb::object(classes[number]) : nb::object(errors.attr("Error"));
  const nb::object error = type(nb::str(message));
  error.attr("status") = number;
  PyErr_SetObject(type.ptr(), error.ptr());
}

void refuse(const std::string& sentence) {
  setError(HEARTH_BAD_DATA, sentence.c_str());
  throw nb::python_error();
}

nb::dlpack::dtype elementType(hearth_type type) {
  using Code = nb::dlpack::dtype_code;
  const auto make = [](Code code, uint8_t bits) {
    return nb::dlpack::dtype{static_cast<uint8_t>(code), bits, 1};
  };
  const auto bits = static_cast<uint8_t>(8 * typeSize(type));
  switch (type) {
    case HEARTH_TYPE_FLOAT16:
    case HEARTH_TYPE_FLOAT32:
    case HEARTH_TYPE_FLOAT64:
      return make(Code::Float, bits);
    case HEARTH_TYPE_INT8:
    case HEARTH_TYPE_INT16:
    case HEARTH_TYPE_INT32:
    case HEARTH_TYPE_INT64:
      return make(Code::Int, bits);
    case HEARTH_TYPE_UINT8:
    case HEARTH_TYPE_UINT16:
    case HEARTH_TYPE_UINT32:
    case HEARTH_TYPE_UINT64:
    case HEARTH_TYPE_STRING:  // the elements of the library
      return make(Code::UInt, bits);
    case HEARTH_TYPE_BOOL:
      return make(Code::Bool, 8);
    case HEARTH_TYPE_INT4:
      return make(Code::UInt, 8);
    case HEARTH_TYPE_COMPLEX64:
      return make(Code::Complex, bits);
  }
  return make(Code::UInt, 8);
}

const char* elementTypeName(hearth_type type) {
  if (type == HEARTH_TYPE_STRING) return "object";
  return type == HEARTH_TYPE_INT4 ? "uint8" : typeName(type);
}

std::string shapeText(const TensorInfo& tensor) {
  std::string text = "(";
  for (size_t i = 0; i < tensor.dimensions.size(); ++i) {
    text += i == 0 ? "" : ", ";
    if (tensor.dimensions[i] != 0)
      text += std::to_string(tensor.dimensions[i]);
    else if (tensor.defaultDimensions[i] == 0)
      text += "?";
    else
      text += "?=" + std::to_string(tensor.defaultDimensions[i]);
  }
  return text + (tensor.dimensions.size() == 1 ? ",)" : ")");
}

std::string arrayShapeText(const std::vector<uint64_t>& shape) {
  return tupleText(shape);
}

uint64_t bytesOf(hearth_type type, const std::vector<uint32_t>& dimensions) {
  uint64_t count = 1;
  for (const uint32_t dimension : dimensions)
    if (__builtin_mul_overflow(count, dimension, &count)) throw std::bad_alloc();
  if (type == HEARTH_TYPE_INT4) return (count + 1) / 2;
  if (__builtin_mul_overflow(count, typeSize(type), &count)) throw std::bad_alloc();
  return count;
}

ArrayMemory::ArrayMemory(ArrayMemory&& other) noexcept {
  *this = std::move(other);
}

ArrayMemory& ArrayMemory::operator=(ArrayMemory&& other) noexcept {
  if (this == &other) return *this;
  release();
  buffer_ = std::exchange(other.buffer_, {});
  array_ = std::move(other.array_);
  writable_ = std::move(other.writable_);
  data_ = std::exchange(other.data_, nullptr);
  bytes_ = std::exchange(other.bytes_, 0);
  dimensions_ = std::move(other.dimensions_);
  return *this;
}

void ArrayMemory::release() {
  if (buffer_.obj != nullptr) callWithLock([this] { PyBuffer_Release(&buffer_); });
}

// Takes the memory of an object with the buffer protocol that needs no conversion. Much faster than
// nanobind's way, which knows DLPack and all types. False for all else.
bool ArrayMemory::takeBuffer(nb::handle object, const TensorInfo& tensor, bool isWritable) {
  if (!PyObject_CheckBuffer(object.ptr())) return false;
  const char* const formats = bufferFormats(tensor.type);
  if (formats == nullptr) return false;
  const int flags = PyBUF_ND | PyBUF_FORMAT | (isWritable ? PyBUF_WRITABLE : 0);
  if (callWithLock([&] { return PyObject_GetBuffer(object.ptr(), &buffer_, flags); }) != 0) {
    PyErr_Clear();
    buffer_ = {};
    return false;
  }
  const char* const format = buffer_.format;
  bool fits = format != nullptr && format[0] != 0 && format[1] == 0 &&
              std::strchr(formats, format[0]) != nullptr &&
              static_cast<size_t>(buffer_.itemsize) == typeSize(tensor.type) &&
              static_cast<size_t>(buffer_.ndim) == tensor.dimensions.size();
  for (size_t i = 0; fits && i < tensor.dimensions.size(); ++i)
    fits = static_cast<uint64_t>(buffer_.shape[i]) == tensor.dimensions[i] ||
           (tensor.dimensions[i] == 0 && std::in_range<uint32_t>(buffer_.shape[i]));
  if (!fits) {
    release();
    buffer_ = {};
    return false;
  }
  if (tensor.byteSize == 0) dimensions_.assign(buffer_.shape, buffer_.shape + buffer_.ndim);
  data_ = buffer_.buf;
  bytes_ = static_cast<uint64_t>(buffer_.len);
  return true;
}

ArrayMemory ArrayMemory::ofInput(nb::handle object, const TensorInfo& tensor) {
  ArrayMemory memory;
  if (memory.takeBuffer(object, tensor, false)) return memory;
  Array array;
  const bool hasBuffer = PyObject_CheckBuffer(object.ptr()) != 0;
  const bool isArray = hasBuffer || nb::hasattr(object, "__dlpack__");
  if (!isArray || !nb::try_cast(hasBuffer ? nb::borrow(object) : dlpackOf(object), array, false)) {
    try {
      const nb::object function = nb::module_::import_("numpy").attr("ascontiguousarray");
      const nb::object dtype =
          isArray ? nativeType(object) : nb::object(nb::str(elementTypeName(tensor.type)));
      array = nb::cast<Array>(result([&] {
        return PyObject_CallFunctionObjArgs(function.ptr(), object.ptr(), dtype.ptr(), nullptr);
      }));
    } catch (const nb::python_error& error) {
      refuse("What is given for " + quoted(tensor) + " is no array of numbers. " + error.what());
    } catch (const std::exception&) {
      refuse("The array for " + quoted(tensor) + " has elements of another kind than numbers" +
             typeText(object) + "; the tensor has " + elementTypeName(tensor.type) + ".");
    }
  }
  check(array, object, tensor);
  memory.data_ = const_cast<void*>(static_cast<const void*>(array.data()));
  memory.bytes_ = array.nbytes();
  if (tensor.byteSize == 0 && tensor.type != HEARTH_TYPE_INT4)
    for (size_t i = 0; i < array.ndim(); ++i)
      memory.dimensions_.push_back(static_cast<uint32_t>(array.shape(i)));
  memory.array_ = std::move(array);
  return memory;
}

ArrayMemory ArrayMemory::ofOutput(nb::handle object, const TensorInfo& tensor) {
  ArrayMemory memory;
  if (memory.takeBuffer(object, tensor, true)) return memory;
  WritableArray array;
  if (!nb::try_cast(object, array, false))
    refuse("The output " + quoted(tensor) +
           " needs a writable array whose elements lie in memory one after the other.");
  check(array, object, tensor);
  memory.data_ = array.data();
  memory.bytes_ = array.nbytes();
  memory.writable_ = std::move(array);
  return memory;
}

AlignedMemory::AlignedMemory(const TensorInfo& tensor, uint64_t bytes)
    : type_(tensor.type), bytes_(bytes), owner_(nullptr, std::free) {
  const uint64_t padding = roundedUp(tensor.padding);
  owner_.reset(std::aligned_alloc(kAlignment, roundedUp(bytes) + 2 * padding + kAlignment));
  if (owner_ == nullptr) throw std::bad_alloc();
  auto* const begin = static_cast<std::byte*>(owner_.get());
  const auto end = reinterpret_cast<uintptr_t>(begin) + bytes;
  const bool isTailInPage = (end - 1) / kPage == (end - 1 + tensor.padding) / kPage;
  data_ = begin + (isTailInPage ? 0 : padding);
}

nb::object AlignedMemory::take(const std::vector<uint32_t>& dimensions) {
  const nb::capsule owner(owner_.get(), [](void* memory) noexcept { std::free(memory); });
  owner_.release();
  return arrayWith(dimensions, owner);
}

nb::object AlignedMemory::view(const std::vector<uint32_t>& dimensions) const {
  return arrayWith(dimensions, nb::handle());
}

nb::object AlignedMemory::arrayWith(const std::vector<uint32_t>& dimensions,
                                    nb::handle owner) const {
  std::vector<size_t> shape(dimensions.begin(), dimensions.end());
  if (type_ == HEARTH_TYPE_INT4) shape = {bytesOf(type_, dimensions)};
  return nb::cast(
      nb::ndarray<nb::numpy>(data_, shape.size(), shape.data(), owner, nullptr, elementType(type_)),
      nb::rv_policy::reference);
}

}  // namespace hearth::python
