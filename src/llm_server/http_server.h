// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>

#include "base/descriptor.h"
#include "base/result.h"
#include "llm_server/http_connection.h"
#include "llm_server/http_exchange.h"
#include "llm_server/wakeup.h"

namespace hearth::llm_server {

struct HttpServerOptions {
  HttpConnection::Limits connection;
  size_t maxConnections = 1024;
  // Of requests that are being read, all connections together.
  size_t maxBufferedBytes = size_t{64} << 20;
};

// Serves HTTP/1.1 on one thread. No connection can hold up another: one that does not send, does
// not read or goes away is closed, and its exchange learns that it is gone.
class HttpServer {
 public:
  // Gets each request on the thread of run(); replies at once or later, from any thread.
  using Handler = std::function<void(const std::shared_ptr<HttpExchange>&)>;
  // The reply to what is no request, or to one more connection than are served.
  using Refusal = std::function<HttpReply(int status, const std::string& sentence)>;

  // Error: kIo.
  static Result<std::unique_ptr<HttpServer>> create(base::Descriptor listening,
                                                    HttpServerOptions options, Handler handler,
                                                    Refusal refusal);
  // Serves until `stop` becomes readable. Then it calls `onStop`, takes no more connections, sends
  // the replies that are still to come, and returns when all are sent; or at once, when `stop`
  // becomes readable again. `stop` is a signalfd. Error: kIo.
  Status run(int stop, const std::function<void()>& onStop);

  // The number of open connections. Thread-safe.
  size_t connections() const { return connectionCount_; }

 private:
  HttpServer(HttpServerOptions options, Handler handler, Refusal refusal);
  void accept();
  void serve(uint64_t id, uint32_t events);
  void handleRequests(uint64_t id, HttpConnection* connection);
  bool advance(uint64_t id, HttpConnection* connection);
  void watch(uint64_t id, const HttpConnection& connection) const;
  void beginStop();
  void sweep();
  void close(uint64_t id);

  const HttpServerOptions options_;
  const Handler handler_;
  const Refusal refusal_;
  base::Descriptor listening_;
  base::Descriptor poll_;
  std::shared_ptr<Wakeup> wakeup_;  // exchanges may outlive the server
  std::map<uint64_t, std::unique_ptr<HttpConnection>> connections_;
  std::atomic<size_t> connectionCount_ = 0;
  uint64_t nextId_ = 0;
  size_t buffered_ = 0;
  bool isPaused_ = false;  // takes no connections until the next sweep
  bool isStopping_ = false;
};

}  // namespace hearth::llm_server
