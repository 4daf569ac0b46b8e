// SPDX-License-Identifier: Apache-2.0
#include "llm_server/http_exchange.h"

#include "base/format.h"

namespace hearth::llm_server {
namespace {

constexpr int kOk = 200;

const char* reasonOf(int status) {
  switch (status) {
    case kOk:
      return "OK";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 408:
      return "Request Timeout";
    case 413:
      return "Content Too Large";
    case 415:
      return "Unsupported Media Type";
    case 429:
      return "Too Many Requests";
    case 431:
      return "Request Header Fields Too Large";
    case 501:
      return "Not Implemented";
    case 503:
      return "Service Unavailable";
    case 504:
      return "Gateway Timeout";
    case 505:
      return "HTTP Version Not Supported";
    default:
      return "Internal Server Error";
  }
}

}  // namespace

// Up to the headers that say how long the body is. With the mutex held.
std::string HttpExchange::head(int status, std::string_view type) const {
  return base::formatText("HTTP/1.1 {} {}\r\nContent-Type: {}\r\nConnection: {}\r\n", status,
                          reasonOf(status), type, closes_ ? "close" : "keep-alive");
}

void HttpExchange::reply(const HttpReply& reply) {
  {
    const std::lock_guard lock(mutex_);
    if (status_ != 0) return;
    status_ = reply.status;
    isEnded_ = true;
    closes_ = closes_ || !request_.keepsAlive;
    output_ = head(reply.status, reply.type);
    for (const auto& [name, value] : reply.headers)
      output_ += base::formatText("{}: {}\r\n", name, value);
    output_ += base::formatText("Content-Length: {}\r\n\r\n", reply.body.size());
    output_ += reply.body;
  }
  wake_();
}

void HttpExchange::beginStream(std::string_view type) {
  const std::lock_guard lock(mutex_);
  if (status_ != 0) return;
  status_ = kOk;
  isChunked_ = !request_.isVersion10;
  // Without chunks the end of the connection is the end of the reply.
  closes_ = closes_ || !request_.keepsAlive || !isChunked_;
  output_ = head(kOk, type) + "Cache-Control: no-cache\r\n";
  if (isChunked_) output_ += "Transfer-Encoding: chunked\r\n";
  output_ += "\r\n";
}

void HttpExchange::write(std::string_view piece) {
  if (piece.empty()) return;
  {
    const std::lock_guard lock(mutex_);
    if (isEnded_) return;
    if (isChunked_)
      output_ += base::formatText("{:x}\r\n{}\r\n", piece.size(), piece);
    else
      output_ += piece;
  }
  wake_();
}

void HttpExchange::endStream() {
  {
    const std::lock_guard lock(mutex_);
    if (isEnded_) return;
    isEnded_ = true;
    if (isChunked_) output_ += "0\r\n\r\n";
  }
  wake_();
}

int HttpExchange::status() const {
  const std::lock_guard lock(mutex_);
  return status_;
}

void HttpExchange::closeAfter() {
  const std::lock_guard lock(mutex_);
  closes_ = true;
}

HttpExchange::Output HttpExchange::takeOutput() {
  const std::lock_guard lock(mutex_);
  return {std::exchange(output_, {}), isEnded_, closes_};
}

}  // namespace hearth::llm_server
