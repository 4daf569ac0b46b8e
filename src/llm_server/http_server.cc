// SPDX-License-Identifier: Apache-2.0
#include "llm_server/http_server.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <utility>
#include <vector>

namespace hearth::llm_server {
namespace {

// Connections have the numbers behind these.
constexpr uint64_t kListening = 0;
constexpr uint64_t kStop = 1;
constexpr uint64_t kWakeup = 2;
constexpr uint64_t kFirstConnection = 3;
constexpr int kSweepMs = 1000;
constexpr int kTimeoutStatus = 408;
constexpr int kFullStatus = 503;

Status add(const base::Descriptor& poll, int fd, uint64_t id, uint32_t events) {
  epoll_event event{.events = events, .data = {.u64 = id}};
  if (::epoll_ctl(poll.get(), EPOLL_CTL_ADD, fd, &event) == 0) return {};
  return std::unexpected(base::errnoError(errno, "Watching a socket"));
}

}  // namespace

HttpServer::HttpServer(HttpServerOptions options, Handler handler, Refusal refusal)
    : options_(options),
      handler_(std::move(handler)),
      refusal_(std::move(refusal)),
      nextId_(kFirstConnection) {}

Result<std::unique_ptr<HttpServer>> HttpServer::create(base::Descriptor listening,
                                                       HttpServerOptions options, Handler handler,
                                                       Refusal refusal) {
  std::unique_ptr<HttpServer> server(
      new HttpServer(options, std::move(handler), std::move(refusal)));
  server->listening_ = std::move(listening);
  server->poll_.reset(::epoll_create1(EPOLL_CLOEXEC));
  base::Descriptor event(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!server->poll_.valid() || !event.valid())
    return std::unexpected(base::errnoError(errno, "Making what a server waits for"));
  server->wakeup_ = std::make_shared<Wakeup>(std::move(event));
  HEARTH_TRY(add(server->poll_, server->listening_.get(), kListening, EPOLLIN));
  HEARTH_TRY(add(server->poll_, server->wakeup_->descriptor(), kWakeup, EPOLLIN));
  return server;
}

Status HttpServer::run(int stop, const std::function<void()>& onStop) {
  HEARTH_TRY(add(poll_, stop, kStop, EPOLLIN));
  auto swept = HttpConnection::Clock::now();
  while (!isStopping_ || !connections_.empty()) {
    std::array<epoll_event, 64> events;
    const int count =
        ::epoll_wait(poll_.get(), events.data(), static_cast<int>(events.size()), kSweepMs);
    if (count < 0 && errno != EINTR)
      return std::unexpected(base::errnoError(errno, "Waiting for connections"));
    for (int i = 0; i < count; ++i) {
      const epoll_event& event = events[static_cast<size_t>(i)];
      if (event.data.u64 == kListening) {
        accept();
      } else if (event.data.u64 == kWakeup) {
        for (const uint64_t id : wakeup_->take()) serve(id, 0);
      } else if (event.data.u64 == kStop) {
        signalfd_siginfo signal;
        static_cast<void>(::read(stop, &signal, sizeof signal) == sizeof signal);
        if (isStopping_) return {};
        onStop();
        beginStop();
      } else {
        serve(event.data.u64, event.events);
      }
    }
    if (const auto now = HttpConnection::Clock::now();
        now - swept >= std::chrono::milliseconds(kSweepMs)) {
      swept = now;
      sweep();
    }
  }
  return {};
}

void HttpServer::accept() {
  for (;;) {
    base::Descriptor socket(
        ::accept4(listening_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket.valid()) {
      if (errno == EINTR || errno == ECONNABORTED) continue;
      if (errno != EAGAIN && errno != EWOULDBLOCK) {
        // There are no descriptors left, for instance; some are free again later.
        isPaused_ = true;
        ::epoll_ctl(poll_.get(), EPOLL_CTL_DEL, listening_.get(), nullptr);
      }
      return;
    }
    const int fd = socket.get();
    const bool isFull = connections_.size() >= options_.maxConnections;
    const uint64_t id = nextId_++;
    auto connection = std::make_unique<HttpConnection>(std::move(socket), options_.connection);
    if (isFull) {
      const auto exchange = std::make_shared<HttpExchange>(HttpRequest(), [] {});
      exchange->closeAfter();
      exchange->reply(refusal_(kFullStatus, "The server has too many connections."));
      connection->answer(exchange);
      connection->send();
      continue;
    }
    if (!add(poll_, fd, id, EPOLLIN | EPOLLRDHUP)) continue;
    connections_.emplace(id, std::move(connection));
    connectionCount_ = connections_.size();
  }
}

// Something has happened to a connection, or its exchange has something to send.
void HttpServer::serve(uint64_t id, uint32_t events) {
  const auto found = connections_.find(id);
  if (found == connections_.end()) return;
  HttpConnection& connection = *found->second;
  size_t counted = connection.bufferedBytes();
  const auto count = [&] {
    const size_t bytes = connection.bufferedBytes();
    buffered_ += bytes - std::exchange(counted, bytes);
  };
  bool isOpen = (events & (EPOLLERR | EPOLLHUP)) == 0;
  if (isOpen && (events & EPOLLIN) != 0 && connection.takesInput()) isOpen = connection.read();
  // A client that has closed its side waits for no reply.
  if ((events & EPOLLRDHUP) != 0) isOpen = false;
  count();
  isOpen = isOpen && advance(id, &connection);
  count();
  if (!isOpen) return close(id);
  watch(id, connection);
}

// Handles what was read and sends what there is, until the connection waits. Returns false when it
// is over.
bool HttpServer::advance(uint64_t id, HttpConnection* connection) {
  for (;;) {
    handleRequests(id, connection);
    const bool wasReading = connection->isReading();
    if (!connection->send()) return false;
    // A reply that is sent may leave another request.
    if (wasReading || !connection->isReading()) return true;
    if (isStopping_ && connection->isIdle()) return false;
  }
}

void HttpServer::handleRequests(uint64_t id, HttpConnection* connection) {
  const bool isTooMuch = buffered_ > options_.maxBufferedBytes && connection->isReading() &&
                         connection->bufferedBytes() > 0;
  HttpRequest* const request = connection->request();
  const auto* const failure = connection->failure();
  if (request == nullptr && failure == nullptr && !isTooMuch) return;
  const auto exchange =
      std::make_shared<HttpExchange>(request != nullptr ? std::move(*request) : HttpRequest(),
                                     [wakeup = wakeup_, id] { wakeup->add(id); });
  if (isStopping_) exchange->closeAfter();
  connection->answer(exchange);
  if (request != nullptr) return handler_(exchange);
  exchange->closeAfter();
  if (failure != nullptr)
    exchange->reply(refusal_(failure->status, failure->sentence));
  else
    exchange->reply(refusal_(kFullStatus, "The server is reading too many requests."));
}

// Polls for what the connection waits for.
void HttpServer::watch(uint64_t id, const HttpConnection& connection) const {
  uint32_t events = EPOLLRDHUP;
  if (connection.takesInput()) events |= EPOLLIN;
  if (connection.hasUnsent()) events |= EPOLLOUT;
  epoll_event event{.events = events, .data = {.u64 = id}};
  ::epoll_ctl(poll_.get(), EPOLL_CTL_MOD, connection.socket(), &event);
}

void HttpServer::beginStop() {
  isStopping_ = true;
  ::epoll_ctl(poll_.get(), EPOLL_CTL_DEL, listening_.get(), nullptr);
  listening_.reset();
  // A request that is not there yet would be refused.
  std::vector<uint64_t> reading;
  for (const auto& [id, connection] : connections_) {
    connection->closeAfter();
    if (connection->isReading() && !connection->hasUnsent()) reading.push_back(id);
  }
  for (const uint64_t id : reading) close(id);
}

void HttpServer::sweep() {
  if (std::exchange(isPaused_, false) && !isStopping_)
    static_cast<void>(add(poll_, listening_.get(), kListening, EPOLLIN));
  const auto now = HttpConnection::Clock::now();
  std::vector<uint64_t> late;
  for (const auto& [id, connection] : connections_)
    if (connection->isLate(now)) late.push_back(id);
  for (const uint64_t id : late) {
    HttpConnection& connection = *connections_.at(id);
    if (connection.isReading() && !connection.isIdle() && !connection.hasUnsent()) {
      const auto exchange = std::make_shared<HttpExchange>(HttpRequest(), [] {});
      exchange->closeAfter();
      exchange->reply(refusal_(kTimeoutStatus, "The request takes too long to arrive."));
      connection.answer(exchange);
      connection.send();
    }
    close(id);
  }
}

void HttpServer::close(uint64_t id) {
  const auto found = connections_.find(id);
  if (found == connections_.end()) return;
  buffered_ -= found->second->bufferedBytes();
  connections_.erase(found);
  connectionCount_ = connections_.size();
}

}  // namespace hearth::llm_server
