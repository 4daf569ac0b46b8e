// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "llm_server/http_request.h"

namespace hearth::llm_server {

struct HttpReply {
  int status = 200;
  std::string type = "application/json";
  std::string body;
  std::vector<std::pair<std::string, std::string>> headers = {};  // besides type and length
};

// One request and its reply, which is given whole or as a stream. Thread-safe, but for replies by
// several threads at a time. The server sends what was given while the caller goes on.
class HttpExchange {
 public:
  // `wake` is called whenever there is something to send, by the thread that gives it.
  HttpExchange(HttpRequest request, std::function<void()> wake)
      : request_(std::move(request)), wake_(std::move(wake)) {}

  // Its body may be moved away.
  HttpRequest& request() { return request_; }

  // The whole reply. Nothing happens when there was one.
  void reply(const HttpReply& reply);

  // A reply of unknown length: its head, pieces, and its end.
  void beginStream(std::string_view type);
  void write(std::string_view piece);
  void endStream();

  // The status of what was given of the reply; 0 = nothing yet.
  int status() const;
  // Whether nobody is there to read the reply, or it is not read.
  bool isGone() const { return isGone_; }

  // For the server: that the client is gone; that the connection is closed after the reply; and
  // what there is to send, with whether that is the end.
  void setGone() { isGone_ = true; }
  void closeAfter();
  struct Output {
    std::string bytes;
    bool isEnd = false;
    bool closes = false;
  };
  Output takeOutput();

 private:
  std::string head(int status, std::string_view type) const;

  HttpRequest request_;
  const std::function<void()> wake_;
  std::atomic<bool> isGone_ = false;
  mutable std::mutex mutex_;
  std::string output_;
  int status_ = 0;
  bool isEnded_ = false;
  bool isChunked_ = false;
  bool closes_ = false;
};

}  // namespace hearth::llm_server
