// SPDX-License-Identifier: Apache-2.0
#include "frontends/tflite_c/reporter.h"

#include "base/log.h"

namespace hearth::tflite_c {
namespace {

void callReporter(const Reporter& reporter, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  reporter.function(reporter.user, format, arguments);
  va_end(arguments);
}

}  // namespace

void Reporter::report(const std::string& message) const {
  if (function != nullptr)
    callReporter(*this, "%s", message.c_str());
  else
    base::logError("{}", message);
}

TfLiteStatus Reporter::failure(const Error& error) const noexcept {
  base::logged("reporting an error", [&] { report(error.toString()); });
  return kTfLiteError;
}

}  // namespace hearth::tflite_c
