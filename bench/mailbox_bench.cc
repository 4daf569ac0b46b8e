// SPDX-License-Identifier: Apache-2.0
// Measures the round trip of a mailbox between two processes, beside that of a bare futex in shared
// memory and those of sockets. All take turns in one run: with both processes on one processor, on
// two, and where the kernel puts them. Optional argument: round trips per turn (default 2000).
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "futex_pair.h"
#include "ipc/mailbox_client.h"
#include "ipc/mailbox_server.h"

namespace {

using namespace hearth::ipc;
using hearth::base::Descriptor;
using Clock = std::chrono::steady_clock;

constexpr int kRounds = 9;

[[noreturn]] void die(const char* what) {
  std::perror(what);
  std::exit(1);
}

void bindTo(int processor) {
  if (processor < 0) return;
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(processor, &set);
  if (::sched_setaffinity(0, sizeof set, &set) != 0) die("sched_setaffinity");
}

std::vector<int> processors() {
  cpu_set_t set;
  if (::sched_getaffinity(0, sizeof set, &set) != 0) die("sched_getaffinity");
  std::vector<int> found;
  for (int i = 0; i < CPU_SETSIZE; ++i)
    if (CPU_ISSET(i, &set)) found.push_back(i);
  return found;
}

// A way to send another process a request and receive its answer.
class Transport {
 public:
  virtual ~Transport() = default;
  // Answers requests for ever; called in the other process.
  virtual void serve() = 0;
  virtual void call() = 0;
};

class Mailbox final : public Transport {
 public:
  void serve() override {
    MailboxServer server(mapped());
    while (server.receive()) server.answer({});
  }
  void call() override {
    if (client_ == nullptr) client_ = std::make_unique<MailboxClient>(mapped());
    if (!client_->call({})) die("MailboxClient::call");
  }

 private:
  MailboxPage mapped() const {
    return MailboxPage::open(Descriptor(::fcntl(page_.fd(), F_DUPFD_CLOEXEC, 0))).value();
  }

  const MailboxPage page_ = MailboxPage::create().value();
  std::unique_ptr<MailboxClient> client_;
};

class Futex final : public Transport {
 public:
  void serve() override { pair_.serve(); }
  void call() override { pair_.call(); }

 private:
  hearth::bench::FutexPair pair_;
};

// Messages of 64 bytes.
class Socket final : public Transport {
 public:
  explicit Socket(int type) {
    if (::socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, ends_.data()) != 0) die("socketpair");
  }
  void serve() override {
    std::array<char, 64> message{};
    while (::recv(ends_[1], message.data(), message.size(), MSG_WAITALL) > 0)
      if (::send(ends_[1], message.data(), message.size(), MSG_NOSIGNAL) < 0) return;
  }
  void call() override {
    std::array<char, 64> message{};
    if (::send(ends_[0], message.data(), message.size(), MSG_NOSIGNAL) < 0) die("send");
    if (::recv(ends_[0], message.data(), message.size(), MSG_WAITALL) <= 0) die("recv");
  }

 private:
  std::array<int, 2> ends_{};
};

struct Contender {
  const char* name;
  std::unique_ptr<Transport> transport;
  pid_t process;
  std::vector<double> times{};
};

Contender start(const char* name, std::unique_ptr<Transport> transport, int processor) {
  const pid_t process = ::fork();
  if (process < 0) die("fork");
  if (process == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    bindTo(processor);
    transport->serve();
    ::_exit(0);
  }
  return {name, std::move(transport), process};
}

// The time in microseconds below which `part` of all round trips stay.
double quantile(std::vector<double>& times, double part) {
  const auto place = static_cast<size_t>(static_cast<double>(times.size() - 1) * part);
  std::nth_element(times.begin(), times.begin() + static_cast<long>(place), times.end());
  return times[place];
}

void compare(const char* place, int mine, int theirs, int calls) {
  bindTo(mine);
  std::vector<Contender> contenders;
  contenders.push_back(start("mailbox", std::make_unique<Mailbox>(), theirs));
  contenders.push_back(start("futex", std::make_unique<Futex>(), theirs));
  contenders.push_back(start("seqpacket socket", std::make_unique<Socket>(SOCK_SEQPACKET), theirs));
  contenders.push_back(start("stream socket", std::make_unique<Socket>(SOCK_STREAM), theirs));
  for (int round = 0; round < kRounds; ++round) {
    for (Contender& contender : contenders) {
      for (int i = 0; i < calls / 10; ++i) contender.transport->call();
      for (int i = 0; i < calls; ++i) {
        const Clock::time_point begin = Clock::now();
        contender.transport->call();
        const std::chrono::duration<double, std::micro> time = Clock::now() - begin;
        contender.times.push_back(time.count());
      }
    }
  }
  const double mailbox = quantile(contenders[0].times, 0.5);
  for (Contender& contender : contenders) {
    const double median = quantile(contender.times, 0.5);
    std::printf("%-20s %-17s %8.2f %8.2f %9.2f\n", place, contender.name, median,
                quantile(contender.times, 0.99), median / mailbox);
    ::kill(contender.process, SIGKILL);
    ::waitpid(contender.process, nullptr, 0);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const int calls = argc > 1 ? std::max(10, std::atoi(argv[1])) : 2000;
  const std::vector<int> all = processors();
  std::printf("%-20s %-17s %8s %8s %9s\n", "processes", "round trip by", "p50, us", "p99, us",
              "/ mailbox");
  compare("free", -1, -1, calls);
  if (all.size() > 1) compare("on two processors", all[0], all[1], calls);
  compare("on one processor", all[0], all[0], calls);
  return 0;
}
