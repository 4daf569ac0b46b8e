// SPDX-License-Identifier: Apache-2.0
// One process of the soak (soak_test.py): loads the library by name, compiles, runs, frees, forks
// and unloads in several threads at once, and ends in the requested way. Every result is compared
// with what the same version of the model gives without a store.
//
//   soak_session --library FILE --models DIR --expected DIR [--expect MODEL...] [--store DIR]
//                [--seed N] [--ending WORD] [--limited] [--damaged] [--signals]
//
// Exit codes: 0 all was right, 3 a wrong number, 4 a failure that nothing excuses, 5 a forked child
// that hung. --limited: system calls fail or limits are low, so that calls may fail, but only with
// an error. --damaged: wrong bytes may be in the store, which a start that checks in the background
// may use until it has found them. --expect writes the results of the named models: in NAME those
// of all devices, in NAME.reference those of nnapi-reference, which stands in where a limit keeps
// XNNPACK from starting.
#include <fcntl.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "hearth/hearth.h"
#include "loaded_library.h"

namespace {

constexpr int kWrongNumber = 3;
constexpr int kFailure = 4;
constexpr int kHang = 5;
constexpr auto kPatience = std::chrono::seconds(60);

struct Options {
  std::string library;
  std::string models;
  std::string expected;
  std::string store;
  std::string ending = "return";
  std::vector<std::string> expect;
  uint64_t seed = 1;
  bool limited = false;
  bool damaged = false;
  bool signals = false;
};

// Never destroyed: threads read it while the process exits.
Options& options() {
  static Options* const all = new Options;
  return *all;
}

[[noreturn]] void end(int code, const std::string& sentence) {
  std::fprintf(stderr, "soak_session %d, seed %llu: %s\n", static_cast<int>(::getpid()),
               static_cast<unsigned long long>(options().seed), sentence.c_str());
  ::_exit(code);
}

// An error of a call of the library.
struct Refusal {
  std::string sentence;
};

// The library stays loaded as long as this object exists.
class Library : public hearth::LoadedLibrary {
 public:
  Library() try : LoadedLibrary(options().library.c_str()) {
  } catch (const std::runtime_error& error) {
    throw Refusal{error.what()};
  } catch (const std::logic_error& error) {
    end(kFailure, error.what());
  }
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;
  ~Library() { close(); }

  void check(hearth_status status, hearth_error* error, const char* what) const {
    if (status == HEARTH_OK) return;
    Refusal refusal{std::string(what) + ": " + std::to_string(status) + ", " +
                    (error != nullptr ? message(error) : "without a sentence")};
    freeError(error);
    throw refusal;
  }
};

// The options of a compilation.
struct Way {
  hearth_cache_policy cache = HEARTH_CACHE_OFF;
  hearth_preparation preparation = HEARTH_PREPARE_WHOLE;
  uint32_t threads = 1;
  std::string bundle;
  const char* device = nullptr;  // all
};

// A model file compiled once, and an execution of it.
class Runner {
 public:
  Runner(const Library& library, const std::string& path, const Way& way) : library_(library) {
    hearth_error* error = nullptr;
    library_.check(library_.load(path.c_str(), &model_.value, &error), error, "loading");
    model_.free = library_.freeModel;
    hearth_compile_options wanted = HEARTH_COMPILE_OPTIONS_INIT;
    wanted.device = way.device;
    wanted.cache = way.cache;
    wanted.preparation = way.preparation;
    wanted.threads = way.threads;
    wanted.tuning = HEARTH_TUNING_OFF;
    wanted.store = options().store.empty() ? nullptr : options().store.c_str();
    wanted.weight_cache = way.bundle.empty() ? nullptr : way.bundle.c_str();
    library_.check(library_.compile(model_.value, &wanted, &compilation_.value, &error), error,
                   "compiling");
    compilation_.free = library_.freeCompilation;
    hearth_tensor_info info{};
    info.size = sizeof info;
    library_.check(library_.input(compilation_.value, 0, &info, &error), error, "input");
    fillInput(info);
    info = {};
    info.size = sizeof info;
    library_.check(library_.output(compilation_.value, 0, &info, &error), error, "output");
    name_ = info.name;
    output_.resize(info.byte_size);
    library_.check(library_.create(compilation_.value, &execution_.value, &error), error,
                   "creating an execution");
    execution_.free = library_.freeExecution;
    library_.check(
        library_.setInput(execution_.value, 0, input_.data(), input_.size(), nullptr, 0, &error),
        error, "setting the input");
    library_.check(library_.setOutput(execution_.value, 0, output_.data(), output_.size(), &error),
                   error, "setting the output");
  }

  // The output's name, which contains the version of the model.
  const std::string& name() const { return name_; }
  const std::vector<uint8_t>& output() const { return output_; }

  void run() {
    std::fill(output_.begin(), output_.end(), uint8_t{0xA5});
    hearth_error* error = nullptr;
    library_.check(library_.run(execution_.value, 0, &error), error, "running");
  }

  // Frees the execution, perhaps while it runs.
  void startAndFree() {
    hearth_error* error = nullptr;
    hearth_event* event = nullptr;
    library_.check(library_.start(execution_.value, 0, &event, &error), error, "starting");
    execution_.reset();
    const hearth_status status = library_.wait(event, 0, &error);
    library_.freeEvent(event);
    library_.check(status, error, "waiting");
  }

 private:
  template <typename T>
  struct Handle {
    Handle() = default;
    Handle(const Handle&) = delete;
    Handle& operator=(const Handle&) = delete;
    ~Handle() { reset(); }
    void reset() {
      if (free != nullptr) free(value);
      free = nullptr;
    }
    T* value = nullptr;
    void (*free)(T*) = nullptr;
  };

  // Writes the same numbers in every process.
  void fillInput(const hearth_tensor_info& info) {
    input_.resize(info.byte_size);
    std::minstd_rand random(7);
    if (info.type == HEARTH_TYPE_FLOAT32) {
      for (size_t i = 0; i + sizeof(float) <= input_.size(); i += sizeof(float)) {
        const float value = static_cast<float>(random() % 256) / 128 - 1;
        std::memcpy(&input_[i], &value, sizeof value);
      }
    } else {
      for (uint8_t& byte : input_) byte = static_cast<uint8_t>(random());
    }
  }

  const Library& library_;
  Handle<hearth_model> model_;
  Handle<hearth_compilation> compilation_;
  std::vector<uint8_t> input_;
  std::vector<uint8_t> output_;
  Handle<hearth_execution> execution_;
  std::string name_;
};

std::vector<uint8_t> readFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

bool isRight(const Runner& runner) {
  const std::string path = options().expected + "/" + runner.name();
  for (const char* const device : {"", ".reference"}) {
    const std::vector<uint8_t> expected = readFile(path + device);
    if (runner.output() == expected) return true;
    if (!options().limited) return false;
    // Under a limit the file may be impossible to read.
    if (expected.empty()) return true;
  }
  return false;
}

void runAndCheck(Runner& runner, const Way& way) {
  runner.run();
  if (isRight(runner)) return;
  const bool mayBeFound = options().damaged && way.cache == HEARTH_CACHE_READ_WRITE;
  const auto begin = std::chrono::steady_clock::now();
  while (mayBeFound && std::chrono::steady_clock::now() - begin < kPatience) {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    runner.run();
    if (isRight(runner)) return;
  }
  end(kWrongNumber, "The result of " + runner.name() + " is wrong, cache policy " +
                        std::to_string(static_cast<int>(way.cache)) + ", preparation " +
                        std::to_string(static_cast<int>(way.preparation)) +
                        (way.bundle.empty() ? "." : ", in a bundle."));
}

// One thread's random numbers, and the work that it chooses by them.
class Worker {
 public:
  Worker(uint64_t seed, int number) : random_(seed * 16 + static_cast<uint64_t>(number)) {}

  void work() {
    auto library = std::make_unique<Library>();
    const int steps = 1 + pick(4);
    for (int i = 0; i < steps; ++i) {
      if (pick(6) == 0) {
        library.reset();
        library = std::make_unique<Library>();
      }
      step(*library);
    }
  }

 private:
  int pick(int below) { return static_cast<int>(random_() % static_cast<uint64_t>(below)); }

  std::string modelName() { return pick(2) == 0 ? "dense" : "image"; }

  Way pickWay(const std::string& model) {
    constexpr hearth_cache_policy kPolicies[] = {HEARTH_CACHE_READ_WRITE, HEARTH_CACHE_READ_WRITE,
                                                 HEARTH_CACHE_STRICT, HEARTH_CACHE_READ_ONLY,
                                                 HEARTH_CACHE_OFF};
    Way way;
    way.cache = kPolicies[pick(5)];
    // Nothing checks the segments of a start that may not write.
    if (options().damaged && way.cache == HEARTH_CACHE_READ_ONLY) way.cache = HEARTH_CACHE_STRICT;
    way.preparation = pick(3) == 0 ? HEARTH_PREPARE_JUST_IN_TIME : HEARTH_PREPARE_WHOLE;
    way.threads = 1 + static_cast<uint32_t>(pick(2));
    if (pick(5) == 0 && !options().store.empty())
      way.bundle = options().store + "-" + model + ".bundle";
    return way;
  }

  void step(const Library& library) {
    const std::string model = modelName();
    const std::string path = options().models + "/" + model + ".tflite";
    const Way way = pickWay(model);
    switch (pick(8)) {
      case 0: {
        const Runner runner(library, path, way);
        break;  // freed at once, while packed weights are being written
      }
      case 1: {
        Runner runner(library, path, way);
        runner.startAndFree();
        break;
      }
      case 2:
        forkInUse(library, path, way);
        break;
      case 3:
        rewrite(library, model, way);
        break;
      default: {
        Runner runner(library, path, way);
        for (int i = 1 + pick(20); i > 0; --i) runAndCheck(runner, way);
      }
    }
  }

  // The child process goes on with its parent's model and compiles one of its own.
  void forkInUse(const Library& library, const std::string& path, const Way& way) {
    Runner runner(library, path, way);
    const pid_t child = ::fork();
    if (child < 0) return;
    if (child == 0) {
      try {
        runAndCheck(runner, way);
        Runner own(library, path, way);
        runAndCheck(own, way);
      } catch (const Refusal& refusal) {
        if (!options().limited) end(kFailure, "In a forked child: " + refusal.sentence);
      } catch (const std::exception&) {
        if (!options().limited) end(kFailure, "In a forked child an exception.");
      }
      ::_exit(0);
    }
    runAndCheck(runner, way);
    const int status = waitFor(child);
    if (WIFEXITED(status) && WEXITSTATUS(status) != 0) ::_exit(WEXITSTATUS(status));
    if (WIFSIGNALED(status) && WTERMSIG(status) != SIGKILL)
      end(kFailure, "A forked child ends by signal " + std::to_string(WTERMSIG(status)) + ".");
  }

  static int waitFor(pid_t child) {
    int status = 0;
    const auto begin = std::chrono::steady_clock::now();
    for (;;) {
      const pid_t ended = ::waitpid(child, &status, WNOHANG);
      if (ended == child) return status;
      if (ended < 0 && errno != EINTR) return 0;
      // The child itself waits for right numbers for kPatience, and reports if they do not come.
      if (std::chrono::steady_clock::now() - begin > kPatience * 3 / 2) {
        describeThreads(child);
        ::kill(child, SIGKILL);
        end(kHang, "A forked child hangs.");
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  }

  // Prints, on standard error, where each thread of a process is, if there is a debugger.
  static void describeThreads(pid_t process) {
    const std::string command = "command -v gdb >&2 && gdb -p " + std::to_string(process) +
                                " -batch -ex 'thread apply all bt 24' >&2";
    if (std::system(command.c_str()) != 0)
      std::fputs("No debugger tells where it hangs.\n", stderr);
  }

  // Rewrites a file in place as soon as nothing uses its bytes.
  void rewrite(const Library& library, const std::string& model, const Way& way) {
    if (options().limited) return;  // under a limit, this program's own writes would fail
    const std::string path = options().models + "/own-" + std::to_string(::getpid()) + "-" +
                             std::to_string(::syscall(SYS_gettid)) + ".tflite";
    for (int round = 0; round < 2 + pick(2); ++round) {
      const std::string from =
          options().models + "/versions/" + model + std::to_string(1 + round % 2) + ".tflite";
      const std::vector<uint8_t> content = readFile(from);
      if (!writeFile(path, content)) break;
      Runner runner(library, path, way);
      if (pick(2) == 0) runAndCheck(runner, way);
    }
    ::unlink(path.c_str());
  }

  static bool writeFile(const std::string& path, const std::vector<uint8_t>& content) {
    const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (file < 0) return false;
    size_t done = 0;
    while (done < content.size()) {
      const ssize_t count =
          ::pwrite(file, content.data() + done, content.size() - done, static_cast<off_t>(done));
      if (count < 0 && errno == EINTR) continue;
      if (count <= 0) break;
      done += static_cast<size_t>(count);
    }
    const bool isCut = ::ftruncate(file, static_cast<off_t>(content.size())) == 0;
    ::close(file);
    return isCut && done == content.size();
  }

  std::mt19937_64 random_;
};

void workAndCatch(int number) {
  try {
    Worker(options().seed, number).work();
  } catch (const Refusal& refusal) {
    if (!options().limited) end(kFailure, refusal.sentence);
  } catch (const std::exception& exception) {
    if (!options().limited) end(kFailure, exception.what());
  }
}

void interruptOften() {
  struct sigaction action{};
  action.sa_handler = [](int) {
  };
  ::sigaction(SIGALRM, &action, nullptr);
  const itimerval timer{{0, 1700}, {0, 1700}};
  ::setitimer(ITIMER_REAL, &timer, nullptr);
}

void writeExpectations() {
  const Library library;
  for (const std::string& name : options().expect) {
    for (const bool isReference : {false, true}) {
      Way way;
      if (isReference) way.device = "nnapi-reference";
      Runner runner(library, options().models + "/versions/" + name + ".tflite", way);
      runner.run();
      const std::string path =
          options().expected + "/" + runner.name() + (isReference ? ".reference" : "");
      std::ofstream(path, std::ios::binary)
          .write(reinterpret_cast<const char*>(runner.output().data()),
                 static_cast<std::streamsize>(runner.output().size()));
    }
  }
}

// Ends the process in the requested way while its threads are in the library.
void endAsTold(int milliseconds) {
  const std::string& ending = options().ending;
  if (ending == "return") return;
  std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
  if (ending == "exit") std::exit(0);
  if (ending == "quick") std::quick_exit(0);
  if (ending == "_exit") ::_exit(0);
  if (ending == "kill") ::kill(::getpid(), SIGKILL);
  if (ending == "thread") {
    // A thread calls exit() while main waits. Under a limit there may be no thread.
    try {
      std::thread([] { std::exit(0); }).detach();
    } catch (const std::system_error&) {
      if (!options().limited) throw;
      std::exit(0);
    }
    for (;;) ::pause();
  }
}

int run() {
  if (!options().expect.empty()) {
    writeExpectations();
    return 0;
  }
  if (options().signals) interruptOften();
  std::mt19937_64 random(options().seed);
  std::array<std::thread, 3> threads;  // an array allocates nothing that could fail
  try {
    const int least = options().ending == "return" ? 0 : 1;
    for (int number = least + static_cast<int>(random() % 3); number > 0; --number)
      threads[static_cast<size_t>(number - 1)] = std::thread(workAndCatch, number);
  } catch (const std::system_error&) {
    if (!options().limited) throw;
  }
  if (options().ending == "return") {
    workAndCatch(0);
  } else {
    endAsTold(static_cast<int>(random() % 300));
  }
  for (std::thread& thread : threads)
    if (thread.joinable()) thread.join();
  return 0;
}

bool parse(int count, char** words) {
  for (int i = 1; i < count; ++i) {
    const std::string word = words[i];
    if (word == "--limited") {
      options().limited = true;
    } else if (word == "--damaged") {
      options().damaged = true;
    } else if (word == "--signals") {
      options().signals = true;
    } else if (i + 1 == count) {
      return false;
    } else {
      const std::string value = words[++i];
      if (word == "--library") {
        options().library = value;
      } else if (word == "--models") {
        options().models = value;
      } else if (word == "--expected") {
        options().expected = value;
      } else if (word == "--store") {
        options().store = value;
      } else if (word == "--ending") {
        options().ending = value;
      } else if (word == "--expect") {
        options().expect.push_back(value);
      } else if (word == "--seed") {
        options().seed = std::strtoull(value.c_str(), nullptr, 10);
      } else {
        return false;
      }
    }
  }
  return !options().library.empty();
}

}  // namespace

int main(int count, char** words) {
  if (!parse(count, words)) {
    std::fputs("soak_session: the arguments are wrong; its source says which there are.\n", stderr);
    return 2;
  }
  try {
    return run();
  } catch (const Refusal& refusal) {
    if (!options().limited) end(kFailure, refusal.sentence);
  } catch (const std::exception& exception) {
    if (!options().limited) end(kFailure, exception.what());
  }
  return 0;
}
