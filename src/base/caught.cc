// SPDX-License-Identifier: Apache-2.0
#include "base/caught.h"

#include <exception>
#include <new>
#include <stdexcept>
#include <string>

#include "base/log.h"

namespace hearth::base {
namespace {

// The text is short enough for a string to hold it without allocating.
Error noMemory() noexcept {
  return Error(ErrorCode::kOutOfMemory, "Out of memory.");
}

}  // namespace

Error currentError() noexcept {
  try {
    throw;
  } catch (const std::bad_alloc&) {
    return noMemory();
  } catch (const std::length_error&) {
    // A container was asked for more than the address space.
    return noMemory();
  } catch (const std::exception& exception) {
    try {
      return Error(ErrorCode::kOpFailed, exception.what());
    } catch (...) {
      return noMemory();
    }
  } catch (...) {
    return Error(ErrorCode::kOpFailed, "Unknown error.");
  }
}

void logFailure(const char* what, const Error& error) noexcept {
  static_cast<void>(caught([&] { logWarn("{} fails. {}", what, error.message()); }));
}

}  // namespace hearth::base
