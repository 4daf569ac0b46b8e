// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "llm_server/http_request.h"

namespace hearth::llm_server {

// Reads one request (RFC 9112) from bytes that come in pieces, at whatever places they are cut.
// What two readers could take for two different requests is refused: a proxy stands before this
// server. Used by one thread at a time.
class HttpRequestReader {
 public:
  static constexpr size_t kMaxHeadBytes = size_t{32} << 10;
  static constexpr size_t kMaxHeaders = 100;

  enum class State { kHead, kBody, kDone, kFailed };
  struct Failure {
    int status = 400;  // of the reply
    std::string sentence;
  };

  explicit HttpRequestReader(size_t maxBodyBytes) : maxBodyBytes_(maxBodyBytes) {}

  // Takes bytes up to the end of the request or the first fault, and returns how many. What follows
  // belongs to the next request.
  size_t take(std::string_view bytes);

  State state() const { return state_; }
  bool hasBegun() const { return state_ != State::kHead || !head_.empty(); }
  // Whether the client waits for a 100 before it sends the body. Says so once.
  bool takeContinue();
  // Memory for what was read.
  size_t bufferedBytes() const { return head_.size() + request_.body.size(); }
  // In the state kDone.
  HttpRequest& request() { return request_; }
  // In the state kFailed.
  const Failure& failure() const { return failure_; }

 private:
  enum class Part { kLength, kChunkSize, kChunk, kChunkEnd, kTrailer };

  void fail(int status, std::string sentence);
  size_t takeHead(std::string_view bytes);
  size_t takeBody(std::string_view bytes);
  size_t takeData(std::string_view bytes);
  size_t takeLine(std::string_view bytes);
  void readHead();
  bool readRequestLine(std::string_view line);
  bool readHeader(std::string_view line);
  void beginBody();
  void readBodyLine();

  const size_t maxBodyBytes_;
  State state_ = State::kHead;
  Part part_ = Part::kLength;
  std::string head_;
  std::string line_;  // of a chunked body, as far as it is there
  size_t trailerBytes_ = 0;
  size_t left_ = 0;  // bytes of the body or the chunk that are still to come
  bool isContinueWanted_ = false;
  HttpRequest request_;
  Failure failure_;
};

}  // namespace hearth::llm_server
