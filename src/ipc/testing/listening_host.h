// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <thread>

#include "base/descriptor.h"
#include "base/result.h"
#include "hal/device.h"
#include "ipc/host.h"
#include "ipc/host_link.h"

namespace hearth::ipc {

// A host in a thread of this process that serves all who connect to its socket, as clients that do
// not trust each other. Not movable.
class ListeningHost {
 public:
  ListeningHost(std::shared_ptr<hal::Device> device, HostOptions options, Heartbeat heartbeat = {});
  // Ends it, and expects that it listened until then.
  ~ListeningHost();
  ListeningHost(const ListeningHost&) = delete;
  ListeningHost& operator=(const ListeningHost&) = delete;

  const std::string& path() const { return path_; }
  HostOpener opener() const;

 private:
  std::string path_;
  base::Descriptor listening_;
  base::Descriptor stop_;
  Status served_;
  std::thread thread_;
};

}  // namespace hearth::ipc
