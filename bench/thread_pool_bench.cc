// SPDX-License-Identifier: Apache-2.0
// Compares our thread pool and tiling order with the system's pthreadpool, in one process: cost of
// a parallel call, and convolutions through the system's XNNPACK on pthreadpool and through the
// private copy on our pool, without and with the tiling hint. The contenders of a row are run in
// turn, so that all see the same machine. Optional argument: rounds per row (default 40).
#include <dlfcn.h>
#include <hearth_xnnpack.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "threads/gemm_hint.h"
#include "threads/pthreadpool_functions.h"
#include "threads/thread_pool.h"

namespace {

using hearth::threads::ActiveRun;
using hearth::threads::GemmHint;
using hearth::threads::GemmHintScope;
using hearth::threads::ThreadPool;
using Clock = std::chrono::steady_clock;

[[noreturn]] void die(const std::string& message) {
  std::fprintf(stderr, "thread_pool_bench: %s\n", message.c_str());
  std::exit(1);
}

void require(xnn_status status, const char* what) {
  if (status != xnn_status_success) die(std::string(what) + " fails.");
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

double microseconds(Clock::duration time) {
  return std::chrono::duration<double, std::micro>(time).count();
}

double processSeconds() {
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](timeval time) {
    return time.tv_sec + time.tv_usec * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

// One XNNPACK: the private copy, or the system's library, which is loaded beside it.
struct Library {
  decltype(&xnn_initialize) initialize;
  decltype(&xnn_create_convolution2d_nhwc_f32) create;
  decltype(&xnn_reshape_convolution2d_nhwc_f32) reshape;
  decltype(&xnn_setup_convolution2d_nhwc_f32) setup;
  decltype(&xnn_run_operator) run;
  decltype(&xnn_delete_operator) destroy;
};

Library privateLibrary() {
  return {&xnn_initialize,
          &xnn_create_convolution2d_nhwc_f32,
          &xnn_reshape_convolution2d_nhwc_f32,
          &xnn_setup_convolution2d_nhwc_f32,
          &xnn_run_operator,
          &xnn_delete_operator};
}

template <typename Function>
void find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  if (function == nullptr) die(dlerror());
}

Library systemLibrary() {
  void* handle = dlopen(HEARTH_SYSTEM_XNNPACK, RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) die(dlerror());
  Library library;
  find(handle, "xnn_initialize", library.initialize);
  find(handle, "xnn_create_convolution2d_nhwc_f32", library.create);
  find(handle, "xnn_reshape_convolution2d_nhwc_f32", library.reshape);
  find(handle, "xnn_setup_convolution2d_nhwc_f32", library.setup);
  find(handle, "xnn_run_operator", library.run);
  find(handle, "xnn_delete_operator", library.destroy);
  return library;
}

struct Shape {
  size_t size, kernel, inputs, outputs;
};

// One convolution of one library, ready to run.
class Convolution {
 public:
  Convolution(const Library& library, const Shape& shape, pthreadpool_t pool)
      : library_(library),
        pool_(pool),
        input_(shape.size * shape.size * shape.inputs + 64, 0.5f),
        output_(shape.size * shape.size * shape.outputs + 64) {
    std::mt19937 random(1);
    std::vector<float> weights(shape.outputs * shape.kernel * shape.kernel * shape.inputs);
    for (float& weight : weights) weight = static_cast<float>(random() % 201) / 100 - 1;
    const std::vector<float> bias(shape.outputs, 0.25f);
    const auto kernel = static_cast<uint32_t>(shape.kernel);
    const uint32_t pad = kernel / 2;
    const float infinity = std::numeric_limits<float>::infinity();
    require(library_.create(pad, pad, pad, pad, kernel, kernel, 1, 1, 1, 1, 1, shape.inputs,
                            shape.outputs, shape.inputs, shape.outputs, weights.data(), bias.data(),
                            -infinity, infinity, 0, nullptr, nullptr, &operator_),
            "Creating a convolution");
    size_t workspaceSize = 0, alignment = 0, height = 0, width = 0;
    require(library_.reshape(operator_, 1, shape.size, shape.size, &workspaceSize, &alignment,
                             &height, &width, pool_),
            "Reshaping a convolution");
    workspace_.resize(workspaceSize + 64);
    require(library_.setup(operator_, workspace_.data(), input_.data(), output_.data()),
            "Setting up a convolution");
  }
  ~Convolution() { library_.destroy(operator_); }
  Convolution(const Convolution&) = delete;
  Convolution& operator=(const Convolution&) = delete;

  void run() { require(library_.run(operator_, pool_), "Running a convolution"); }

 private:
  Library library_;
  pthreadpool_t pool_;
  xnn_operator_t operator_ = nullptr;
  std::vector<float> input_;
  std::vector<float> output_;
  std::vector<char> workspace_;
};

void noTask(void*, size_t) {}

void fiveMicroseconds(void*, size_t) {
  const Clock::time_point end = Clock::now() + std::chrono::microseconds(5);
  while (Clock::now() < end) {
  }
}

// One contender of a row: the measured function, and what is called before and after its turn.
struct Contender {
  std::function<void()> run;
  std::function<void()> before = [] {
  };
  std::function<void()> after = [] {
  };
};

// Median microseconds of one call of each contender. They take turns of `inner` calls.
std::vector<double> race(const std::vector<Contender>& contenders, int rounds, int inner) {
  constexpr int kWarmUp = 2;
  std::vector<std::vector<double>> times(contenders.size());
  for (int round = 0; round < rounds + kWarmUp; ++round) {
    for (size_t c = 0; c < contenders.size(); ++c) {
      contenders[c].before();
      contenders[c].run();
      const Clock::time_point start = Clock::now();
      for (int i = 0; i < inner; ++i) contenders[c].run();
      const Clock::duration time = Clock::now() - start;
      contenders[c].after();
      if (round >= kWarmUp) times[c].push_back(microseconds(time) / inner);
    }
  }
  std::vector<double> medians;
  for (std::vector<double>& list : times) medians.push_back(median(std::move(list)));
  return medians;
}

class Bench {
 public:
  Bench(size_t threads, int rounds, Library ours, Library theirs)
      : threads_(threads),
        rounds_(rounds),
        ours_(ours),
        theirs_(theirs),
        system_(pthreadpool_create(threads), &pthreadpool_destroy) {
    auto pool = ThreadPool::create(threads);
    if (!pool) die(pool.error().toString());
    pool_ = std::move(*pool);
  }

  void callOverhead(const char* name, pthreadpool_task_1d_t task, size_t items) {
    const pthreadpool_t system = system_.get();
    const pthreadpool_t handle = pool_->nativeHandle();
    const auto call = [handle, task, items] {
      hearth_pthreadpool_parallelize_1d(handle, task, nullptr, items, 0);
    };
    const auto times = race({theirs([system, task, items] {
                               pthreadpool_parallelize_1d(system, task, nullptr, items, 0);
                             }),
                             inRun(call), Contender{call}},
                            rounds_, 1000);
    std::printf(
        "%zu threads, call of %4zu %s items, us: pthreadpool %.2f, ours %.2f, "
        "outside a run %.2f\n",
        threads_, items, name, times[0], times[1], times[2]);
  }

  void convolution(const char* name, const Shape& shape) {
    Convolution system(theirs_, shape, system_.get());
    Convolution own(ours_, shape, pool_->nativeHandle());
    const GemmHint hint{(shape.kernel * shape.kernel * shape.inputs + 1) * sizeof(float),
                        shape.outputs, false};
    const auto times = race({theirs([&] { system.run(); }), inRun([&] { own.run(); }), inRun([&] {
                               GemmHintScope scope(hint);
                               own.run();
                             })},
                            rounds_, 10);
    const double operations =
        2e-3 * shape.size * shape.size * shape.kernel * shape.kernel * shape.inputs * shape.outputs;
    std::printf(
        "%zu threads, %s, us (GFLOP/s): pthreadpool %.0f (%.0f), ours %.0f (%.0f), "
        "hinted %.0f (%.0f), hinted/pthreadpool %.2f\n",
        threads_, name, times[0], operations / times[0], times[1], operations / times[1], times[2],
        operations / times[2], times[2] / times[0]);
  }

  // Processor time of 20 convolutions with pauses of 10 ms between them.
  void idle(const Shape& shape) {
    Convolution system(theirs_, shape, system_.get());
    Convolution own(ours_, shape, pool_->nativeHandle());
    const auto spend = [](const std::function<void()>& run) {
      const double start = processSeconds();
      for (int i = 0; i < 20; ++i) {
        run();
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
      }
      return (processSeconds() - start) * 1e3;
    };
    const double ownTime = spend([&] {
      ActiveRun run(pool_.get());
      own.run();
    });
    const double systemTime = spend([&] { system.run(); });
    quieten();
    std::printf(
        "%zu threads, 20 runs with 10 ms pauses, ms of processor: pthreadpool %.0f, "
        "ours %.0f\n",
        threads_, systemTime, ownTime);
  }

 private:
  // Sends pthreadpool's spinning workers to sleep.
  void quieten() {
    pthreadpool_parallelize_1d(system_.get(), noTask, nullptr, 2, PTHREADPOOL_FLAG_YIELD_WORKERS);
  }
  Contender theirs(std::function<void()> run) {
    return {std::move(run), [] {},
            [this] {
              quieten();
            }};
  }
  Contender inRun(std::function<void()> run) {
    return {std::move(run), [this] { pool_->beginRun(); },
            [this] {
              pool_->endRun();
            }};
  }

  size_t threads_;
  int rounds_;
  Library ours_;
  Library theirs_;
  std::unique_ptr<pthreadpool, decltype(&pthreadpool_destroy)> system_;
  std::unique_ptr<ThreadPool> pool_;
};

}  // namespace

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::max(1, std::atoi(argv[1])) : 40;
  const Library ours = privateLibrary();
  const Library theirs = systemLibrary();
  require(ours.initialize(nullptr), "Initialising the private XNNPACK");
  require(theirs.initialize(nullptr), "Initialising the system's XNNPACK");
  for (const size_t threads : {1, 2}) {
    Bench bench(threads, rounds, ours, theirs);
    if (threads > 1) {
      for (const size_t items : {2, 8, 64, 1000}) bench.callOverhead("empty", noTask, items);
      for (const size_t items : {2, 8}) bench.callOverhead("5 us", fiveMicroseconds, items);
    }
    bench.convolution("1x1 M=49 K=2048 N=512", {7, 1, 2048, 512});
    bench.convolution("1x1 M=49 K=512 N=2048", {7, 1, 512, 2048});
    bench.convolution("3x3 7x7x512", {7, 3, 512, 512});
    bench.convolution("3x3 14x14x256", {14, 3, 256, 256});
    bench.convolution("3x3 56x56x64", {56, 3, 64, 64});
    bench.convolution("1x1 14x14 K=256 N=1024", {14, 1, 256, 1024});
    bench.convolution("1x1 56x56 K=64 N=256", {56, 1, 64, 256});
    bench.convolution("1x1 14x14 K=2048 N=8192", {14, 1, 2048, 8192});
    if (threads > 1) bench.idle({7, 3, 512, 512});
  }
  return 0;
}
