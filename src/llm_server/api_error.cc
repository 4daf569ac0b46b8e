// SPDX-License-Identifier: Apache-2.0
#include "llm_server/api_error.h"

#include <nlohmann/json.hpp>

namespace hearth::llm_server {
namespace {

constexpr const char* kServerError = "server_error";
constexpr const char* kRetrySeconds = "1";

nlohmann::ordered_json textOrNull(const std::string& text) {
  return text.empty() ? nlohmann::ordered_json(nullptr) : nlohmann::ordered_json(text);
}

}  // namespace

ApiError apiError(const Error& error) {
  switch (error.code()) {
    case ErrorCode::kBadData:
    case ErrorCode::kUnsupported:
      return {.message = error.message()};
    case ErrorCode::kOutOfMemory:
    case ErrorCode::kResourceExhaustedTransient:
      return {
          .status = 503, .message = error.message(), .type = kServerError, .code = "out_of_memory"};
    case ErrorCode::kMissedDeadlineTransient:
    case ErrorCode::kMissedDeadlinePersistent:
      return {.status = 504,
              .message = "The time for the request is over.",
              .type = kServerError,
              .code = "timeout"};
    default:
      return {.status = 500, .message = error.message(), .type = kServerError};
  }
}

std::string toJson(const ApiError& error) {
  const nlohmann::ordered_json object = {{"error",
                                          {{"message", error.message},
                                           {"type", error.type},
                                           {"param", textOrNull(error.param)},
                                           {"code", textOrNull(error.code)}}}};
  return object.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

HttpReply toReply(const ApiError& error) {
  HttpReply reply{.status = error.status, .body = toJson(error)};
  if (error.status == 429 || error.status == 503)
    reply.headers.emplace_back("Retry-After", kRetrySeconds);
  if (error.status == 401) reply.headers.emplace_back("WWW-Authenticate", "Bearer");
  return reply;
}

}  // namespace hearth::llm_server
