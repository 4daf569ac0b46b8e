// SPDX-License-Identifier: Apache-2.0
#include "ipc/call_filter.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <seccomp.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <sstream>
#include <string>
#include <string_view>

namespace hearth::ipc {
namespace {

// Allowed with any arguments, separated by spaces. Names that this architecture or libseccomp does
// not have are passed over.
constexpr const char* kAllowed[] = {
    // Memory; what maps and protects it is below.
    "brk madvise mincore mlock mlock2 mremap msync munlock munmap memfd_create membarrier",
    // Threads; what starts them is below.
    "exit exit_group futex futex_requeue futex_wait futex_waitv futex_wake get_robust_list "
    "getcpu gettid rseq sched_get_priority_max sched_get_priority_min sched_getaffinity "
    "sched_getattr sched_getparam sched_getscheduler sched_setaffinity sched_setattr "
    "sched_setparam sched_setscheduler sched_yield set_robust_list set_tid_address",
    // Sets the registers of a thread's own variables.
    "arch_prctl",
    // The process about itself.
    "capget getegid geteuid getgid getgroups getpgid getpgrp getpid getppid getpriority "
    "getrandom getresgid getresuid getrlimit getrusage getsid getuid sysinfo times uname "
    "umask",
    // Time.
    "clock_getres clock_gettime clock_nanosleep getitimer gettimeofday nanosleep setitimer "
    "time timer_create timer_delete timer_getoverrun timer_gettime timer_settime "
    "timerfd_create timerfd_gettime timerfd_settime",
    // Signals to itself.
    "pause restart_syscall rt_sigaction rt_sigpending rt_sigprocmask rt_sigreturn "
    "rt_sigsuspend rt_sigtimedwait sigaltstack signalfd signalfd4 sigreturn",
    // Descriptors.
    "close close_range dup dup2 dup3 epoll_create epoll_create1 epoll_ctl "
    "epoll_pwait epoll_pwait2 epoll_wait eventfd eventfd2 pipe pipe2 poll ppoll pselect6 "
    "select",
    // Files; Landlock says which.
    "access copy_file_range creat faccessat faccessat2 fadvise64 fallocate fdatasync flock "
    "fstat fstatfs fsync ftruncate getcwd getdents getdents64 link linkat lseek lstat mkdir "
    "mkdirat newfstatat open openat openat2 pread64 preadv preadv2 pwrite64 pwritev pwritev2 "
    "read readahead readlink readlinkat readv rename renameat renameat2 rmdir sendfile stat "
    "statfs statx sync_file_range truncate unlink unlinkat write writev",
    // Sockets that are connected.
    "getpeername getsockname getsockopt recvfrom recvmmsg recvmsg sendmmsg sendmsg shutdown",
};

// The values of one argument that are allowed.
struct AllowedValues {
  const char* call;
  unsigned argument;
  std::initializer_list<uint64_t> values;
};

constexpr AllowedValues kAllowedValues[] = {
    {"fcntl",
     1,
     {F_DUPFD, F_DUPFD_CLOEXEC, F_GETFD, F_SETFD, F_GETFL, F_SETFL, F_GETLK, F_SETLK, F_SETLKW,
      F_OFD_GETLK, F_OFD_SETLK, F_OFD_SETLKW, F_ADD_SEALS, F_GET_SEALS, F_GETPIPE_SZ}},
    {"prctl",
     0,
     {PR_SET_NAME, PR_GET_NAME, PR_SET_TIMERSLACK, PR_GET_TIMERSLACK, PR_SET_VMA,
      PR_GET_NO_NEW_PRIVS, PR_GET_DUMPABLE}},
    {"setpriority", 0, {PRIO_PROCESS}},
    // Nothing that a terminal could be made to read as input.
    {"ioctl", 1, {FIONBIO, FIOCLEX, FIONCLEX, FIONREAD, TCGETS, TIOCGWINSZ}},
    // Only through a descriptor.
    {"utimensat", 1, {0}},
    // Only to the peer of the socket.
    {"sendto", 4, {0}},
};

class Filter {
 public:
  Filter() : context_(seccomp_init(SCMP_ACT_ERRNO(EPERM)), &seccomp_release) {
    if (context_ == nullptr) {
      error_ = ENOMEM;
      return;
    }
    set(SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS);
    set(SCMP_FLTATR_CTL_TSYNC, 1);
    set(SCMP_FLTATR_API_SYSRAWRC, 1);
    // A tree in place of a list: a call is found in eight comparisons.
    set(SCMP_FLTATR_CTL_OPTIMIZE, 2);
  }

  void allow(const char* call, std::initializer_list<scmp_arg_cmp> conditions = {}) {
    add(SCMP_ACT_ALLOW, call, conditions);
  }
  void refuse(const char* call, int error) { add(SCMP_ACT_ERRNO(error), call, {}); }

  // Returns 0 or an error number.
  int load() {
    if (error_ == 0) error_ = -seccomp_load(context_.get());
    return error_;
  }

 private:
  void set(scmp_filter_attr attribute, uint32_t value) {
    if (error_ == 0) error_ = -seccomp_attr_set(context_.get(), attribute, value);
  }
  void add(uint32_t action, const char* call, std::initializer_list<scmp_arg_cmp> conditions) {
    if (error_ != 0) return;
    const int number = seccomp_syscall_resolve_name(call);
    // Negative numbers stand for calls of other architectures.
    if (number < 0) return;
    error_ = -seccomp_rule_add_array(context_.get(), action, number,
                                     static_cast<unsigned>(conditions.size()), conditions.begin());
  }

  std::unique_ptr<void, decltype(&seccomp_release)> context_;
  int error_ = 0;
};

void allowThreads(Filter& filter) {
  // The flags of clone3 are in memory, which a filter does not see.
  filter.refuse("clone3", ENOSYS);
  constexpr uint64_t kNameSpaces = CLONE_NEWCGROUP | CLONE_NEWIPC | CLONE_NEWNET | CLONE_NEWNS |
                                   CLONE_NEWPID | CLONE_NEWUSER | CLONE_NEWUTS;
#ifdef __s390__
  constexpr unsigned kFlags = 1;
#else
  constexpr unsigned kFlags = 0;
#endif
  filter.allow("clone", {SCMP_CMP64(kFlags, SCMP_CMP_MASKED_EQ, CLONE_THREAD | kNameSpaces,
                                    static_cast<uint64_t>(CLONE_THREAD))});
  const auto self = static_cast<uint64_t>(::getpid());
  for (const char* const call : {"kill", "tgkill", "rt_tgsigqueueinfo"})
    filter.allow(call, {SCMP_A0_64(SCMP_CMP_EQ, self)});
  // To read limits, and only one's own.
  for (const uint64_t process : {uint64_t{0}, self})
    filter.allow("prlimit64",
                 {SCMP_A0_64(SCMP_CMP_EQ, process), SCMP_A2_64(SCMP_CMP_EQ, uint64_t{0})});
}

void allowMemory(Filter& filter, bool loadsCode) {
  for (const char* const call : {"mmap", "mmap2", "mprotect"}) {
    if (loadsCode) {
      filter.allow(call);
    } else {
      filter.allow(call,
                   {SCMP_A2_64(SCMP_CMP_MASKED_EQ, static_cast<uint64_t>(PROT_EXEC), uint64_t{0})});
    }
  }
}

void allowSockets(Filter& filter, bool acceptsConnections) {
  if (acceptsConnections) {
    filter.allow("accept");
    filter.allow("accept4");
  }
  for (const int option : {SO_RCVBUF, SO_SNDBUF, SO_RCVTIMEO, SO_SNDTIMEO, SO_PASSCRED})
    filter.allow("setsockopt", {SCMP_A1_64(SCMP_CMP_EQ, static_cast<uint64_t>(SOL_SOCKET)),
                                SCMP_A2_64(SCMP_CMP_EQ, static_cast<uint64_t>(option))});
  // Event loops try it on every connection, and end those for which it fails with EPERM.
  filter.allow("setsockopt", {SCMP_A1_64(SCMP_CMP_EQ, static_cast<uint64_t>(IPPROTO_TCP)),
                              SCMP_A2_64(SCMP_CMP_EQ, static_cast<uint64_t>(TCP_NODELAY))});
}

}  // namespace

Status filterCalls(const CallRules& rules) {
  Filter filter;
  for (const char* const calls : kAllowed) {
    std::istringstream words(calls);
    for (std::string call; words >> call;) filter.allow(call.c_str());
  }
  for (const AllowedValues& allowed : kAllowedValues) {
    if (rules.controlsDevices && std::string_view(allowed.call) == "ioctl") continue;
    for (const uint64_t value : allowed.values)
      filter.allow(allowed.call, {SCMP_CMP64(allowed.argument, SCMP_CMP_EQ, value)});
  }
  if (rules.controlsDevices) filter.allow("ioctl");
  allowThreads(filter);
  allowMemory(filter, rules.loadsCode);
  allowSockets(filter, rules.acceptsConnections);
  const int error = filter.load();
  if (error == 0) return {};
  // The last one comes from a filter around this process.
  if (error == ENOSYS || error == EINVAL || error == EOPNOTSUPP || error == EPERM)
    return fail(ErrorCode::kUnsupported,
                "The kernel filters no system calls: a process may make all that its user may.");
  return std::unexpected(base::errnoError(error, "Filtering the system calls of this process"));
}

}  // namespace hearth::ipc
