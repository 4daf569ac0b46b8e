// SPDX-License-Identifier: Apache-2.0
// `hearth serve`.
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <utility>

#include "base/descriptor.h"
#include "base/env.h"
#include "drivers/cpu/cpu_device.h"
#include "drivers/reference/reference_device.h"
#include "hal/driver_library.h"
#include "ipc/host.h"
#include "tools/commands.h"
#include "tools/host_sandbox.h"
#include "tools/manifest_device.h"
#include "tools/service_manager.h"

namespace hearth::tools {
namespace {

// Computations that take longer are given up when a host ends.
constexpr std::chrono::seconds kPatience{5};
// The first descriptor that a service manager passes.
constexpr int kFirstPassed = 3;

// A device, and the manifest that it comes from; an empty one for a built-in device.
struct Served {
  std::shared_ptr<hal::Device> device;
  hal::DriverManifest manifest;
};

Result<Served> load(hal::DriverManifest manifest) {
  HEARTH_ASSIGN(std::shared_ptr<hal::Device> device, deviceOfManifest(manifest));
  return Served{std::move(device), std::move(manifest)};
}

Result<Served> installedDevice(const std::string& name) {
  std::vector<std::string> problems;
  for (const std::string& path :
       hal::findDriverManifests(base::envString(base::Env::kDriverPath), &problems))
    if (const auto manifest = hal::readDriverManifest(path);
        manifest && (!manifest->library.empty() || manifest->delegate))
      if (auto own = hal::manifestOfDevice(*manifest, name)) return load(*std::move(own));
  return fail(ErrorCode::kNotFound, "There is no driver of a device {}.", name);
}

Result<Served> makeDevice(const ServeOptions& options) {
  if (!options.manifest.empty()) {
    HEARTH_ASSIGN(hal::DriverManifest manifest, hal::readDriverManifest(options.manifest));
    if (options.device.empty()) return load(std::move(manifest));
    if (auto own = hal::manifestOfDevice(manifest, options.device)) return load(*std::move(own));
    return fail(ErrorCode::kBadData, "The manifest {} is of the device {}, not {}.",
                options.manifest, manifest.name, options.device);
  }
  for (std::shared_ptr<hal::Device> device :
       {cpu::createCpuDevice(), drivers::reference::createDevice()})
    if (device->name() == options.device) return Served{std::move(device), {}};
  return installedDevice(options.device);
}

// The socket that a service manager has made for this process.
Result<base::Descriptor> passedSocket() {
  HEARTH_ASSIGN(const int64_t process, base::envInteger(base::Env::kListenPid));
  HEARTH_ASSIGN(const int64_t count, base::envInteger(base::Env::kListenFds));
  if (process != ::getpid() || count == 0)
    return fail(ErrorCode::kNotFound,
                "Neither --socket nor --fd is given, and no service manager passes a socket.");
  if (count != 1)
    return fail(ErrorCode::kBadData, "The service manager passes {} sockets, not 1.", count);
  static_cast<void>(::fcntl(kFirstPassed, F_SETFD, FD_CLOEXEC));
  return base::Descriptor(kFirstPassed);
}

// Whether the descriptor is a socket of messages, listening or not.
Status checkSocket(int fd, bool isListening) {
  int type = 0;
  int listens = 0;
  socklen_t size = sizeof type;
  if (::getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) != 0)
    return std::unexpected(base::errnoError(errno, "Looking at the socket of a host"));
  size = sizeof listens;
  static_cast<void>(::getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size));
  if (type == SOCK_SEQPACKET && (listens != 0) == isListening) return {};
  return fail(ErrorCode::kBadData, "Descriptor {} is not a {} socket of the type SOCK_SEQPACKET.",
              fd, isListening ? "listening" : "connected");
}

// Descriptors of many clients; the standard limit is for programs that use select().
void allowDescriptors() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  static_cast<void>(::setrlimit(RLIMIT_NOFILE, &limit));
}

// Leaves without destroying what a computation that does not end is using.
void endHost(ipc::Host& host) {
  if (!host.end(kPatience)) ::_exit(kExitFailure);
}

// Of vendors' devices: NPUs have little memory, but a compilation takes seconds.
constexpr size_t kKeptModels = 4;

ipc::HostOptions hostOptions(const ServeOptions& options, const hal::DriverManifest& manifest) {
  ipc::HostOptions given{.isShared = options.descriptor < 0};
  if (manifest.delegate || manifest.isSupportLibrary) given.keptModels = kKeptModels;
  if (options.clients != 0) given.clients = options.clients;
  const auto physical = static_cast<uint64_t>(std::max(0L, ::sysconf(_SC_PHYS_PAGES))) *
                        static_cast<uint64_t>(std::max(0L, ::sysconf(_SC_PAGESIZE)));
  given.bytes =
      options.clientMemory != 0 ? options.clientMemory : std::max(given.bytes, physical / 2);
  return given;
}

Status serveOne(const Served& served, const ServeOptions& options) {
  HEARTH_TRY(checkSocket(options.descriptor, false));
  static_cast<void>(::fcntl(options.descriptor, F_SETFD, FD_CLOEXEC));
  HEARTH_TRY(confineHost(options, served.manifest));
  ipc::Host host(served.device, hostOptions(options, served.manifest));
  host.serve(base::Descriptor(options.descriptor));
  endHost(host);
  return {};
}

Status serveMany(const Served& served, const ServeOptions& options, int stop) {
  base::Descriptor listening;
  if (options.socket.empty()) {
    HEARTH_ASSIGN(listening, passedSocket());
    HEARTH_TRY(checkSocket(listening.get(), true));
  } else {
    HEARTH_ASSIGN(listening, ipc::listenAt(options.socket));
  }
  HEARTH_ASSIGN(ServiceManager manager, ServiceManager::fromEnvironment());
  HEARTH_TRY(confineHost(options, served.manifest));
  ipc::Host host(served.device, hostOptions(options, served.manifest));
  const Status ended = host.serveAll(listening.get(), stop, manager.heartbeat());
  // In the sandbox the host may not remove its socket, which the next one replaces.
  if (!options.socket.empty()) static_cast<void>(::unlink(options.socket.c_str()));
  endHost(host);
  return ended;
}

}  // namespace

Outcome<void> serveCommand(const ServeOptions& options) {
  if (options.device.empty() && options.manifest.empty())
    return usage("Neither --device nor --manifest says which device is to be served.");
  if (options.memory != 0 && options.sandbox == "off")
    return usage("--memory is a limit of the sandbox, which is off.");
  // Before there is a thread.
  if (options.isDetached) {
    const pid_t child = ::fork();
    if (child < 0) return std::unexpected(Failure(base::errnoError(errno, "Detaching a host")));
    if (child > 0) ::_exit(0);
  }
  sigset_t ending;
  sigemptyset(&ending);
  sigaddset(&ending, SIGTERM);
  sigaddset(&ending, SIGINT);
  base::Descriptor stop;
  if (options.descriptor < 0) {
    // Blocked in the threads that are yet to come, too.
    ::pthread_sigmask(SIG_BLOCK, &ending, nullptr);
    stop.reset(::signalfd(-1, &ending, SFD_CLOEXEC));
    if (!stop.valid())
      return std::unexpected(Failure(base::errnoError(errno, "Waiting for signals")));
  }
  allowDescriptors();
  ipc::shareMallocArenas();
  const auto made = makeDevice(options);
  if (!made) return std::unexpected(Failure(made.error()));
  const Status ended =
      options.descriptor >= 0 ? serveOne(*made, options) : serveMany(*made, options, stop.get());
  if (!ended) return std::unexpected(Failure(ended.error()));
  made->device->flush();
  return {};
}

}  // namespace hearth::tools
