// SPDX-License-Identifier: Apache-2.0
// The libraries during the life of a program: it loads and closes them, exits while threads use
// them, and forks. Each program is a child process of the test, which itself never loads the
// libraries.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <csetjmp>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "base/fork_test_util.h"
#include "frontends/tflite/testing/model_writer.h"
#include "hearth/hearth.h"
#include "loaded_library.h"

#ifdef __SANITIZE_ADDRESS__
// These programs exit without freeing what they and their threads own; other tests look for leaks.
extern "C" __attribute__((visibility("default"))) const char* __asan_default_options() {
  return "detect_leaks=0";
}
#endif

namespace hearth {
namespace {

namespace fs = std::filesystem;

constexpr int kWidth = 256;
constexpr int kLayers = 8;

int repetitions(int count) {
  const char* const isLong = std::getenv("HEARTH_TEST_LONG");
  return isLong != nullptr && *isLong == '1' ? 10 * count : count;
}

// kLayers layers, each of which halves its sums: for inputs that are all 1, all outputs are equal.
std::vector<uint8_t> modelBytes() {
  using tflite::schema::BuiltinOperator;
  using tflite::schema::TensorType;
  tflite::ModelWriter writer;
  const int32_t input = writer.addTensor(TensorType::FLOAT32, {1, kWidth});
  int32_t value = input;
  for (int layer = 0; layer < kLayers; ++layer) {
    const std::vector<float> weights(size_t{kWidth} * kWidth,
                                     (1.0f + static_cast<float>(layer) / 16) / kWidth);
    const auto* const bytes = reinterpret_cast<const uint8_t*>(weights.data());
    const int32_t matrix = writer.addConstantBytes(TensorType::FLOAT32, {kWidth, kWidth},
                                                   {bytes, bytes + weights.size() * sizeof(float)});
    const int32_t next = writer.addTensor(TensorType::FLOAT32, {1, kWidth});
    writer.addOperator(BuiltinOperator::FULLY_CONNECTED, {value, matrix, -1}, {next},
                       tflite::schema::FullyConnectedOptionsT());
    value = next;
  }
  writer.setArguments({input}, {value});
  return writer.write();
}

float rightOutput() {
  float value = 1;
  for (int layer = 0; layer < kLayers; ++layer) value *= 1.0f + static_cast<float>(layer) / 16;
  return value;
}

// A library that a program has opened, and what the programs here do with it.
class Library : public LoadedLibrary {
 public:
  // A program that cannot open it ends.
  explicit Library(const char* path) try : LoadedLibrary(path) {
  } catch (const std::exception&) {
    ::_exit(100);
  }

  hearth_compilation* compileFile(const char* path) const {
    hearth_model* model = nullptr;
    if (load(path, &model, nullptr) != HEARTH_OK) return nullptr;
    hearth_compilation* compilation = nullptr;
    hearth_compile_options options = HEARTH_COMPILE_OPTIONS_INIT;
    if (compile(model, &options, &compilation, nullptr) != HEARTH_OK) compilation = nullptr;
    freeModel(model);
    return compilation;
  }

  // Returns 0 when the result is right.
  int runOnce(const hearth_compilation* compilation, bool isAsynchronous) const {
    hearth_execution* execution = nullptr;
    if (create(compilation, &execution, nullptr) != HEARTH_OK) return 11;
    const std::vector<float> input(kWidth, 1.0f);
    std::vector<float> output(kWidth);
    const size_t bytes = kWidth * sizeof(float);
    int result = 0;
    if (setInput(execution, 0, input.data(), bytes, nullptr, 0, nullptr) != HEARTH_OK ||
        setOutput(execution, 0, output.data(), bytes, nullptr) != HEARTH_OK) {
      result = 12;
    } else if (isAsynchronous) {
      hearth_event* event = nullptr;
      if (start(execution, 0, &event, nullptr) != HEARTH_OK) {
        result = 13;
      } else {
        if (wait(event, 0, nullptr) != HEARTH_OK) result = 14;
        freeEvent(event);
      }
    } else if (run(execution, 0, nullptr) != HEARTH_OK) {
      result = 15;
    }
    freeExecution(execution);
    for (const float value : output)
      if (result == 0 && std::abs(value - rightOutput()) > 1e-3f) result = 16;
    return result;
  }

  // Compiles, runs and frees.
  int useOnce(const char* path, bool isAsynchronous) const {
    hearth_compilation* const compilation = compileFile(path);
    if (compilation == nullptr) return 10;
    const int result = runOnce(compilation, isAsynchronous);
    freeCompilation(compilation);
    return result;
  }
};

class ProcessTest : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "hearth-process-XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
    model_ = (folder_ / "model.tflite").string();
    const std::vector<uint8_t> bytes = modelBytes();
    std::ofstream(model_, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
  }
  void TearDown() override { fs::remove_all(folder_); }

  // Each program gets a new store: a cold start writes, a warm one maps.
  void useNewStore() { ::setenv("HEARTH_STORE", (folder_ / std::to_string(++stores_)).c_str(), 1); }

  // Runs `program` in a child process, which returns its result from main, and returns how it
  // ended.
  template <typename Program>
  static std::string endOf(Program program) {
    const pid_t child = ::fork();
    if (child == 0) {
      ::alarm(120);  // a program that hangs is ended
      std::exit(program());
    }
    return describe(child);
  }
  static std::string describe(pid_t child) {
    int status = 0;
    while (::waitpid(child, &status, 0) != child) {
    }
    if (WIFSIGNALED(status)) return "signal " + std::to_string(WTERMSIG(status));
    return "exit " + std::to_string(WEXITSTATUS(status));
  }

  const char* model() const { return model_.c_str(); }

  fs::path folder_;

 private:
  std::string model_;
  int stores_ = 0;
};

INSTANTIATE_TEST_SUITE_P(Libraries, ProcessTest,
                         testing::Values(HEARTH_LIBRARY, HEARTH_NNAPI_LIBRARY),
                         [](const auto& info) {
                           return std::string(info.index == 0 ? "hearth" : "neuralnetworks");
                         });

// Starts threads that use the library until the program ends; their results do not matter.
void useForEver(const Library& library, const char* model, int count) {
  for (int i = 0; i < count; ++i)
    std::thread([&library, model, i] {
      for (;;) library.useOnce(model, i % 2 != 0);
    }).detach();
}

// After dlclose, the library's threads, its destructors for threads and for exit, and its handler
// of SIGBUS were in unmapped memory.
TEST_P(ProcessTest, ALibraryThatIsClosedKeepsWhatItsThreadsAndHandlersNeed) {
  for (int round = 0; round < repetitions(10); ++round) {
    useNewStore();
    const bool isLeft = round % 2 == 0;
    const bool isEnded = round % 4 < 2;
    const std::string end = endOf([&] {
      struct sigaction action{};
      static sigjmp_buf back;
      action.sa_handler = [](int) {
        ::siglongjmp(back, 1);
      };
      ::sigaction(SIGBUS, &action, nullptr);
      Library library(GetParam());
      std::atomic<bool> isUsed = false;
      std::atomic<bool> isClosed = false;
      int result = 0;
      hearth_compilation* kept = nullptr;
      std::thread worker([&] {
        result = library.useOnce(model(), round % 3 == 0);
        // The model's packed weights stay mapped, and the handler stays installed.
        if (isLeft) kept = library.compileFile(model());
        isUsed = true;
        while (!isClosed) std::this_thread::yield();
      });
      while (!isUsed) std::this_thread::yield();
      // The thread ends before the library is closed, which is then unloaded, or after it.
      isClosed = isEnded;
      if (isEnded) worker.join();
      library.close();
      isClosed = true;
      if (!isEnded) worker.join();
      const int file = ::memfd_create("empty", MFD_CLOEXEC);
      void* const page = ::mmap(nullptr, 4096, PROT_READ, MAP_SHARED, file, 0);
      for (static int i = 0; i < 2; ++i)
        if (sigsetjmp(back, 1) == 0) {
          static_cast<void>(*static_cast<volatile char*>(page));
          return 20;
        }
      // Opens the library once more.
      Library again(GetParam());
      if (result == 0) result = again.useOnce(model(), false);
      again.close();
      if (kept != nullptr) again.freeCompilation(kept);
      return result;
    });
    EXPECT_EQ(end, "exit 0") << round;
  }
}

// During exit, the library destroyed objects that threads were using.
TEST_P(ProcessTest, ExitWhileThreadsCompileRunAndFree) {
  for (int round = 0; round < repetitions(40); ++round) {
    if (round % 4 == 0) useNewStore();
    const std::string end = endOf([&] {
      // Never destroyed, like some of the static objects of a program.
      const auto& library = *new Library(GetParam());
      useForEver(library, model(), 3);
      ::usleep(static_cast<useconds_t>(1 + round * 7919 % 40'000));
      switch (round % 4) {
        case 0:
          std::exit(0);
        case 1:
          std::quick_exit(0);
        case 2:
          std::thread([] { std::exit(0); }).join();
          return 21;
        default:
          return 0;  // from main
      }
    });
    EXPECT_EQ(end, "exit 0") << round;
  }
}

// The program's static objects are destroyed while it exits.
TEST_P(ProcessTest, ExitDestroysTheProgramsOwnCompilations) {
  for (int round = 0; round < repetitions(4); ++round) {
    useNewStore();
    const std::string end = endOf([&] {
      static const Library* library = nullptr;
      static const char* path = nullptr;
      path = model();
      struct Owner {
        hearth_compilation* compilation = nullptr;
        ~Owner() {
          library->freeCompilation(compilation);
          if (library->useOnce(path, true) != 0) ::_exit(22);
        }
      };
      static Owner owner;
      library = new Library(GetParam());
      owner.compilation = library->compileFile(path);
      return owner.compilation == nullptr ? 23 : 0;
    });
    EXPECT_EQ(end, "exit 0") << round;
  }
}

// Packed weights are kept for the next process, whatever the threads were doing.
TEST_P(ProcessTest, ExitKeepsWhatWasPacked) {
  useNewStore();
  EXPECT_EQ(endOf([&] {
              const auto& library = *new Library(GetParam());
              return library.compileFile(model()) != nullptr ? 0 : 24;
            }),
            "exit 0");
  EXPECT_EQ(endOf([&] {
              const auto& library = *new Library(GetParam());
              hearth_start_report start{};
              start.size = sizeof start;
              const hearth_compilation* const compilation = library.compileFile(model());
              if (library.startReport(compilation, &start, nullptr) != HEARTH_OK) return 25;
              return start.state == HEARTH_START_WARM ? 0 : 26;
            }),
            "exit 0");
}

// A forked child found locks held by threads that it does not have.
TEST_P(ProcessTest, ForkWhileThreadsCompileRunAndFree) {
  HEARTH_SKIP_FORK_AMID_ALLOCATIONS();
  useNewStore();
  EXPECT_EQ(endOf([&] {
              const auto& library = *new Library(GetParam());
              hearth_compilation* const shared = library.compileFile(model());
              if (shared == nullptr) return 30;
              useForEver(library, model(), 1);
              for (int i = 0; i < 2; ++i)
                std::thread([&library, shared] {
                  for (bool isAsynchronous = false;; isAsynchronous = !isAsynchronous)
                    library.runOnce(shared, isAsynchronous);
                }).detach();
              for (int i = 0; i < repetitions(200); ++i) {
                if (i % 50 == 49) useNewStore();
                const pid_t child = ::fork();
                if (child == 0) {
                  ::alarm(60);
                  int result = library.runOnce(shared, i % 2 != 0);
                  if (i % 10 != 0) ::_exit(result);
                  if (result == 0) result = library.useOnce(model(), i % 4 < 2);
                  library.freeCompilation(shared);
                  std::exit(result);
                }
                ::alarm(120);
                if (const std::string end = describe(child); end != "exit 0") {
                  ADD_FAILURE() << "child " << i << ": " << end;
                  return 31;
                }
              }
              return 0;
            }),
            "exit 0");
}

TEST_P(ProcessTest, AChildDoesNotWaitForWhatItsParentRuns) {
  HEARTH_SKIP_FORK_AMID_ALLOCATIONS();
  useNewStore();
  EXPECT_EQ(endOf([&] {
              const auto& library = *new Library(GetParam());
              hearth_compilation* const compilation = library.compileFile(model());
              const std::vector<float> input(kWidth, 1.0f);
              std::vector<float> output(kWidth);
              const size_t bytes = kWidth * sizeof(float);
              for (int i = 0; i < repetitions(50); ++i) {
                hearth_execution* execution = nullptr;
                hearth_event* event = nullptr;
                library.create(compilation, &execution, nullptr);
                library.setInput(execution, 0, input.data(), bytes, nullptr, 0, nullptr);
                library.setOutput(execution, 0, output.data(), bytes, nullptr);
                if (library.start(execution, 0, &event, nullptr) != HEARTH_OK) return 40;
                const pid_t child = ::fork();
                if (child == 0) {
                  ::alarm(60);
                  // The run has ended before the fork, or never ends in this process.
                  static_cast<void>(library.wait(event, 0, nullptr));
                  library.freeEvent(event);
                  library.freeExecution(execution);
                  ::_exit(library.runOnce(compilation, true));
                }
                if (describe(child) != "exit 0") return 41;
                if (library.wait(event, 0, nullptr) != HEARTH_OK) return 42;
                library.freeEvent(event);
                library.freeExecution(execution);
              }
              library.freeCompilation(compilation);
              return 0;
            }),
            "exit 0");
}

// Name and scheduling policy of a thread of the library that should have ordinary scheduling and
// has not.
std::string wrongThread(const fs::path& task) {
  std::string name;
  std::ifstream(task / "comm") >> name;
  if (name.rfind("hearth-", 0) != 0 || name == "hearth-check" || name == "hearth-pages") return "";
  const int policy = ::sched_getscheduler(std::stoi(task.filename().string()));
  if (policy < 0 || policy == SCHED_OTHER) return "";
  return name + " has the policy " + std::to_string(policy);
}

// The store's threads inherited the scheduling of the first thread that used it.
TEST_P(ProcessTest, ThreadsAreOrdinaryWhoeverUsesTheLibraryFirst) {
  const sched_param none{};
  sched_param realTime{};
  realTime.sched_priority = 1;
  for (const int policy : {SCHED_IDLE, SCHED_FIFO}) {
    useNewStore();
    const std::string end = endOf([&] {
      const auto& library = *new Library(GetParam());
      int result = 0;
      std::thread first([&] {
        if (::sched_setscheduler(0, policy, policy == SCHED_FIFO ? &realTime : &none) != 0) {
          result = 50;
          return;
        }
        std::thread probe([&] {
          if (::sched_setscheduler(0, SCHED_OTHER, &none) != 0) result = 50;
        });
        probe.join();
        if (result == 0) result = library.useOnce(model(), true);
      });
      first.join();
      if (result != 0) return result;
      for (const auto& task : fs::directory_iterator("/proc/self/task")) {
        // A thread that has not run yet has its starter's name and may still be idle.
        std::string wrong;
        for (int i = 0; i < 3000; ++i) {
          wrong = wrongThread(task.path());
          if (wrong.empty()) break;
          std::this_thread::sleep_for(std::chrono::milliseconds(10));
        }
        if (wrong.empty()) continue;
        std::fprintf(stderr, "%s; its maker has %d.\n", wrong.c_str(), policy);
        return 51;
      }
      return 0;
    });
    if (end == "exit 50") continue;  // this user is not allowed to leave such a policy
    EXPECT_EQ(end, "exit 0") << policy;
  }
}

}  // namespace
}  // namespace hearth
