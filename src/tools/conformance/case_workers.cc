// SPDX-License-Identifier: Apache-2.0
#include "tools/conformance/case_workers.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <list>

#include "base/descriptor.h"
#include "base/format.h"

namespace hearth::conformance {
namespace {

using Clock = std::chrono::steady_clock;

// A worker sends this header and then a text: the message, and a line for each operation with its
// name, a blank and its kernel.
struct RecordHeader {
  uint32_t task = 0;
  uint32_t isResult = 0;  // 0: the case begins now
  uint32_t hasPassed = 0;
  uint32_t length = 0;
};

void writeAll(int fd, const void* data, size_t size) {
  const char* bytes = static_cast<const char*>(data);
  while (size > 0) {
    const ssize_t written = ::write(fd, bytes, size);
    if (written < 0 && errno == EINTR) continue;
    // The parent is gone, so the worker ends.
    if (written <= 0) ::_exit(3);
    bytes += written;
    size -= static_cast<size_t>(written);
  }
}

std::string oneLine(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text + '\n';
}

void sendResult(int fd, size_t task, const CaseResult& result) {
  std::string text = oneLine(result.message);
  for (const OperationKernel& entry : result.kernels)
    text += oneLine(entry.operation + ' ' + entry.kernel);
  const RecordHeader header{static_cast<uint32_t>(task), 1, result.hasPassed ? 1u : 0u,
                            static_cast<uint32_t>(text.size())};
  writeAll(fd, &header, sizeof(header));
  writeAll(fd, text.data(), text.size());
}

[[noreturn]] void workerMain(int fd, const DeviceFactory& factory,
                             const std::vector<CaseTask>& tasks, size_t begin, size_t end) {
  auto device = factory.create();
  for (size_t i = begin; i < end; ++i) {
    const RecordHeader header{static_cast<uint32_t>(i), 0, 0, 0};
    writeAll(fd, &header, sizeof(header));
    CaseResult result;
    if (!device) {
      result.message = device.error().toString();
    } else if (auto testCase = tasks[i].file->readCase(tasks[i].index); !testCase) {
      result.message = testCase.error().toString();
    } else {
      result = runCase(**device, *testCase);
    }
    sendResult(fd, i, result);
  }
  ::_exit(0);
}

struct Worker {
  pid_t pid = -1;
  base::Descriptor pipe;
  size_t next = 0;  // first task without result
  size_t end = 0;
  std::string received;
  Clock::time_point lastSign;
};

class WorkerPool {
 public:
  WorkerPool(const DeviceFactory& device, const std::vector<CaseTask>& tasks,
             const WorkerOptions& options, const std::function<void(size_t)>& onProgress)
      : device_(device),
        tasks_(tasks),
        options_(options),
        onProgress_(onProgress),
        results_(tasks.size()) {}

  Result<std::vector<CaseResult>> run() {
    size_t begin = 0;
    while (begin < tasks_.size() || !workers_.empty()) {
      while (begin < tasks_.size() && workers_.size() < std::max(1u, options_.processes)) {
        const size_t end = std::min(tasks_.size(), begin + std::max(1u, options_.chunkSize));
        HEARTH_TRY(start(begin, end));
        begin = end;
      }
      HEARTH_TRY(waitForNews());
    }
    return std::move(results_);
  }

  ~WorkerPool() {
    for (Worker& worker : workers_) {
      ::kill(worker.pid, SIGKILL);
      ::waitpid(worker.pid, nullptr, 0);
    }
  }

 private:
  Status start(size_t begin, size_t end) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0)
      return std::unexpected(base::errnoError(errno, "Making a pipe to a worker"));
    Worker worker;
    worker.pipe.reset(ends[0]);
    base::Descriptor writeEnd(ends[1]);
    worker.pid = ::fork();
    if (worker.pid < 0) return std::unexpected(base::errnoError(errno, "Starting a worker"));
    if (worker.pid == 0) {
      // Closes the other workers' pipes, which must close when those workers end.
      for (Worker& other : workers_) other.pipe.reset();
      worker.pipe.reset();
      workerMain(writeEnd.get(), device_, tasks_, begin, end);
    }
    worker.next = begin;
    worker.end = end;
    worker.lastSign = Clock::now();
    workers_.push_back(std::move(worker));
    return {};
  }

  Status waitForNews() {
    std::vector<pollfd> polled;
    for (const Worker& worker : workers_) polled.push_back({worker.pipe.get(), POLLIN, 0});
    const int ready = ::poll(polled.data(), polled.size(), 1000);
    if (ready < 0 && errno != EINTR)
      return std::unexpected(base::errnoError(errno, "Waiting for workers"));
    size_t i = 0;
    for (auto it = workers_.begin(); it != workers_.end(); ++i) {
      const auto worker = it++;
      bool isOpen = true;
      if (ready > 0 && polled[i].revents != 0) isOpen = receive(&*worker);
      const auto limit = std::chrono::seconds(options_.timeoutSeconds);
      if (isOpen && Clock::now() - worker->lastSign <= limit) continue;
      HEARTH_TRY(finish(worker, isOpen));
    }
    return {};
  }

  // False when the worker has closed its pipe.
  bool receive(Worker* worker) {
    char buffer[1 << 16];
    const ssize_t count = ::read(worker->pipe.get(), buffer, sizeof(buffer));
    if (count < 0) return errno == EINTR;
    if (count == 0) return false;
    worker->lastSign = Clock::now();
    worker->received.append(buffer, static_cast<size_t>(count));
    size_t position = 0;
    RecordHeader header;
    while (worker->received.size() - position >= sizeof(header)) {
      std::memcpy(&header, worker->received.data() + position, sizeof(header));
      if (worker->received.size() - position - sizeof(header) < header.length) break;
      position += sizeof(header);
      if (header.isResult != 0 && header.task < worker->end)
        store(worker, header, worker->received.substr(position, header.length));
      position += header.length;
    }
    worker->received.erase(0, position);
    return true;
  }

  void store(Worker* worker, const RecordHeader& header, const std::string& text) {
    CaseResult& result = results_[header.task];
    result.hasPassed = header.hasPassed != 0;
    size_t begin = 0;
    for (bool isMessage = true; begin < text.size(); isMessage = false) {
      const size_t end = text.find('\n', begin);
      std::string line = text.substr(begin, end - begin);
      if (isMessage) {
        result.message = std::move(line);
      } else {
        const size_t blank = std::min(line.find(' '), line.size() - 1);
        result.kernels.push_back({line.substr(0, blank), line.substr(blank + 1)});
      }
      begin = end == std::string::npos ? text.size() : end + 1;
    }
    worker->next = header.task + 1;
    advance();
  }

  // Ends a worker that is done, dead or stuck. The case that it was running fails; another process
  // runs the rest.
  Status finish(std::list<Worker>::iterator worker, bool isStuck) {
    if (isStuck) ::kill(worker->pid, SIGKILL);
    int status = 0;
    while (::waitpid(worker->pid, &status, 0) < 0 && errno == EINTR) {
    }
    size_t next = worker->next;
    const size_t end = worker->end;
    workers_.erase(worker);
    if (next >= end) return {};
    CaseResult& lost = results_[next];
    if (isStuck)
      lost.message =
          base::formatText("The case hangs: no result after {} s.", options_.timeoutSeconds);
    else if (WIFSIGNALED(status))
      lost.message = base::formatText("The process dies of signal {} ({}).", WTERMSIG(status),
                                      ::strsignal(WTERMSIG(status)));
    else
      lost.message = base::formatText("The process ends with code {}.", WEXITSTATUS(status));
    advance();
    return next + 1 < end ? start(next + 1, end) : Status();
  }

  void advance() {
    ++finished_;
    if (onProgress_) onProgress_(finished_);
  }

  const DeviceFactory& device_;
  const std::vector<CaseTask>& tasks_;
  const WorkerOptions& options_;
  const std::function<void(size_t)>& onProgress_;
  std::vector<CaseResult> results_;
  std::list<Worker> workers_;
  size_t finished_ = 0;
};

}  // namespace

Result<std::vector<CaseResult>> runInWorkers(const DeviceFactory& device,
                                             const std::vector<CaseTask>& tasks,
                                             const WorkerOptions& options,
                                             const std::function<void(size_t)>& onProgress) {
  return WorkerPool(device, tasks, options, onProgress).run();
}

}  // namespace hearth::conformance
