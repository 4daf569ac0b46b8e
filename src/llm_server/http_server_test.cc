// SPDX-License-Identifier: Apache-2.0
#include "llm_server/http_server.h"

#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <future>
#include <mutex>
#include <string>
#include <thread>

#include "llm_server/listen_address.h"

namespace hearth::llm_server {
namespace {

constexpr int kFull = 503;

// A server at a Unix socket. /echo replies with the body; other paths are answered by the test.
class HttpServerTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = std::filesystem::temp_directory_path() / "hearth-http-XXXXXX";
    folder_ = ::mkdtemp(pattern.data());
    path_ = folder_ + "/socket";
    stop_.reset(::eventfd(0, EFD_CLOEXEC | EFD_SEMAPHORE));
    options_.connection.maxBodyBytes = 1000;
  }
  void TearDown() override {
    if (serving_.joinable()) end();
    std::filesystem::remove_all(folder_);
  }

  void serve() {
    auto listening = listenOn({.path = path_});
    ASSERT_TRUE(listening) << listening.error().toString();
    auto server = HttpServer::create(
        std::move(listening->socket), options_,
        [this](const std::shared_ptr<HttpExchange>& exchange) {
          if (exchange->request().path == "/echo")
            return exchange->reply({.type = "text/plain", .body = exchange->request().body});
          const std::lock_guard lock(mutex_);
          exchanges_.push_back(exchange);
          arrived_.notify_all();
        },
        [](int status, const std::string& sentence) {
          return HttpReply{.status = status, .body = sentence};
        });
    ASSERT_TRUE(server) << server.error().toString();
    server_ = std::move(*server);
    serving_ = std::thread([this] {
      const Status ended = server_->run(stop_.get(), [] {});
      EXPECT_TRUE(ended) << ended.error().toString();
    });
  }
  // As a signal does.
  void beginEnd() const {
    const uint64_t one = 1;
    ASSERT_EQ(::write(stop_.get(), &one, sizeof one), ssize_t{sizeof one});
  }
  void end() {
    beginEnd();
    serving_.join();
  }
  std::shared_ptr<HttpExchange> arrived() {
    std::unique_lock lock(mutex_);
    arrived_.wait(lock, [&] { return !exchanges_.empty(); });
    auto exchange = exchanges_.back();
    exchanges_.pop_back();
    return exchange;
  }
  base::Descriptor connect() const {
    base::Descriptor client(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un address{.sun_family = AF_UNIX};
    std::memcpy(address.sun_path, path_.c_str(), path_.size() + 1);
    EXPECT_EQ(::connect(client.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    return client;
  }
  static void send(const base::Descriptor& client, const std::string& text) {
    size_t sent = 0;
    while (sent < text.size()) {
      const ssize_t count =
          ::send(client.get(), text.data() + sent, text.size() - sent, MSG_NOSIGNAL);
      ASSERT_GT(count, 0);
      sent += static_cast<size_t>(count);
    }
  }
  // What comes up to this text, or to the end of the connection.
  static std::string receive(const base::Descriptor& client, std::string_view until = {}) {
    std::string text;
    std::array<char, 4096> bytes;
    while (until.empty() || !text.ends_with(until)) {
      const ssize_t count = ::recv(client.get(), bytes.data(), bytes.size(), 0);
      if (count <= 0) break;
      text.append(bytes.data(), static_cast<size_t>(count));
    }
    return text;
  }
  static std::string echo(const std::string& body, const std::string& headers = "") {
    return "POST /echo HTTP/1.1\r\n" + headers + "Content-Length: " + std::to_string(body.size()) +
           "\r\n\r\n" + body;
  }

  HttpServerOptions options_;
  std::string folder_;
  std::string path_;
  base::Descriptor stop_;
  std::unique_ptr<HttpServer> server_;
  std::thread serving_;
  std::mutex mutex_;
  std::condition_variable arrived_;
  std::vector<std::shared_ptr<HttpExchange>> exchanges_;
};

TEST_F(HttpServerTest, AConnectionServesOneRequestAfterTheOther) {
  serve();
  const auto client = connect();
  send(client, echo("one"));
  EXPECT_TRUE(receive(client, "one").starts_with("HTTP/1.1 200 OK\r\n"));
  // Two at once, the second of which is the last one.
  send(client, echo("two") + echo("three", "Connection: close\r\n"));
  const std::string both = receive(client);
  EXPECT_LT(both.find("two"), both.find("three"));
  EXPECT_TRUE(both.ends_with("three"));
  EXPECT_TRUE(both.contains("Connection: close"));
}

TEST_F(HttpServerTest, AReplyMayBeAStream) {
  serve();
  const auto client = connect();
  send(client, "GET /later HTTP/1.1\r\n\r\n");
  const auto exchange = arrived();
  exchange->beginStream("text/plain");
  exchange->write("first");
  EXPECT_TRUE(receive(client, "5\r\nfirst\r\n").contains("Transfer-Encoding: chunked"));
  exchange->write("second");
  exchange->endStream();
  EXPECT_EQ(receive(client, "0\r\n\r\n"), "6\r\nsecond\r\n0\r\n\r\n");
  // Of version 1.0 the end of the connection is the end of the reply.
  const auto old = connect();
  send(old, "GET /later HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
  const auto second = arrived();
  second->beginStream("text/plain");
  second->write("plain");
  second->endStream();
  EXPECT_TRUE(receive(old).ends_with("\r\n\r\nplain"));
}

TEST_F(HttpServerTest, AClientThatGoesAwayIsNoticed) {
  serve();
  auto client = connect();
  send(client, "GET /later HTTP/1.1\r\n\r\n");
  const auto exchange = arrived();
  EXPECT_FALSE(exchange->isGone());
  client.reset();
  while (!exchange->isGone()) std::this_thread::yield();
  exchange->reply({.body = "for nobody"});
}

TEST_F(HttpServerTest, AClientThatDoesNotReadIsGivenUp) {
  options_.connection.maxUnsentBytes = 100'000;
  serve();
  const auto client = connect();
  send(client, "GET /later HTTP/1.1\r\n\r\n");
  const auto exchange = arrived();
  exchange->beginStream("text/plain");
  while (!exchange->isGone()) exchange->write(std::string(10'000, 'x'));
  // Others are served meanwhile and afterwards.
  const auto other = connect();
  send(other, echo("still here"));
  EXPECT_TRUE(receive(other, "still here").ends_with("still here"));
}

TEST_F(HttpServerTest, ATooLargeRequestGetsItsReplyWhileItIsSent) {
  serve();
  const auto client = connect();
  send(client, echo(std::string(8'000'000, 'x')));
  ::shutdown(client.get(), SHUT_WR);
  const std::string reply = receive(client);
  EXPECT_TRUE(reply.starts_with("HTTP/1.1 413 ")) << reply;
  EXPECT_TRUE(reply.contains("has 8000000 bytes; at most 1000 are read"));
}

TEST_F(HttpServerTest, AClientIsAskedForTheBodyThatItHoldsBack) {
  serve();
  const auto client = connect();
  send(client, "POST /echo HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n");
  EXPECT_EQ(receive(client, "\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
  send(client, "body");
  EXPECT_TRUE(receive(client, "body").starts_with("HTTP/1.1 200 OK"));
}

TEST_F(HttpServerTest, SlowRequestsAndIdleConnectionsEnd) {
  options_.connection.requestTimeout = std::chrono::milliseconds(1);
  options_.connection.idleTimeout = std::chrono::milliseconds(1);
  serve();
  const auto slow = connect();
  send(slow, "POST /echo HT");
  EXPECT_TRUE(receive(slow).starts_with("HTTP/1.1 408 "));
  EXPECT_EQ(receive(connect()), "");
}

TEST_F(HttpServerTest, OneConnectionTooManyIsRefused) {
  options_.maxConnections = 2;
  serve();
  const auto first = connect();
  const auto second = connect();
  send(second, echo("here"));
  receive(second, "here");
  EXPECT_TRUE(receive(connect()).starts_with("HTTP/1.1 503 "));
  EXPECT_EQ(server_->connections(), 2u);
}

TEST_F(HttpServerTest, TooManyUnfinishedRequestsAreRefused) {
  options_.maxBufferedBytes = 1000;
  serve();
  const std::string most =
      "POST /echo HTTP/1.1\r\nContent-Length: 900\r\n\r\n" + std::string(600, 'x');
  const auto first = connect();
  send(first, most);
  const auto second = connect();
  send(second, most);
  EXPECT_TRUE(receive(second).starts_with("HTTP/1.1 503 "));
  send(first, std::string(300, 'x'));
  EXPECT_TRUE(receive(first, std::string(900, 'x')).starts_with("HTTP/1.1 200 "));
}

TEST_F(HttpServerTest, ItEndsWhenTheLastReplyIsSent) {
  serve();
  const auto idle = connect();
  send(idle, echo("x"));
  receive(idle, "x");
  const auto client = connect();
  send(client, "GET /later HTTP/1.1\r\n\r\n");
  const auto exchange = arrived();
  beginEnd();
  EXPECT_EQ(receive(idle), "") << "idle connections end at once";
  exchange->reply({.status = kFull, .body = "the last"});
  EXPECT_TRUE(receive(client).ends_with("the last"));
  serving_.join();
}

TEST_F(HttpServerTest, TheSecondSignalEndsItAtOnce) {
  serve();
  const auto client = connect();
  send(client, "GET /later HTTP/1.1\r\n\r\n");
  const auto exchange = arrived();
  beginEnd();
  beginEnd();
  serving_.join();
  server_.reset();
  EXPECT_TRUE(exchange->isGone());
  exchange->reply({.body = "after the server"});
}

TEST(ListenAddressTest, AddressesAreReadAndOnlyThoseOfThisMachineAreLocal) {
  EXPECT_EQ(ListenAddress::parse("unix:/a/b")->path, "/a/b");
  EXPECT_TRUE(ListenAddress::parse("unix:/a/b")->isLocal());
  EXPECT_EQ(ListenAddress::parse("localhost:1")->host, "127.0.0.1");
  EXPECT_TRUE(ListenAddress::parse("127.1.2.3:0")->isLocal());
  EXPECT_TRUE(ListenAddress::parse("[::1]:8080")->isLocal());
  EXPECT_FALSE(ListenAddress::parse("0.0.0.0:8080")->isLocal());
  EXPECT_FALSE(ListenAddress::parse("[::]:8080")->isLocal());
  for (const char* const wrong : {"", "unix:", "8080", "127.0.0.1", "127.0.0.1:", "127.0.0.1:65536",
                                  "host:1", "::1:80", "[127.0.0.1]:80", "127.0.0.1:80x"})
    EXPECT_FALSE(ListenAddress::parse(wrong)) << wrong;
}

TEST_F(HttpServerTest, ASocketIsTheUsersAndReplacesOneThatIsLeft) {
  {
    const auto first = listenOn({.path = path_});
    ASSERT_TRUE(first);
    EXPECT_EQ(std::filesystem::status(path_).permissions(), std::filesystem::perms(0600));
    EXPECT_FALSE(listenOn({.path = path_})) << "somebody listens there";
  }
  EXPECT_TRUE(listenOn({.path = path_}));
  EXPECT_FALSE(listenOn({.path = std::string(200, 'x')}));
}

}  // namespace
}  // namespace hearth::llm_server
