// SPDX-License-Identifier: Apache-2.0
#include "api/handles.h"

#include <cstdlib>
#include <cstring>

#include "api/reported_error.h"

namespace hearth::api {

hearth_status report(const Error& error, hearth_error** out) noexcept {
  const auto code = static_cast<hearth_status>(error.code());
  if (out == nullptr) return code;
  try {
    *out = new hearth_error{code, error.toString()};
  } catch (const std::bad_alloc&) {
    *out = nullptr;
  }
  return code;
}

char* copyString(const std::string& text) {
  char* copy = static_cast<char*>(std::malloc(text.size() + 1));
  if (copy == nullptr) throw std::bad_alloc();
  std::memcpy(copy, text.c_str(), text.size() + 1);
  return copy;
}

Result<hearth_type> publicType(graph::OperandType type) {
  using graph::OperandType;
  switch (type) {
    case OperandType::kFloat32:
    case OperandType::kTensorFloat32:
      return HEARTH_TYPE_FLOAT32;
    case OperandType::kFloat16:
    case OperandType::kTensorFloat16:
      return HEARTH_TYPE_FLOAT16;
    case OperandType::kTensorFloat64:
      return HEARTH_TYPE_FLOAT64;
    case OperandType::kTensorQuant8Symm:
    case OperandType::kTensorQuant8SymmPerChannel:
    case OperandType::kTensorQuant8AsymmSigned:
      return HEARTH_TYPE_INT8;
    case OperandType::kTensorQuant8Asymm:
      return HEARTH_TYPE_UINT8;
    case OperandType::kTensorQuant16Symm:
    case OperandType::kTensorInt16:
      return HEARTH_TYPE_INT16;
    case OperandType::kTensorQuant16Asymm:
    case OperandType::kTensorUint16:
      return HEARTH_TYPE_UINT16;
    case OperandType::kInt32:
    case OperandType::kTensorInt32:
      return HEARTH_TYPE_INT32;
    case OperandType::kUint32:
    case OperandType::kTensorUint32:
      return HEARTH_TYPE_UINT32;
    case OperandType::kTensorInt64:
      return HEARTH_TYPE_INT64;
    case OperandType::kTensorUint64:
      return HEARTH_TYPE_UINT64;
    case OperandType::kBool:
    case OperandType::kTensorBool8:
      return HEARTH_TYPE_BOOL;
    case OperandType::kTensorInt4:
      return HEARTH_TYPE_INT4;
    case OperandType::kTensorComplex64:
      return HEARTH_TYPE_COMPLEX64;
    case OperandType::kTensorString:
      return HEARTH_TYPE_STRING;
    case OperandType::kModel:
      break;
  }
  return fail(ErrorCode::kUnsupported, "An argument of {} has no public type.",
              graph::nameOf(type));
}

}  // namespace hearth::api

extern "C" {

hearth_status hearth_error_code(const hearth_error* error) {
  return error == nullptr ? HEARTH_OK : error->code;
}
const char* hearth_error_message(const hearth_error* error) {
  return error == nullptr ? "" : error->message.c_str();
}
void hearth_error_free(hearth_error* error) {
  delete error;
}

hearth_status hearth_report_error(hearth_status code, const char* message, hearth_error** error) {
  return hearth::api::report(hearth::Error(static_cast<hearth::ErrorCode>(code), message), error);
}

void hearth_string_free(char* string) {
  std::free(string);
}

}  // extern "C"
