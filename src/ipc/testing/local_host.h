// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "ipc/host.h"
#include "ipc/host_link.h"

namespace hearth::ipc {

// A host in this process, with a thread for each connection. Not movable.
class LocalHost {
 public:
  LocalHost(std::shared_ptr<hal::Device> device, HostOptions options);
  ~LocalHost();
  LocalHost(const LocalHost&) = delete;
  LocalHost& operator=(const LocalHost&) = delete;

  // A connection to a new host of the device.
  Result<base::Descriptor> open();
  HostOpener opener() {
    return [this] {
      return open();
    };
  }
  // Ends all connections, as if their hosts had died.
  void kill();
  int starts() const;

 private:
  const std::shared_ptr<hal::Device> device_;
  const HostOptions options_;
  mutable std::mutex mutex_;
  std::vector<std::thread> threads_;
  std::vector<base::Descriptor> ends_;  // duplicates of the hosts' ends
};

}  // namespace hearth::ipc
