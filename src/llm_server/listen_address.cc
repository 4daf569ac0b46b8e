// SPDX-License-Identifier: Apache-2.0
#include "llm_server/listen_address.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <charconv>
#include <string_view>

#include "base/unix_socket.h"

namespace hearth::llm_server {
namespace {

constexpr std::string_view kUnix = "unix:";
constexpr int kBacklog = 1024;

struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t size = 0;

  sockaddr* get() { return reinterpret_cast<sockaddr*>(&storage); }
  template <typename Kind>
  Kind* as() {
    size = sizeof(Kind);
    return reinterpret_cast<Kind*>(&storage);
  }
};

// False for a host that is no number.
bool makeAddress(const ListenAddress& address, SocketAddress* made) {
  if (address.host.contains(':')) {
    auto* const six = made->as<sockaddr_in6>();
    six->sin6_family = AF_INET6;
    six->sin6_port = htons(address.port);
    return ::inet_pton(AF_INET6, address.host.c_str(), &six->sin6_addr) == 1;
  }
  auto* const four = made->as<sockaddr_in>();
  four->sin_family = AF_INET;
  four->sin_port = htons(address.port);
  return ::inet_pton(AF_INET, address.host.c_str(), &four->sin_addr) == 1;
}

Result<ListeningSocket> listenOnPath(const std::string& path) {
  HEARTH_ASSIGN(
      base::Descriptor listening,
      base::listenAt(path,
                     {.type = SOCK_STREAM | SOCK_NONBLOCK, .backlog = kBacklog, .mode = 0600}));
  return ListeningSocket{std::move(listening), std::string(kUnix) + path};
}

}  // namespace

Result<ListenAddress> ListenAddress::parse(const std::string& text) {
  ListenAddress address;
  if (text.starts_with(kUnix)) {
    address.path = text.substr(kUnix.size());
    if (address.path.empty())
      return fail(ErrorCode::kBadData, "The address {} names no path of a socket.", text);
    return address;
  }
  const size_t colon = text.rfind(':');
  std::string_view host = std::string_view(text).substr(0, colon);
  const std::string_view port =
      colon == std::string::npos ? std::string_view() : std::string_view(text).substr(colon + 1);
  const auto [end, problem] = std::from_chars(port.data(), port.data() + port.size(), address.port);
  const bool hasPort = !port.empty() && problem == std::errc() && end == port.data() + port.size();
  const bool isBracketed = host.starts_with('[') && host.ends_with(']');
  if (isBracketed) host = host.substr(1, host.size() - 2);
  address.host = host == "localhost" ? "127.0.0.1" : host;
  SocketAddress made;
  if (!hasPort || isBracketed != address.host.contains(':') || !makeAddress(address, &made))
    return fail(ErrorCode::kBadData,
                "The address {} is not like 127.0.0.1:8080, [::1]:8080 or unix:PATH.", text);
  return address;
}

bool ListenAddress::isLocal() const {
  return !path.empty() || host.starts_with("127.") || host == "::1";
}

Result<ListeningSocket> listenOn(const ListenAddress& address) {
  if (!address.path.empty()) return listenOnPath(address.path);
  SocketAddress made;
  makeAddress(address, &made);
  const bool isSix = made.storage.ss_family == AF_INET6;
  const std::string shown = isSix ? "[" + address.host + "]" : address.host;
  base::Descriptor listening(
      ::socket(made.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!listening.valid()) return std::unexpected(base::errnoError(errno, "Making a socket"));
  // So that a server can be started again at once.
  const int yes = 1;
  static_cast<void>(::setsockopt(listening.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes));
  if (::bind(listening.get(), made.get(), made.size) != 0 ||
      ::listen(listening.get(), kBacklog) != 0 ||
      ::getsockname(listening.get(), made.get(), &made.size) != 0)
    return std::unexpected(
        base::errnoError(errno, base::formatText("Listening on {}:{}", shown, address.port)));
  const uint16_t port =
      ntohs(isSix ? made.as<sockaddr_in6>()->sin6_port : made.as<sockaddr_in>()->sin_port);
  return ListeningSocket{std::move(listening), base::formatText("http://{}:{}", shown, port)};
}

}  // namespace hearth::llm_server
