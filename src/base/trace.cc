// SPDX-License-Identifier: Apache-2.0
#include "base/trace.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <iterator>
#include <mutex>
#include <string>

#include "base/caught.h"
#include "base/descriptor.h"
#include "base/env.h"
#include "base/file_size_signal.h"
#include "base/format.h"
#include "base/immortal.h"
#include "base/log.h"
#include "base/mutex.h"

namespace hearth::base {
namespace {

void appendQuoted(std::string& text, std::string_view value) {
  text += '"';
  for (const char letter : value) {
    if (letter == '"' || letter == '\\') text += '\\';
    if (static_cast<unsigned char>(letter) < 0x20)
      std::format_to(std::back_inserter(text), "\\u{:04x}", static_cast<int>(letter));
    else
      text += letter;
  }
  text += '"';
}

// How long to wait for the lock of a writer that is beginning a file.
constexpr int kLockAttempts = 1000;
constexpr useconds_t kLockPause = 1000;

// The open trace file.
//
// Each library that was linked with this code has a writer, and several processes may use the same
// name. All of them write to one file. Each holds a read lock while it does, and a write lock,
// which keeps the others out, while it begins or ends the array.
class Writer {
 public:
  static Writer& instance() {
    static constinit Immortal<Writer> writer;
    return writer.get();
  }

  bool open(std::string_view path) {
    const std::lock_guard lock(mutex_);
    close();
    pattern_ = path;
    return openForThisProcess();
  }

  // Reads HEARTH_TRACE, unless another thread has done so since the caller checked.
  bool openFromEnvironment() {
    const std::lock_guard lock(mutex_);
    const int state = internal::traceState.load(std::memory_order_relaxed);
    if (state >= 0) return state != 0;
    pattern_ = envString(Env::kTrace);
    return openForThisProcess();
  }

  // `event` is a JSON object without its closing brace; process and thread are added.
  void write(std::string event) {
    const std::lock_guard lock(mutex_);
    if (!file_.valid()) return;
    if (owner_ != ::getpid()) {
      // The file belongs to the parent: two writers would close the array twice.
      file_.reset();
      if (pattern_.find("%p") == std::string::npos) pattern_.clear();
      if (!openForThisProcess()) return;
    }
    std::format_to(std::back_inserter(event), ",\"pid\":{},\"tid\":{}}}", owner_,
                   ::syscall(SYS_gettid));
    put(",\n" + event);
  }

  void finish() {
    const std::lock_guard lock(mutex_);
    close();
    internal::traceState.store(0, std::memory_order_release);
  }

 private:
  // A forked child must leave the lock alone, since it is the parent's, too.
  void close() {
    if (file_.valid() && owner_ == ::getpid()) {
      // Releases the read lock before it takes the write lock: of two writers that leave at once,
      // one must come last.
      (void)lock(F_UNLCK);
      if ((lock(F_WRLCK) || !lockIsTaken()) && !isEnded()) put("\n]\n");
      if (file_.valid()) (void)lock(F_UNLCK);
    }
    file_.reset();
  }

  // False with errno set.
  bool lock(short type) {
    struct flock whole{};
    whole.l_type = type;
    whole.l_whence = SEEK_SET;
    return ::fcntl(file_.get(), F_OFD_SETLK, &whole) == 0;
  }

  // After a failed lock(): whether other writers hold it. If not, this kind of file has no locks.
  static bool lockIsTaken() { return errno == EAGAIN || errno == EACCES; }

  // Whether another writer has written the closing bracket.
  bool isEnded() {
    const off_t size = ::lseek(file_.get(), 0, SEEK_END);
    char last[2];
    return size >= 2 && ::pread(file_.get(), last, 2, size - 2) == 2 && last[0] == ']';
  }

  // Begins the array, with `event` as its first element, or joins the other writers. False when
  // another program keeps the file to itself.
  bool begin(const std::string& event) {
    for (int attempt = 0; attempt < kLockAttempts; ++attempt) {
      if (lock(F_WRLCK) || !lockIsTaken()) {
        if (::ftruncate(file_.get(), 0) != 0) logDebug("The trace file is no regular file.");
        put("[\n" + event);
        if (file_.valid()) (void)lock(F_RDLCK);
        return file_.valid();
      }
      if (lock(F_RDLCK)) {
        put(",\n" + event);
        return file_.valid();
      }
      ::usleep(kLockPause);
    }
    return false;
  }

  bool openForThisProcess() {
    owner_ = ::getpid();
    if (!pattern_.empty()) {
      std::string path = pattern_;
      const std::string pid = std::to_string(owner_);
      for (size_t at = path.find("%p"); at != std::string::npos; at = path.find("%p", at))
        path.replace(at, 2, pid);
      Result<Descriptor> file = Descriptor::open(path, O_RDWR | O_CREAT | O_APPEND, 0666);
      if (file) {
        file_ = std::move(*file);
        std::string head = "{\"name\":\"process_name\",\"ph\":\"M\",\"args\":{\"name\":";
        appendQuoted(head, program_invocation_short_name);
        if (begin(base::formatText("{}}},\"pid\":{},\"tid\":{}}}", head, owner_, owner_))) {
          static const int registered = std::atexit([] { instance().finish(); });
          (void)registered;
        } else {
          file_.reset();
          logWarn("The trace is off. Another program has locked {}.", path);
        }
      } else {
        logWarn("The trace is off. {}", file.error().toString());
      }
    }
    internal::traceState.store(file_.valid() ? 1 : 0, std::memory_order_release);
    return file_.valid();
  }

  // One write call for each event keeps the file valid up to the last event if the process is
  // killed.
  void put(std::string_view text) {
    const FileSizeSignalOff signalOff;
    while (!text.empty()) {
      const ssize_t written = ::write(file_.get(), text.data(), text.size());
      if (written < 0 && errno == EINTR) continue;
      if (written <= 0) {
        file_.reset();
        internal::traceState.store(0, std::memory_order_release);
        return;
      }
      text.remove_prefix(static_cast<size_t>(written));
    }
  }

  Mutex mutex_;
  std::string pattern_;
  Descriptor file_;
  pid_t owner_ = 0;
};

std::string beginEvent(const char* category, std::string_view name, std::string_view phase) {
  std::string event = "{\"name\":";
  appendQuoted(event, name);
  event += ",\"cat\":";
  appendQuoted(event, category);
  event += ",\"ph\":";
  appendQuoted(event, phase);
  return event;
}

void appendMicroseconds(std::string& event, const char* key, uint64_t nanoseconds) {
  std::format_to(std::back_inserter(event), ",\"{}\":{}.{:03}", key, nanoseconds / 1000,
                 nanoseconds % 1000);
}

}  // namespace

bool internal::startTrace() {
  return Writer::instance().openFromEnvironment();
}

uint64_t internal::traceNow() {
  return static_cast<uint64_t>(
      std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count());
}

// Called by destructors: an event that there is no memory for is dropped.
void internal::writeTraceSpan(const char* category, std::string_view name, uint64_t begin) {
  static_cast<void>(caught([&] {
    std::string event = beginEvent(category, name, "X");
    appendMicroseconds(event, "ts", begin);
    appendMicroseconds(event, "dur", traceNow() - begin);
    Writer::instance().write(std::move(event));
  }));
}

void traceCounter(const char* category, std::string_view name, int64_t value) {
  if (!traceEnabled()) return;
  std::string event = beginEvent(category, name, "C");
  appendMicroseconds(event, "ts", internal::traceNow());
  std::format_to(std::back_inserter(event), ",\"args\":{{\"value\":{}}}", value);
  Writer::instance().write(std::move(event));
}

bool setTraceFile(std::string_view path) {
  return Writer::instance().open(path);
}

}  // namespace hearth::base
