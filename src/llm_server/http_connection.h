// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/descriptor.h"
#include "llm_server/http_exchange.h"
#include "llm_server/http_request_reader.h"

namespace hearth::llm_server {

// One connection of an HttpServer: reads a request, waits for its reply, sends it, and so on. Never
// blocks. Used by the server's thread.
class HttpConnection {
 public:
  using Clock = std::chrono::steady_clock;

  struct Limits {
    size_t maxBodyBytes = size_t{4} << 20;
    size_t maxUnsentBytes = size_t{4} << 20;           // of a reply, until its client reads it
    std::chrono::milliseconds requestTimeout{60'000};  // from its first byte to its last
    std::chrono::milliseconds idleTimeout{75'000};     // between two requests
    std::chrono::milliseconds writeTimeout{30'000};    // while the client reads nothing
  };

  HttpConnection(base::Descriptor socket, const Limits& limits);
  // The exchange learns that its client is gone.
  ~HttpConnection();
  HttpConnection(const HttpConnection&) = delete;
  HttpConnection& operator=(const HttpConnection&) = delete;

  int socket() const { return socket_.get(); }

  // Reads what is there, up to the end of a request. Returns false when the connection is over.
  bool read();
  // Looks for a request in what came behind the last one.
  void readOn();
  // The request that is read whole, or why there is none; null where more is to be read. Then
  // answer() is due.
  HttpRequest* request();
  const HttpRequestReader::Failure* failure() const;
  // Where the reply is to come from.
  void answer(std::shared_ptr<HttpExchange> exchange);
  // Sends what there is, as far as the socket takes it. Returns false when the connection is over.
  bool send();

  // Whether no request has begun.
  bool isIdle() const { return isReading() && !reader_->hasBegun() && !hasUnsent(); }
  bool isReading() const { return exchange_ == nullptr; }
  // Whether read() is due when there are bytes.
  bool takesInput() const { return isReading() || isLingering_; }
  bool hasUnsent() const { return sent_ < unsent_.size(); }
  // The memory for a request that is being read.
  size_t bufferedBytes() const { return reader_->bufferedBytes() + input_.size(); }
  // Whether the client takes too long to send or to read.
  bool isLate(Clock::time_point now) const;
  // No other request is read after the one that is being served.
  void closeAfter();

 private:
  const base::Descriptor socket_;
  const Limits limits_;
  std::optional<HttpRequestReader> reader_;
  std::string input_;  // that came behind a request
  std::shared_ptr<HttpExchange> exchange_;
  std::string unsent_;
  size_t sent_ = 0;           // of these bytes
  bool isEnd_ = false;        // the reply ends with them,
  bool closes_ = false;       // and the connection
  bool isLingering_ = false;  // all is sent; what the client still sends is dropped
  Clock::time_point since_;   // when the request, the idleness or the last progress began
};

}  // namespace hearth::llm_server
