// SPDX-License-Identifier: Apache-2.0
#include "ipc/call_filter.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/helper_thread.h"
#include "base/processor.h"
#include "ipc/sandbox_test_util.h"

namespace hearth::ipc {
namespace {

class CallFilterTest : public testing::Test {
 protected:
  void SetUp() override {
    HEARTH_SKIP_SANDBOX();
    if (!hasCallFilters()) GTEST_SKIP() << "The kernel filters no system calls.";
  }

  // Filters the calls of a child before it calls `run`.
  static void inside(const CallRules& rules, const std::function<void(Findings&)>& run) {
    expectWellInChild([&] {
      const Status filtered = filterCalls(rules);
      if (!filtered) return filtered.error().toString();
      Findings findings;
      run(findings);
      return findings.text();
    });
  }
};

int64_t map(int protection) {
  void* const address = ::mmap(nullptr, 4096, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return address == MAP_FAILED ? -1 : 0;
}

TEST_F(CallFilterTest, RefusesWhatAHostDoesNotNeed) {
  const pid_t parent = ::getpid();
  inside({}, [&](Findings& findings) {
    const auto refused = [&](const char* what, int64_t result) {
      findings.fails(what, result, EPERM);
    };
    // The network, and other processes' sockets.
    for (const int family : {AF_UNIX, AF_INET, AF_INET6, AF_NETLINK, AF_PACKET})
      refused("socket", ::socket(family, SOCK_STREAM, 0));
    std::array<int, 2> ends{};
    refused("socketpair", ::socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()));
    refused("connect", ::connect(0, nullptr, 0));
    refused("bind", ::bind(0, nullptr, 0));
    refused("listen", ::listen(0, 1));
    refused("accept", ::accept(0, nullptr, nullptr));
    // Other programs and processes.
    refused("execve", ::execl("/bin/false", "false", nullptr));
    refused("execveat", ::syscall(SYS_execveat, AT_FDCWD, "/bin/false", nullptr, nullptr, 0));
    refused("fork", ::fork());
    refused("a process in new name spaces",
            ::syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, nullptr, nullptr, nullptr, nullptr));
    findings.fails("clone3", ::syscall(SYS_clone3, nullptr, 0), ENOSYS);
    refused("ptrace", ::ptrace(PTRACE_ATTACH, parent, nullptr, nullptr));
    refused("kill", ::kill(parent, 0));
    refused("killing all", ::kill(-1, 0));
    refused("tgkill", ::syscall(SYS_tgkill, parent, parent, 0));
    refused("tkill", ::syscall(SYS_tkill, parent, 0));
    refused("pidfd_open", ::syscall(SYS_pidfd_open, parent, 0));
    refused("pidfd_getfd", ::syscall(SYS_pidfd_getfd, 0, 0, 0));
    refused("pidfd_send_signal", ::syscall(SYS_pidfd_send_signal, 0, 0, nullptr, 0));
    iovec vector{};
    refused("process_vm_readv", ::process_vm_readv(parent, &vector, 1, &vector, 1, 0));
    refused("process_vm_writev", ::process_vm_writev(parent, &vector, 1, &vector, 1, 0));
    refused("kcmp", ::syscall(SYS_kcmp, parent, parent, 0, 0, 0));
    refused("F_SETOWN", ::fcntl(0, F_SETOWN, parent));
    // The system.
    refused("mount", ::mount("none", "/", "tmpfs", 0, nullptr));
    refused("umount", ::umount2("/", 0));
    refused("fsopen", ::syscall(SYS_fsopen, "tmpfs", 0));
    refused("open_tree", ::syscall(SYS_open_tree, AT_FDCWD, "/", 0));
    refused("unshare", ::unshare(CLONE_NEWUSER));
    refused("setns", ::setns(0, 0));
    refused("chroot", ::chroot("/"));
    refused("pivot_root", ::syscall(SYS_pivot_root, "/", "/"));
    refused("chdir", ::chdir("/"));
    refused("sethostname", ::sethostname("x", 1));
    refused("reboot", ::syscall(SYS_reboot, 0, 0, 0, nullptr));
    refused("bpf", ::syscall(SYS_bpf, 0, nullptr, 0));
    refused("perf_event_open", ::syscall(SYS_perf_event_open, nullptr, 0, 0, 0, 0));
    refused("keyctl", ::syscall(SYS_keyctl, 0, 0, 0, 0, 0));
    refused("io_uring_setup", ::syscall(SYS_io_uring_setup, 1, nullptr));
    refused("userfaultfd", ::syscall(SYS_userfaultfd, 0));
    refused("memfd_secret", ::syscall(SYS_memfd_secret, 0));
    refused("init_module", ::syscall(SYS_init_module, nullptr, 0, ""));
    refused("personality", ::syscall(SYS_personality, 0xffffffff));
    refused("clock_settime", ::syscall(SYS_clock_settime, 0, nullptr));
    // Users, and limits.
    refused("setuid", ::setuid(::getuid()));
    refused("setgroups", ::syscall(SYS_setgroups, 0, nullptr));
    refused("capset", ::syscall(SYS_capset, nullptr, nullptr));
    const rlimit limit{100, 100};
    refused("setrlimit", ::setrlimit(RLIMIT_NOFILE, &limit));
    refused("another's limits", ::prlimit(parent, RLIMIT_NOFILE, nullptr, nullptr));
    refused("another's priority", ::setpriority(PRIO_USER, 0, 0));
    refused("PR_SET_DUMPABLE", ::prctl(PR_SET_DUMPABLE, 1, 0, 0, 0));
    refused("PR_SET_SECCOMP", ::prctl(PR_SET_SECCOMP, 2, nullptr, 0, 0));
    refused("seccomp", ::syscall(SYS_seccomp, 0, 0, nullptr));
    // Files.
    refused("chmod", ::chmod("/tmp", 01777));
    refused("fchmod", ::fchmod(0, 0600));
    refused("chown", ::chown("/tmp", 0, 0));
    refused("fchown", ::fchown(0, 0, 0));
    refused("setxattr", ::syscall(SYS_setxattr, "/tmp", "user.x", "", 0, 0));
    refused("another's times", ::utimensat(AT_FDCWD, "/tmp", nullptr, 0));
    refused("mknod", ::mknod("/tmp/hearth-node", S_IFCHR | 0600, 0));
    refused("symlink", ::symlink("/", "/tmp/hearth-link"));
    refused("open_by_handle_at", ::syscall(SYS_open_by_handle_at, 0, nullptr, 0));
    refused("fanotify_init", ::syscall(SYS_fanotify_init, 0, 0));
    refused("TIOCSTI", ::ioctl(0, TIOCSTI, ""));
    // Code.
    refused("mapping code", map(PROT_READ | PROT_EXEC));
    alignas(4096) static std::array<char, 4096> page;
    refused("making memory code", ::mprotect(page.data(), page.size(), PROT_READ | PROT_EXEC));
  });
}

TEST_F(CallFilterTest, AllowsWhatHostsNeed) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
  const base::Descriptor mine(ends[0]);
  const base::Descriptor theirs(ends[1]);
  inside({}, [&](Findings& findings) {
    // Threads, with all that ours do when they start.
    std::mutex mutex;
    std::condition_variable changed;
    int ready = 0;
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.push_back(base::startHelperThread("hearth-test", [&] {
        base::leaveProcessor(base::currentProcessor());
        const std::lock_guard lock(mutex);
        ++ready;
        changed.notify_one();
      }));
      findings.holds("a thread starts", threads.back().joinable());
    }
    threads.push_back(base::startIdleThread("hearth-idle", [&] {
      const std::lock_guard lock(mutex);
      ++ready;
      changed.notify_one();
    }));
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return ready == 5; });
    lock.unlock();
    for (std::thread& thread : threads) thread.join();
    findings.holds("processors are known", std::thread::hardware_concurrency() > 0);
    std::this_thread::sleep_for(std::chrono::microseconds(1));
    // Memory.
    findings.works("mapping", map(PROT_READ | PROT_WRITE));
    const int memory = ::memfd_create("filter-test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    findings.works("memfd_create", memory);
    findings.works("ftruncate", ::ftruncate(memory, 8192));
    findings.works("seals", ::fcntl(memory, F_ADD_SEALS, F_SEAL_SHRINK));
    findings.works("reading seals", ::fcntl(memory, F_GET_SEALS));
    void* const shared = ::mmap(nullptr, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
    findings.holds("memory is mapped", shared != MAP_FAILED);
    findings.works("madvise", ::madvise(shared, 8192, MADV_WILLNEED));
    findings.works("mprotect", ::mprotect(shared, 4096, PROT_READ));
    findings.works("munmap", ::munmap(shared, 8192));
    // Messages with descriptors.
    std::array<char, 1> byte{'x'};
    iovec part{byte.data(), 1};
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
    msghdr message{.msg_iov = &part,
                   .msg_iovlen = 1,
                   .msg_control = control.data(),
                   .msg_controllen = control.size()};
    cmsghdr* const header = CMSG_FIRSTHDR(&message);
    *header = {
        .cmsg_len = CMSG_LEN(sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS};
    std::memcpy(CMSG_DATA(header), &memory, sizeof memory);
    findings.works("sendmsg", ::sendmsg(mine.get(), &message, MSG_NOSIGNAL));
    findings.works("recvmsg", ::recvmsg(theirs.get(), &message, MSG_CMSG_CLOEXEC));
    findings.works("send", ::send(mine.get(), "y", 1, MSG_NOSIGNAL));
    findings.works("recv", ::recv(theirs.get(), byte.data(), 1, 0));
    ucred peer{};
    socklen_t size = sizeof peer;
    findings.works("peer credentials",
                   ::getsockopt(mine.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size));
    const int on = 1;
    findings.fails("TCP_NODELAY",
                   ::setsockopt(mine.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on), EOPNOTSUPP);
    // Event loops.
    const int loop = ::epoll_create1(EPOLL_CLOEXEC);
    findings.works("epoll_create1", loop);
    const int event = ::eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK);
    findings.works("eventfd", event);
    epoll_event interest{.events = EPOLLIN};
    findings.works("epoll_ctl", ::epoll_ctl(loop, EPOLL_CTL_ADD, event, &interest));
    findings.works("epoll_wait", ::epoll_wait(loop, &interest, 1, 1000));
    // Files.
    const TestFolder folder;
    const int file = ::open(folder.path("file").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    findings.works("open", file);
    findings.works("pwrite", ::pwrite(file, "abc", 3, 0));
    findings.works("fallocate", ::fallocate(file, 0, 0, 8192) == 0 || errno == EOPNOTSUPP ? 0 : -1);
    findings.works("fdatasync", ::fdatasync(file));
    findings.works("futimens", ::futimens(file, nullptr));
    findings.works("flock", ::flock(file, LOCK_EX));
    struct flock lockOfFile{.l_type = F_WRLCK, .l_whence = SEEK_SET};
    findings.works("an OFD lock", ::fcntl(file, F_OFD_SETLK, &lockOfFile));
    findings.works("rename", ::rename(folder.path("file").c_str(), folder.path("named").c_str()));
    findings.works("unlink", ::unlink(folder.path("named").c_str()));
    // Itself.
    rlimit limit{};
    findings.works("getrlimit", ::getrlimit(RLIMIT_NOFILE, &limit));
    rusage usage{};
    findings.works("getrusage", ::getrusage(RUSAGE_SELF, &usage));
    findings.works("a signal to itself", ::kill(::getpid(), 0));
    // After the filter, of course.
    findings.holds("new privileges are forbidden", ::prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1);
  });
}

TEST_F(CallFilterTest, HoldsForThreadsThatRunAlready) {
  expectWellInChild([&] {
    std::atomic<bool> isFiltered = false;
    std::atomic<int> error = 0;
    std::thread thread([&] {
      while (!isFiltered) std::this_thread::yield();
      if (::socket(AF_UNIX, SOCK_STREAM, 0) < 0) error = errno;
    });
    const Status filtered = filterCalls({});
    isFiltered = true;
    thread.join();
    if (!filtered) return filtered.error().toString();
    return error == EPERM ? std::string() : std::string("The other thread makes a socket.");
  });
}

TEST_F(CallFilterTest, AcceptsConnectionsWhereThatIsWanted) {
  sockaddr_un address{.sun_family = AF_UNIX};
  const base::Descriptor listening(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const base::Descriptor connecting(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  // The kernel chooses a name in the abstract name space.
  auto* const plain = reinterpret_cast<sockaddr*>(&address);
  ASSERT_EQ(::bind(listening.get(), plain, sizeof(sa_family_t)), 0);
  socklen_t size = sizeof address;
  ASSERT_EQ(::getsockname(listening.get(), plain, &size), 0);
  ASSERT_EQ(::listen(listening.get(), 5), 0);
  ASSERT_EQ(::connect(connecting.get(), plain, size), 0);
  inside({}, [&](Findings& findings) {
    findings.fails("accept4", ::accept4(listening.get(), nullptr, nullptr, SOCK_CLOEXEC), EPERM);
  });
  inside({.acceptsConnections = true}, [&](Findings& findings) {
    findings.works("accept4", ::accept4(listening.get(), nullptr, nullptr, SOCK_CLOEXEC));
    findings.fails("socket", ::socket(AF_UNIX, SOCK_STREAM, 0), EPERM);
  });
}

TEST_F(CallFilterTest, LoadsCodeWhereThatIsWanted) {
  inside({.loadsCode = true}, [&](Findings& findings) {
    findings.works("mapping code", map(PROT_READ | PROT_EXEC));
    findings.fails("execve", ::execl("/bin/false", "false", nullptr), EPERM);
  });
}

TEST_F(CallFilterTest, ControlsDevicesWhereThatIsWanted) {
  const base::Descriptor device = base::Descriptor::open("/dev/null", O_RDWR).value();
  inside({}, [&](Findings& findings) {
    findings.fails("ioctl", ::ioctl(device.get(), _IO('h', 1)), EPERM);
    int count = 0;
    findings.fails("FIONREAD", ::ioctl(device.get(), FIONREAD, &count), ENOTTY);
  });
  inside({.controlsDevices = true}, [&](Findings& findings) {
    findings.fails("ioctl", ::ioctl(device.get(), _IO('h', 1)), ENOTTY);
  });
}

#ifdef __x86_64__
TEST_F(CallFilterTest, EndsAProcessThatCallsAsA32BitProgram) {
  const ChildEnd end = inChild([] {
    const Status filtered = filterCalls({});
    if (!filtered) return filtered.error().toString();
    long result = 20;  // getpid there
    __asm__ __volatile__("int $0x80" : "+a"(result) : : "memory", "r8", "r9", "r10", "r11");
    return std::string("It lives.");
  });
  // A kernel without 32-bit programs ends it, too, with a fault.
  EXPECT_EQ(end.text, "");
  EXPECT_TRUE(WIFSIGNALED(end.status)) << end.status;
}
#endif

}  // namespace
}  // namespace hearth::ipc
