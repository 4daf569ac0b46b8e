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

// Longer than this no host tells clients that there is no device: there may be one by then.
constexpr std::chrono::seconds kLongestRefusal{5};

// A device, and the manifest that it comes from; an empty one for a built-in device.
struct Served {
  std::shared_ptr<hal::Device> device;  // null where the driver makes none
  hal::DriverManifest manifest;
  std::string whyUnavailable = {};
  uint32_t libraryDevices = 1;
};

Result<Served> load(hal::DriverManifest manifest) {
  auto device = deviceOfManifest(manifest);
  if (device) {
    const uint32_t count = hal::countOfDevices(manifest);
    return Served{*std::move(device), std::move(manifest), "", count};
  }
  if (device.error().code() != ErrorCode::kUnavailableDevice)
    return std::unexpected(std::move(device.error()));
  return Served{nullptr, std::move(manifest), device.error().message()};
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

bool isListeningSocket(int fd) {
  int listens = 0;
  socklen_t size = sizeof listens;
  return ::getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) == 0 && listens != 0;
}

// Whether the descriptor is a socket of messages, listening or not.
Status checkSocket(int fd, bool isListening) {
  int type = 0;
  socklen_t size = sizeof type;
  if (::getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) != 0)
    return std::unexpected(base::errnoError(errno, "Looking at the socket of a host"));
  if (type == SOCK_SEQPACKET && isListeningSocket(fd) == isListening) return {};
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

ipc::HostOptions hostOptions(const ServeOptions& options, const Served& served) {
  ipc::HostOptions given{.isShared = options.isForMany,
                         .idleExit = std::chrono::seconds(options.idleExit),
                         .libraryDevices = served.libraryDevices,
                         .whyUnavailable = served.whyUnavailable};
  if (served.device == nullptr && options.idleExit != 0)
    given.idleExit = std::min<std::chrono::milliseconds>(given.idleExit, kLongestRefusal);
  if (served.manifest.delegate || served.manifest.isSupportLibrary) given.keptModels = kKeptModels;
  if (options.clients != 0) given.clients = options.clients;
  // Programs of one user share a socket that one of them has passed.
  if (options.descriptor >= 0) given.clientsOfUser = given.clients;
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
  ipc::Host host(served.device, hostOptions(options, served));
  host.serve(base::Descriptor(options.descriptor));
  endHost(host);
  return {};
}

Status serveMany(const Served& served, const ServeOptions& options, int stop) {
  base::Descriptor listening;
  if (!options.socket.empty()) {
    HEARTH_ASSIGN(listening, ipc::listenAt(options.socket));
  } else if (options.descriptor >= 0) {
    HEARTH_TRY(checkSocket(options.descriptor, true));
    listening.reset(options.descriptor);
    static_cast<void>(::fcntl(listening.get(), F_SETFD, FD_CLOEXEC));
  } else {
    HEARTH_ASSIGN(listening, passedSocket());
    HEARTH_TRY(checkSocket(listening.get(), true));
  }
  HEARTH_ASSIGN(ServiceManager manager, ServiceManager::fromEnvironment());
  HEARTH_TRY(confineHost(options, served.manifest));
  ipc::Host host(served.device, hostOptions(options, served));
  const Status ended = host.serveAll(listening.get(), stop, manager.heartbeat());
  // In the sandbox the host may not remove its socket, which the next one replaces. Where the host
  // has been idle, the next one may have done so.
  if (!options.socket.empty() && options.idleExit == 0)
    static_cast<void>(::unlink(options.socket.c_str()));
  // Nobody is to wait for a host that ends.
  listening.reset();
  endHost(host);
  return ended;
}

}  // namespace

Outcome<void> serveCommand(const ServeOptions& given) {
  ServeOptions options = given;
  options.isForMany = options.descriptor < 0 || isListeningSocket(options.descriptor);
  if (options.idleExit != 0 && !options.isForMany)
    return usage("--idle-exit is for a host of many clients.");
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
  if (options.isForMany) {
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
  // A program that has started this host hears the reason from it.
  if (made->device == nullptr && options.descriptor < 0)
    return std::unexpected(Failure(Error(ErrorCode::kUnavailableDevice, made->whyUnavailable)));
  const Status ended =
      options.isForMany ? serveMany(*made, options, stop.get()) : serveOne(*made, options);
  if (!ended) return std::unexpected(Failure(ended.error()));
  if (made->device != nullptr) made->device->flush();
  return {};
}

}  // namespace hearth::tools
