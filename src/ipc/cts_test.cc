// SPDX-License-Identifier: Apache-2.0
// The drivers behind a host: in a thread of this process, for one client and for clients that do
// not trust each other, and in a process that is spawned.
#include <cstdlib>
#include <filesystem>

#include "drivers/cpu/cpu_device.h"
#include "drivers/reference/reference_device.h"
#include "hal/cts/backend.h"
#include "ipc/host_process.h"
#include "ipc/hosted_device.h"
#include "ipc/testing/local_host.h"

namespace hearth::ipc {
namespace {

// Hosts live as long as the process, as devices do.
Result<std::shared_ptr<hal::Device>> behindHost(std::shared_ptr<hal::Device> device,
                                                bool isShared) {
  const std::string name = device->name();
  auto* const host = new LocalHost(std::move(device), {.isShared = isShared});
  return HostedDevice::create(name, host->opener());
}

// What the host remembers of compilation caches lies in a folder that outlives the tests.
Result<std::shared_ptr<hal::Device>> inProcess(const std::string& name) {
  const auto state = std::filesystem::temp_directory_path() / "hearth-ipc-cts-state";
  HostProgram program{HEARTH_TOOL, {"--device", name}, {"XDG_STATE_HOME=" + state.string()}};
  if (const char* const options = std::getenv("ASAN_OPTIONS"))
    program.variables.push_back(std::string("ASAN_OPTIONS=") + options);
  return HostedDevice::create(name, [program] { return spawnHost(program); });
}

bool registerHosted(const std::string& name, std::shared_ptr<hal::Device> (*make)()) {
  for (const bool isShared : {false, true})
    hal::cts::registerBackend({name + (isShared ? "_shared" : "_hosted"), [=] {
                                 return behindHost(make(), isShared);
                               }});
  hal::cts::registerBackend({name + "_spawned", [=] {
                               return inProcess(make()->name());
                             }});
  return true;
}

const bool isCpuRegistered = registerHosted("cpu", [] { return cpu::createCpuDevice(); });
const bool isReferenceRegistered =
    registerHosted("reference", [] { return drivers::reference::createDevice(); });

}  // namespace
}  // namespace hearth::ipc
