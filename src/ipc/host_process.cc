// SPDX-License-Identifier: Apache-2.0
#include "ipc/host_process.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <utility>

#include "base/env.h"
#include "base/format.h"
#include "base/unix_socket.h"

namespace hearth::ipc {
namespace {

constexpr int kDetachMilliseconds = 10'000;
constexpr int kConnectSeconds = 10;
// After which a host that a user's programs share ends when nobody uses it.
constexpr int kIdleSeconds = 60;
// Above the numbers that a host is given.
constexpr int kLeastDescriptor = 10;

// Whether a variable says something to hosts: not to programs, and not of a service manager that
// has started this process.
bool isForHosts(base::Env id) {
  using enum base::Env;
  return !std::ranges::contains(std::array{kDriverHosts, kListenFds, kListenPid, kNotifySocket,
                                           kWatchdogMicroseconds, kWatchdogPid, kRuntimeDir},
                                id);
}

// Whether a host that a user's programs share is the same for each value of a variable: it finds no
// drivers itself, reports no starts, and has no temporary files.
bool isIndifferent(base::Env id) {
  return id == base::Env::kDriverPath || id == base::Env::kReport || id == base::Env::kTemporary;
}

// Hearth's variables with the values that count here, and HOME and the like.
std::vector<std::string> variablesOf(const HostProgram& program, bool isShared) {
  std::vector<std::string> variables = program.variables;
  for (const base::EnvVariable& variable : base::environmentVariables()) {
    if (!isForHosts(variable.id) || (isShared && isIndifferent(variable.id))) continue;
    std::string value = base::envString(variable.id);
    // Two processes would write over each other's trace.
    if (variable.id == base::Env::kTrace && !value.contains("%p")) continue;
    const bool isPath = variable.id == base::Env::kStore || variable.id == base::Env::kTrace;
    if (isShared && isPath && !value.empty()) value = std::filesystem::absolute(value).string();
    if (value != variable.standard)
      variables.push_back(base::formatText("{}={}", variable.name, value));
  }
  return variables;
}

std::vector<char*> pointersTo(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

// Where the standard error of a host goes.
struct ErrorOutput {
  bool isInherited = false;
  int descriptor = -1;  // else to this one; -1: nowhere
};

// What posix_spawn() is to do between fork and exec.
class SpawnActions {
 public:
  SpawnActions() {
    posix_spawn_file_actions_init(&actions_);
    posix_spawnattr_init(&attributes_);
  }
  ~SpawnActions() {
    posix_spawn_file_actions_destroy(&actions_);
    posix_spawnattr_destroy(&attributes_);
  }
  SpawnActions(const SpawnActions&) = delete;
  SpawnActions& operator=(const SpawnActions&) = delete;

  // An error number, or 0.
  int prepare(int socket, ErrorOutput errors) {
    sigset_t none;
    sigset_t all;
    sigemptyset(&none);
    sigfillset(&all);
    // Signals for the client's terminal are not for the host.
    constexpr auto kFlags =
        static_cast<short>(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSID);
    posix_spawnattr_setflags(&attributes_, kFlags);
    posix_spawnattr_setsigmask(&attributes_, &none);
    posix_spawnattr_setsigdefault(&attributes_, &all);
    int error = posix_spawn_file_actions_addopen(&actions_, 0, "/dev/null", O_RDONLY, 0);
    if (error == 0)
      error = posix_spawn_file_actions_addopen(&actions_, 1, "/dev/null", O_WRONLY, 0);
    if (error == 0 && errors.descriptor >= 0)
      error = posix_spawn_file_actions_adddup2(&actions_, errors.descriptor, 2);
    else if (error == 0 && (!errors.isInherited || ::fcntl(2, F_GETFD) < 0))
      error = posix_spawn_file_actions_addopen(&actions_, 2, "/dev/null", O_WRONLY, 0);
    // One that outlives its starter must not keep the file system in use that it was started in.
    if (error == 0 && !errors.isInherited)
      error = posix_spawn_file_actions_addchdir_np(&actions_, "/");
    if (error == 0) error = posix_spawn_file_actions_adddup2(&actions_, socket, kHostDescriptor);
    if (error == 0)
      error = posix_spawn_file_actions_addclosefrom_np(&actions_, kHostDescriptor + 1);
    return error;
  }

  const posix_spawn_file_actions_t* actions() const { return &actions_; }
  const posix_spawnattr_t* attributes() const { return &attributes_; }

 private:
  posix_spawn_file_actions_t actions_;
  posix_spawnattr_t attributes_;
};

base::Descriptor handleOf(pid_t process) {
  return base::Descriptor(static_cast<int>(::syscall(SYS_pidfd_open, process, 0)));
}

// Until a process has ended; -1 milliseconds: for as long as that takes.
void waitForEnd(const base::Descriptor& handle, int milliseconds) {
  pollfd ended{handle.get(), POLLIN, 0};
  while (::poll(&ended, 1, milliseconds) < 0 && errno == EINTR) {
  }
}

// Another descriptor of the same file, above those that a host is given.
base::Descriptor highDescriptor(const base::Descriptor& from) {
  return base::Descriptor(::fcntl(from.get(), F_DUPFD_CLOEXEC, kLeastDescriptor));
}

// Starts a program as a host, with `given` under the number of its socket.
Result<pid_t> start(const HostProgram& program, const std::vector<std::string>& serving,
                    const base::Descriptor& given, ErrorOutput errors, bool isShared) {
  std::vector<std::string> arguments = {program.program, "serve"};
  arguments.insert(arguments.end(), serving.begin(), serving.end());
  arguments.insert(arguments.end(), program.arguments.begin(), program.arguments.end());
  std::vector<std::string> variables = variablesOf(program, isShared);
  SpawnActions actions;
  pid_t process = 0;
  int error = actions.prepare(given.get(), errors);
  if (error == 0)
    error =
        ::posix_spawn(&process, program.program.c_str(), actions.actions(), actions.attributes(),
                      pointersTo(arguments).data(), pointersTo(variables).data());
  if (error == 0) return process;
  return std::unexpected(
      base::errnoError(error, base::formatText("Starting the host {}", program.program)));
}

// The folder of the file that this code was loaded from; empty when it cannot be told.
std::filesystem::path ownFolder() {
  std::error_code error;
  Dl_info info{};
  std::filesystem::path file;
  if (::dladdr(reinterpret_cast<const void*>(&ownFolder), &info) != 0 && info.dli_fname != nullptr)
    file = std::filesystem::canonical(info.dli_fname, error);
  // A program that was found by PATH is known by its bare name.
  if (file.empty() || error) file = std::filesystem::read_symlink("/proc/self/exe", error);
  return error ? std::filesystem::path() : file.parent_path();
}

}  // namespace

Result<HostConnection> spawnHost(const HostProgram& program) {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0)
    return std::unexpected(base::errnoError(errno, "Making a pair of sockets"));
  base::Descriptor own(ends[0]);
  const base::Descriptor low(ends[1]);
  const base::Descriptor given = highDescriptor(low);
  if (!given.valid()) return std::unexpected(base::errnoError(errno, "Duplicating a socket"));
  HEARTH_ASSIGN(const pid_t process,
                start(program, {"--fd", std::to_string(kHostDescriptor), "--detach"}, given,
                      {.isInherited = true}, false));
  waitForDetaching(process);
  // The one that stays is in the group of the one that was started.
  return HostConnection(std::move(own), process);
}

Result<pid_t> startHost(const HostProgram& program, const base::Descriptor& listening,
                        const base::Descriptor& errors) {
  const base::Descriptor given = highDescriptor(listening);
  if (!given.valid()) return std::unexpected(base::errnoError(errno, "Duplicating a socket"));
  const base::Descriptor output = errors.valid() ? highDescriptor(errors) : base::Descriptor();
  return start(program,
               {"--fd", std::to_string(kHostDescriptor), "--detach", "--idle-exit",
                std::to_string(kIdleSeconds)},
               given, {.descriptor = output.get()}, true);
}

void waitForDetaching(pid_t process) {
  const base::Descriptor handle = handleOf(process);
  if (handle.valid()) waitForEnd(handle, kDetachMilliseconds);
  // A host that stays the caller's child is left alone.
  while (::waitpid(process, nullptr, handle.valid() ? WNOHANG : 0) < 0 && errno == EINTR) {
  }
}

std::vector<std::string> sharedVariables(const HostProgram& program) {
  return variablesOf(program, true);
}

base::Descriptor processOfGroup(pid_t process, pid_t group) {
  base::Descriptor handle = handleOf(process);
  // Its number can be no other process's while there is a handle of a process that runs.
  if (handle.valid() && ::getpgid(process) != group) handle.reset();
  return handle;
}

void endProcess(const base::Descriptor& handle) {
  if (::syscall(SYS_pidfd_send_signal, handle.get(), SIGKILL, nullptr, 0) == 0 || errno == ESRCH)
    waitForEnd(handle, -1);
}

Result<base::Descriptor> joinHost(const std::string& path) {
  sockaddr_un address{};
  HEARTH_ASSIGN(const socklen_t size, base::socketAddress(path, &address));
  base::Descriptor socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  if (!socket.valid()) return std::unexpected(base::errnoError(errno, "Making a socket"));
  // The limit is one for a host that accepts nobody; calls may take as long as they need.
  timeval limit{.tv_sec = kConnectSeconds, .tv_usec = 0};
  static_cast<void>(::setsockopt(socket.get(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit));
  int connected;
  do {
    connected = ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), size);
  } while (connected != 0 && errno == EINTR);
  if (connected != 0)
    return std::unexpected(
        base::errnoError(errno, base::formatText("Joining the host at {}", path)));
  limit.tv_sec = 0;
  static_cast<void>(::setsockopt(socket.get(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit));
  return socket;
}

Result<std::string> findHostProgram() {
  const std::filesystem::path folder = ownFolder();
  std::string places;
  for (const char* const place : {".", "../bin", HEARTH_PROGRAMS_FROM_LIBRARIES}) {
    const std::filesystem::path program = (folder / place / "hearth").lexically_normal();
    if (::access(program.c_str(), X_OK) == 0 && std::filesystem::is_regular_file(program))
      return program.string();
    places += (places.empty() ? "" : ", ") + program.string();
  }
  return fail(ErrorCode::kNotFound, "The command hearth is not there; looked for {}.", places);
}

}  // namespace hearth::ipc
