// SPDX-License-Identifier: Apache-2.0
#include "tools/service_manager.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>

#include "base/env.h"
#include "base/log.h"
#include "base/unix_socket.h"

namespace hearth::tools {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

// Without a watchdog there is nobody to beat for.
constexpr milliseconds kLongestInterval{3'600'000};

// A path, or with '@' in front a name that is no file.
Result<base::Descriptor> connectTo(const std::string& name) {
  if (name[0] != '/' && name[0] != '@')
    return fail(ErrorCode::kBadData, "NOTIFY_SOCKET is {}, which is not the socket of a manager.",
                name);
  sockaddr_un address{};
  HEARTH_ASSIGN(socklen_t size, base::socketAddress(name, &address));
  if (name[0] == '@') {
    address.sun_path[0] = '\0';
    --size;
  }
  base::Descriptor socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!socket.valid() ||
      ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), size) != 0)
    return std::unexpected(base::errnoError(errno, "Joining the service manager at " + name));
  return socket;
}

}  // namespace

Result<ServiceManager> ServiceManager::fromEnvironment() {
  ServiceManager manager;
  const std::string name = base::envString(base::Env::kNotifySocket);
  if (name.empty()) return manager;
  HEARTH_ASSIGN(manager.socket_, connectTo(name));
  HEARTH_ASSIGN(const int64_t process, base::envInteger(base::Env::kWatchdogPid));
  HEARTH_ASSIGN(const int64_t patience, base::envInteger(base::Env::kWatchdogMicroseconds));
  if (process == 0 || process == ::getpid()) manager.patience_ = microseconds(patience);
  return manager;
}

void ServiceManager::say(std::string_view text) const {
  // A manager that does not read must not hold the host.
  if (::send(socket_.get(), text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
    base::logWarn("The service manager is not told {}: error {}.", text, errno);
}

ipc::Heartbeat ServiceManager::heartbeat() {
  if (!socket_.valid()) return {};
  ipc::Heartbeat heartbeat{.beat =
                               [this] {
                                 if (!isReady_) say("READY=1");
                                 isReady_ = true;
                                 if (patience_ > microseconds(0)) say("WATCHDOG=1");
                               },
                           .interval = kLongestInterval};
  if (patience_ > microseconds(0))
    heartbeat.interval = std::clamp(std::chrono::duration_cast<milliseconds>(patience_ / 2),
                                    milliseconds(1), kLongestInterval);
  return heartbeat;
}

}  // namespace hearth::tools
