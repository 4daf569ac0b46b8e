// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <new>
#include <stdexcept>
#include <utility>

#include "base/result.h"
#include "hearth/hearth.hpp"

namespace hearth::llm {

// Returns what `body` returns, a Status or Result, or the exception of hearth.hpp that it throws.
template <typename Body>
auto returned(Body&& body) -> decltype(body()) {
  try {
    return body();
  } catch (const Exception& exception) {
    // The codes of hearth.h are those of ErrorCode.
    return std::unexpected(Error(static_cast<ErrorCode>(exception.code()), exception.what()));
  } catch (const std::bad_alloc&) {
    return fail(ErrorCode::kOutOfMemory, "There is no memory left.");
  }
}

}  // namespace hearth::llm
