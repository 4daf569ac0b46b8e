// SPDX-License-Identifier: Apache-2.0
#include "llm_server/http_connection.h"

#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <string_view>
#include <utility>

namespace hearth::llm_server {
namespace {

constexpr size_t kReadBytes = size_t{64} << 10;
constexpr std::chrono::seconds kLinger{5};
constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";

}  // namespace

HttpConnection::HttpConnection(base::Descriptor socket, const Limits& limits)
    : socket_(std::move(socket)), limits_(limits), since_(Clock::now()) {
  reader_.emplace(limits_.maxBodyBytes);
}

HttpConnection::~HttpConnection() {
  if (exchange_ != nullptr) exchange_->setGone();
}

bool HttpConnection::read() {
  std::array<char, kReadBytes> bytes;
  const ssize_t got = ::recv(socket_.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
  if (got < 0) return errno == EAGAIN || errno == EINTR;
  if (got == 0) return false;
  if (isLingering_) return true;
  if (!reader_->hasBegun()) since_ = Clock::now();
  input_.append(bytes.data(), static_cast<size_t>(got));
  readOn();
  return true;
}

void HttpConnection::readOn() {
  input_.erase(0, reader_->take(input_));
  if (reader_->takeContinue()) unsent_ += kContinue;
}

HttpRequest* HttpConnection::request() {
  const bool isDone = isReading() && reader_->state() == HttpRequestReader::State::kDone;
  return isDone ? &reader_->request() : nullptr;
}

const HttpRequestReader::Failure* HttpConnection::failure() const {
  const bool hasFailed = isReading() && reader_->state() == HttpRequestReader::State::kFailed;
  return hasFailed ? &reader_->failure() : nullptr;
}

void HttpConnection::answer(std::shared_ptr<HttpExchange> exchange) {
  exchange_ = std::move(exchange);
  since_ = Clock::now();
}

void HttpConnection::closeAfter() {
  if (exchange_ != nullptr) exchange_->closeAfter();
}

bool HttpConnection::send() {
  if (exchange_ != nullptr && !isEnd_ && !isLingering_) {
    HttpExchange::Output output = exchange_->takeOutput();
    // Time counts from when there is something to read.
    if (!hasUnsent()) since_ = Clock::now();
    unsent_ += output.bytes;
    isEnd_ = output.isEnd;
    closes_ = output.closes;
  }
  while (hasUnsent()) {
    const ssize_t sent = ::send(socket_.get(), unsent_.data() + sent_, unsent_.size() - sent_,
                                MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && errno != EAGAIN) return false;
    if (sent < 0) break;
    sent_ += static_cast<size_t>(sent);
    since_ = Clock::now();
  }
  if (hasUnsent()) {
    unsent_.erase(0, std::exchange(sent_, 0));
    return unsent_.size() <= limits_.maxUnsentBytes;
  }
  unsent_.clear();
  sent_ = 0;
  if (!std::exchange(isEnd_, false)) return true;
  if (closes_) {
    // A client that is still sending would not get the reply: the kernel drops it when a connection
    // is closed before all bytes are read.
    isLingering_ = reader_->state() != HttpRequestReader::State::kDone;
    if (isLingering_) static_cast<void>(::shutdown(socket_.get(), SHUT_WR));
    return isLingering_;
  }
  exchange_.reset();
  reader_.emplace(limits_.maxBodyBytes);
  since_ = Clock::now();
  readOn();
  return true;
}

bool HttpConnection::isLate(Clock::time_point now) const {
  if (hasUnsent()) return now - since_ > limits_.writeTimeout;
  if (isLingering_) return now - since_ > kLinger;
  if (!isReading()) return false;
  return now - since_ > (reader_->hasBegun() ? limits_.requestTimeout : limits_.idleTimeout);
}

}  // namespace hearth::llm_server
