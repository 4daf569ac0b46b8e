// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <string_view>

#include "base/descriptor.h"
#include "base/result.h"
#include "ipc/host.h"

namespace hearth::tools {

// The service manager that started this process and wants to know how it is, by the protocol of
// systemd's sd_notify(3). Where there is none, nothing is said to anybody.
class ServiceManager {
 public:
  // The one that NOTIFY_SOCKET names. Call it before the process may make no more sockets. Errors:
  // kBadData for variables with wrong values; kIo when nobody listens there.
  static Result<ServiceManager> fromEnvironment();

  // Tells that the service is ready with its first beat, and that it is alive with each, twice in
  // the time after which the manager ends it. Refers to this object.
  ipc::Heartbeat heartbeat();

 private:
  void say(std::string_view text) const;

  base::Descriptor socket_;  // none where there is no manager
  // After which it ends the service; 0: never.
  std::chrono::microseconds patience_{0};
  bool isReady_ = false;
};

}  // namespace hearth::tools
