// SPDX-License-Identifier: Apache-2.0
// Any bytes as what a client sends: whole or in pieces the same request of HTTP, whose body is read
// as a request for an answer.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "llm_server/answer_request.h"
#include "llm_server/http_request_reader.h"

namespace {

using hearth::llm_server::HttpRequestReader;

constexpr size_t kMaxBodyBytes = size_t{1} << 16;

void require(bool condition) {
  if (!condition) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  HttpRequestReader whole(kMaxBodyBytes);
  const size_t taken = whole.take(bytes);
  require(taken <= size && whole.request().body.size() <= kMaxBodyBytes);
  HttpRequestReader pieces(kMaxBodyBytes);
  size_t takenInPieces = 0;
  for (size_t i = 0; i < taken; ++i) takenInPieces += pieces.take(bytes.substr(i, 1));
  require(pieces.state() == whole.state());
  if (whole.state() != HttpRequestReader::State::kFailed)
    require(takenInPieces == taken && pieces.request().body == whole.request().body &&
            pieces.request().path == whole.request().path &&
            pieces.request().headers == whole.request().headers);
  // What is no request of HTTP is a body perhaps.
  const bool isDone = whole.state() == HttpRequestReader::State::kDone;
  const std::string_view body = isDone ? whole.request().body : bytes;
  (void)hearth::llm_server::readChatRequest(body);
  (void)hearth::llm_server::readCompletionRequest(body);
  return 0;
}
