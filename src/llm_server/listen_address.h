// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "base/descriptor.h"
#include "base/result.h"

namespace hearth::llm_server {

// Where a server listens: HOST:PORT with a numeric host, or unix:PATH.
struct ListenAddress {
  std::string path;  // of a Unix socket; empty for a network address
  std::string host;
  uint16_t port = 0;  // 0: one that is free

  // Reads 127.0.0.1:8080, localhost:8080, [::1]:8080 or unix:PATH. Error: kBadData.
  static Result<ListenAddress> parse(const std::string& text);

  // Whether only programs on this machine can connect.
  bool isLocal() const;
};

// A listening socket, and what clients call it: http://127.0.0.1:8080 or unix:PATH. Only the user
// can connect to a Unix socket; one that a dead process left behind is replaced. Errors: kBadState
// where another process listens there, kIo.
struct ListeningSocket {
  base::Descriptor socket;
  std::string name;
};
Result<ListeningSocket> listenOn(const ListenAddress& address);

}  // namespace hearth::llm_server
