// SPDX-License-Identifier: Apache-2.0
#include "llm_server/http_request_reader.h"

#include <gtest/gtest.h>

#include <string>

namespace hearth::llm_server {
namespace {

using State = HttpRequestReader::State;

constexpr size_t kMaxBodyBytes = 100;

// The status with which a request is refused; 0 where it is not.
int statusOf(const std::string& text) {
  HttpRequestReader reader(kMaxBodyBytes);
  reader.take(text);
  return reader.state() == State::kFailed ? reader.failure().status : 0;
}

TEST(HttpRequestReaderTest, ARequestIsReadInPiecesOfAnySize) {
  const std::string text =
      "POST /v1/chat?a=b HTTP/1.1\r\nHost: here\r\nX-Two:  two words \r\nX-Blank: \t "
      "\r\nContent-Length: 4\r\n\r\n"
      "bodyGET";
  for (const size_t size : {size_t{1}, size_t{3}, text.size()}) {
    HttpRequestReader reader(kMaxBodyBytes);
    size_t taken = 0;
    while (taken < text.size() && reader.state() != State::kDone)
      taken += reader.take(std::string_view(text).substr(taken, size));
    ASSERT_EQ(reader.state(), State::kDone);
    EXPECT_EQ(taken, text.size() - 3) << "what follows is of the next request";
    const HttpRequest& request = reader.request();
    EXPECT_EQ(request.method, "POST");
    EXPECT_EQ(request.path, "/v1/chat");
    EXPECT_EQ(request.header("x-two"), "two words");
    EXPECT_EQ(request.header("x-blank"), "");
    EXPECT_EQ(request.header("missing"), "");
    EXPECT_EQ(request.body, "body");
    EXPECT_TRUE(request.keepsAlive);
  }
}

TEST(HttpRequestReaderTest, ABodyMayComeInChunks) {
  HttpRequestReader reader(kMaxBodyBytes);
  reader.take("POST / HTTP/1.1\r\nTransfer-Encoding: Chunked\r\nExpect: 100-continue\r\n\r\n");
  EXPECT_TRUE(reader.takeContinue());
  EXPECT_FALSE(reader.takeContinue());
  reader.take("4;name=value\r\nbody\r\nC\r\n and more of\r\n0\r\nTrailer: x\r\n\r\n");
  ASSERT_EQ(reader.state(), State::kDone);
  EXPECT_EQ(reader.request().body, "body and more of");
}

TEST(HttpRequestReaderTest, TheClientSaysWhetherTheConnectionStays) {
  const auto keepsAlive = [](const std::string& text) {
    HttpRequestReader reader(kMaxBodyBytes);
    reader.take(text);
    EXPECT_EQ(reader.state(), State::kDone);
    return reader.request().keepsAlive;
  };
  EXPECT_TRUE(keepsAlive("GET / HTTP/1.1\r\n\r\n"));
  EXPECT_FALSE(keepsAlive("GET / HTTP/1.1\r\nConnection: x, Close\r\n\r\n"));
  EXPECT_FALSE(keepsAlive("GET / HTTP/1.0\r\n\r\n"));
  EXPECT_TRUE(keepsAlive("GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n"));
}

TEST(HttpRequestReaderTest, WhatIsNoRequestIsRefused) {
  EXPECT_EQ(statusOf("hello\r\n\r\n"), 400);
  EXPECT_EQ(statusOf("GET / HTTP/2.0\r\n\r\n"), 505);
  EXPECT_EQ(statusOf("GET nowhere HTTP/1.1\r\n\r\n"), 400);
  EXPECT_EQ(statusOf("GET / HTTP/1.1\r\nno colon\r\n\r\n"), 400);
  EXPECT_EQ(statusOf("GET / HTTP/1.1\r\nA: b\r\n folded\r\n\r\n"), 400);
  EXPECT_EQ(statusOf("GET / HTTP/1.1\r\nA : b\r\n\r\n"), 400);
  EXPECT_EQ(statusOf("GET / HTTP/1.1\nA: b\r\n\r\n"), 400);
  EXPECT_EQ(statusOf("POST / HTTP/1.1\r\nTransfer-Encoding: gzip\r\n\r\n"), 501);
}

// Behind a proxy that reads them in another way, one request could hide in another.
TEST(HttpRequestReaderTest, WhatHasTwoMeaningsIsRefused) {
  EXPECT_EQ(statusOf("POST / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n"), 400);
  EXPECT_EQ(statusOf("POST / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n"), 400);
  EXPECT_EQ(statusOf("POST / HTTP/1.1\r\nContent-Length: +1\r\n\r\n"), 400);
  EXPECT_EQ(statusOf("POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n"), 400);
  EXPECT_EQ(statusOf("POST / HTTP/1.1\r\nContent-Length: 99999999999999999999\r\n\r\n"), 400);
  EXPECT_EQ(statusOf("POST / HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n"),
            400);
  const std::string chunked = "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n";
  EXPECT_EQ(statusOf(chunked + "x\r\n"), 400);
  EXPECT_EQ(statusOf(chunked + "1\n"), 400);
  EXPECT_EQ(statusOf(chunked + "1\r\nab\r\n"), 400);
  EXPECT_EQ(statusOf(chunked + "FFFFFFFFFFFFFFFFF\r\n"), 400);
}

TEST(HttpRequestReaderTest, WhatIsTooLongIsRefusedBeforeItIsRead) {
  EXPECT_EQ(statusOf("POST / HTTP/1.1\r\nContent-Length: 100\r\n\r\n"), 0);
  EXPECT_EQ(statusOf("POST / HTTP/1.1\r\nContent-Length: 101\r\n\r\n"), 413);
  const std::string chunked = "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n";
  EXPECT_EQ(statusOf(chunked + "64\r\n"), 0);
  EXPECT_EQ(statusOf(chunked + "1\r\na\r\n64\r\n"), 413);
  EXPECT_EQ(statusOf(chunked + std::string(2000, '1')), 400);
  EXPECT_EQ(statusOf("GET / HTTP/1.1\r\nA: " + std::string(40000, 'a')), 431);
  std::string many = "GET / HTTP/1.1\r\n";
  for (int i = 0; i < 101; ++i) many += "A: b\r\n";
  EXPECT_EQ(statusOf(many + "\r\n"), 431);
}

}  // namespace
}  // namespace hearth::llm_server
