// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <expected>
#include <string>
#include <utility>

#include "base/format.h"
#include "base/result.h"
#include "llm_server/http_exchange.h"

namespace hearth::llm_server {

// What a request fails with, as OpenAI's interface says it.
struct ApiError {
  int status = 400;  // of the reply
  std::string message;
  std::string type = "invalid_request_error";
  std::string code = {};   // a word for programs; empty = null
  std::string param = {};  // the member of the request that is wrong; empty = null
};

template <typename T>
using ApiResult = std::expected<T, ApiError>;

// The error for a request whose member `param` is wrong.
template <typename... Args>
std::unexpected<ApiError> refuse(std::string param, std::format_string<Args...> format,
                                 Args&&... args) {
  return std::unexpected(ApiError{.message = base::formatText(format, std::forward<Args>(args)...),
                                  .param = std::move(param)});
}

// The error of what the library could not do with a request that is right: 503 where memory or
// time is missing, 400 for data that it refuses, else 500.
ApiError apiError(const Error& error);

// {"error": {"message": ..., "type": ..., "param": ..., "code": ...}}, and in an HTTP reply, which
// says when to try again where that helps.
std::string toJson(const ApiError& error);
HttpReply toReply(const ApiError& error);

}  // namespace hearth::llm_server
