// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace hearth::llm_server {

// A request of HTTP/1.1 or 1.0 as HttpRequestReader has read it.
struct HttpRequest {
  std::string method;
  std::string path;                                          // without the query
  std::vector<std::pair<std::string, std::string>> headers;  // names in lower case
  std::string body;
  bool isVersion10 = false;
  bool keepsAlive = true;  // whether the client wants the connection to stay open

  // The value of the first header with this name in lower case; empty where there is none.
  std::string_view header(std::string_view name) const {
    for (const auto& [own, value] : headers)
      if (own == name) return value;
    return {};
  }
};

}  // namespace hearth::llm_server
