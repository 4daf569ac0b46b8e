// SPDX-License-Identifier: Apache-2.0
// What it costs that a driver is in another process: executions, starts from the compilation cache
// and memory through a host beside the same in this process, in turns of one run. Arguments: models
// (default: MobileNetV2 of the test data).
//
// The host is a process of its own that serves hearth-cpu over sockets, as `hearth serve` does, but
// for the sandbox.
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/log.h"
#include "drivers/cpu/cpu_device.h"
#include "frontends/tflite/model_file.h"
#include "futex_pair.h"
#include "hal/cts/model_builder.h"
#include "ipc/host.h"
#include "ipc/host_process.h"
#include "ipc/hosted_device.h"

namespace {

using namespace hearth;
using Clock = std::chrono::steady_clock;
using Microseconds = std::chrono::duration<double, std::micro>;

constexpr int kRounds = 7;
constexpr int kPreparations = 8;
constexpr int kInferences = 10;          // in each turn
constexpr double kInferenceTime = 40e6;  // of a comparison at most, in microseconds
constexpr int kClients = 10;
constexpr uint64_t kWorkNs = 1'500'000'000;  // that a measurement of throughput takes

[[noreturn]] void die(const std::string& what) {
  std::fprintf(stderr, "services_bench: %s\n", what.c_str());
  std::exit(1);
}
template <typename Value>
Value orDie(Result<Value> result) {
  if (!result) die(result.error().toString());
  return std::move(*result);
}
void orDie(const Status& status) {
  if (!status) die(status.error().toString());
}

std::vector<int> processors() {
  cpu_set_t set;
  ::sched_getaffinity(0, sizeof set, &set);
  std::vector<int> found;
  for (int i = 0; i < CPU_SETSIZE; ++i)
    if (CPU_ISSET(i, &set)) found.push_back(i);
  return found;
}
void bindTo(const std::vector<int>& all) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int processor : all) CPU_SET(processor, &set);
  ::sched_setaffinity(0, sizeof set, &set);
}

// A forked process that calls `work`; killed by the destructor.
class Child {
 public:
  explicit Child(const std::function<void()>& work) : process_(::fork()) {
    if (process_ != 0) return;
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    work();
    ::_exit(0);
  }
  ~Child() {
    ::kill(process_, SIGKILL);
    ::waitpid(process_, nullptr, 0);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  pid_t process() const { return process_; }

 private:
  const pid_t process_;
};

// A host of hearth-cpu for all who join its socket.
class Service {
 public:
  Service(const std::string& path, ipc::HostOptions options, std::vector<int> where = {})
      : path_(path), listening_(orDie(ipc::listenAt(path))), child_([this, options, where] {
          ipc::shareMallocArenas();
          if (!where.empty()) bindTo(where);
          const base::Descriptor never(::eventfd(0, EFD_CLOEXEC));
          ipc::Host host(cpu::createCpuDevice(), options);
          static_cast<void>(host.serveAll(listening_.get(), never.get()));
        }) {}
  ~Service() { std::filesystem::remove(path_); }

  std::shared_ptr<hal::Device> device() const {
    return orDie(
        ipc::HostedDevice::create("hearth-cpu", [path = path_] { return ipc::joinHost(path); }));
  }
  pid_t process() const { return child_.process(); }

 private:
  const std::string path_;
  const base::Descriptor listening_;
  const Child child_;
};

// An execution of a model with random-looking inputs, behind pointers or in shared memory.
class Run {
 public:
  Run(const std::shared_ptr<hal::PreparedModel>& prepared, const graph::Model& model,
      bool isInMemories) {
    hal::Request request;
    for (const uint32_t input : model.main().inputs)
      request.inputs.push_back(argument(model.main().operands[input], isInMemories, true));
    for (const uint32_t output : model.main().outputs)
      request.outputs.push_back(argument(model.main().operands[output], isInMemories, false));
    execution_ = orDie(prepared->createExecution(std::move(request)));
  }
  void compute() { orDie(execution_->compute({}).status); }
  double timeOne() {
    const Clock::time_point begin = Clock::now();
    compute();
    return Microseconds(Clock::now() - begin).count();
  }

 private:
  hal::Argument argument(const graph::Operand& operand, bool isInMemories, bool isInput) {
    hal::Argument argument;
    argument.length = orDie(graph::byteSize(operand));
    uint8_t* bytes;
    if (isInMemories) {
      argument.kind = hal::Argument::Kind::kPool;
      argument.pool = orDie(memory::Pool::anonymous(argument.length));
      bytes = argument.pool->mutableData();
    } else {
      buffers_.push_back(std::make_unique<std::vector<uint8_t>>(argument.length));
      bytes = buffers_.back()->data();
      argument.kind = hal::Argument::Kind::kPointer;
      argument.pointer = bytes;
    }
    if (isInput && operand.type == graph::OperandType::kTensorFloat32) {
      for (uint64_t i = 0; i + sizeof(float) <= argument.length; i += sizeof(float)) {
        const float value = static_cast<float>(i % 97) / 97.0f;
        std::memcpy(bytes + i, &value, sizeof value);
      }
    }
    return argument;
  }

  std::vector<std::unique_ptr<std::vector<uint8_t>>> buffers_;
  std::unique_ptr<hal::Execution> execution_;
};

double quantile(std::vector<double> values, double part) {
  std::ranges::sort(values);
  return values[static_cast<size_t>(static_cast<double>(values.size() - 1) * part)];
}

// One side of a comparison: what it does, and how long that took.
struct Side {
  std::string name;
  std::function<double()> timeOne;  // in microseconds
  std::vector<double> times{};
};

void takeTurns(std::vector<Side>& sides, int calls, int rounds) {
  for (int round = 0; round < rounds; ++round)
    for (size_t i = 0; i < sides.size(); ++i) {
      Side& side = sides[(i + static_cast<size_t>(round)) % sides.size()];
      for (int call = 0; call < calls / 10 + 1; ++call) side.timeOne();
      for (int call = 0; call < calls; ++call) side.times.push_back(side.timeOne());
    }
}

// Prints the medians of the sides beside the first one's.
void print(const std::string& what, const std::vector<Side>& sides) {
  const double first = quantile(sides[0].times, 0.5);
  for (const Side& side : sides) {
    const double median = quantile(side.times, 0.5);
    std::printf("| %s | %s | %.2f (%.2f–%.2f) | %.3f |\n", what.c_str(), side.name.c_str(), median,
                quantile(side.times, 0.05), quantile(side.times, 0.95), median / first);
    std::fflush(stdout);
  }
}

void compare(const std::string& what, std::vector<Side> sides, int calls) {
  takeTurns(sides, calls, kRounds);
  print(what, sides);
}

void compareSmall(const std::string& folder, const std::string& what, const std::vector<int>& mine,
                  const std::vector<int>& theirs) {
  const std::vector<int> before = processors();
  bench::FutexPair futex;
  const Child other([&] {
    bindTo(theirs);
    futex.serve();
  });
  const Service mailboxes(folder + "/mailboxes.sock", {.isShared = false}, theirs);
  const Service messages(folder + "/messages.sock", {.isShared = false, .mailboxes = 0}, theirs);
  bindTo(mine);
  const auto model = std::make_shared<const graph::Model>(hal::cts::addModel({16}));
  std::vector<Side> sides;
  sides.push_back({"futex round trip", [&] {
                     const Clock::time_point begin = Clock::now();
                     futex.call();
                     return Microseconds(Clock::now() - begin).count();
                   }});
  std::vector<std::unique_ptr<Run>> runs;
  for (const auto& [name, device] : {std::pair("in process", cpu::createCpuDevice()),
                                     std::pair("service, mailbox", mailboxes.device()),
                                     std::pair("service, messages", messages.device())}) {
    const auto prepared = orDie(device->prepareModel(model, {.threads = 1}, {}));
    runs.push_back(std::make_unique<Run>(prepared, *model, true));
    sides.push_back({name, [run = runs.back().get()] {
                       return run->timeOne();
                     }});
  }
  compare("ADD of 16 floats, " + what, std::move(sides), 2000);
  runs.clear();
  bindTo(before);
}

std::vector<base::Descriptor> openFiles(const std::string& folder, const char* kind,
                                        uint32_t count) {
  std::vector<base::Descriptor> files;
  for (uint32_t i = 0; i < count; ++i)
    files.push_back(
        orDie(base::Descriptor::open(folder + "/" + kind + std::to_string(i), O_RDWR | O_CREAT)));
  return files;
}

// A model with cache files of its own.
class Cached {
 public:
  Cached(std::string folder, const hal::Device& device)
      : folder_(std::move(folder)), counts_(orDie(device.numberOfCacheFilesNeeded())) {
    std::filesystem::create_directories(folder_);
  }
  hal::Cache open() const {
    hal::Cache cache{openFiles(folder_, "model", counts_.model),
                     openFiles(folder_, "data", counts_.data)};
    cache.token.fill(7);
    return cache;
  }

 private:
  const std::string folder_;
  const hal::CacheFileCounts counts_;
};

// The sum of the lines of /proc/PID/smaps_rollup that begin with one of `names`, in KiB.
uint64_t memoryOf(const std::string& process, const std::vector<std::string>& names) {
  std::ifstream file("/proc/" + process + "/smaps_rollup");
  uint64_t sum = 0;
  for (std::string line; std::getline(file, line);)
    for (const std::string& name : names)
      if (line.starts_with(name)) sum += std::strtoull(line.c_str() + name.size(), nullptr, 10);
  return sum;
}
const std::vector<std::string> kPrivate = {"Private_Clean:", "Private_Dirty:"};

void compareStarts(const std::string& folder, const std::string& name, const Service& service,
                   const std::shared_ptr<const graph::Model>& model) {
  std::vector<Side> sides;
  std::vector<std::unique_ptr<Cached>> caches;
  uint64_t clientMemory = 0;
  for (const auto& [side, device] :
       {std::pair("in process", cpu::createCpuDevice()), std::pair("service", service.device())}) {
    caches.push_back(std::make_unique<Cached>(folder + "/" + side, *device));
    const Cached* const cached = caches.back().get();
    orDie(device->prepareModel(model, {.threads = 1}, cached->open()));
    device->flush();
    if (std::strcmp(side, "service") == 0) {
      const uint64_t before = memoryOf("self", kPrivate);
      const auto prepared = orDie(device->prepareModelFromCache({.threads = 1}, cached->open()));
      clientMemory = memoryOf("self", kPrivate) - std::min(before, memoryOf("self", kPrivate));
    }
    sides.push_back({side, [device, cached] {
                       hal::Cache cache = cached->open();
                       const Clock::time_point begin = Clock::now();
                       const auto prepared =
                           orDie(device->prepareModelFromCache({.threads = 1}, std::move(cache)));
                       return Microseconds(Clock::now() - begin).count();
                     }});
  }
  compare(name + ", prepared from the cache", std::move(sides), 30);
  std::printf("| %s, memory of the client for it | service | %llu KiB | |\n", name.c_str(),
              static_cast<unsigned long long>(clientMemory));
}

// Where the pages of a model's memory lie in the caches makes several hundredths of its time, on
// either side, so each side prepares the model several times. A processor of a virtual machine gets
// slower and faster by as much within seconds, so turns are short.
void compareInferences(const std::string& name, const Service& service,
                       const std::shared_ptr<const graph::Model>& model) {
  for (const bool isInMemories : {true, false}) {
    std::vector<Side> all;
    for (int preparation = 0; preparation < kPreparations; ++preparation) {
      std::vector<Side> sides;
      std::vector<std::unique_ptr<Run>> runs;
      for (const auto& [side, device] : {std::pair("in process", cpu::createCpuDevice()),
                                         std::pair("service", service.device())}) {
        const auto prepared = orDie(device->prepareModel(model, {.threads = 1}, {}));
        runs.push_back(std::make_unique<Run>(prepared, *model, isInMemories));
        sides.push_back({side, [run = runs.back().get()] {
                           return run->timeOne();
                         }});
      }
      const double turns = kInferenceTime / kPreparations / (4 * kInferences * sides[0].timeOne());
      takeTurns(sides, kInferences, std::clamp(static_cast<int>(turns), 2, 40));
      if (all.empty()) all.resize(sides.size());
      for (size_t i = 0; i < sides.size(); ++i) {
        all[i].name = sides[i].name;
        all[i].times.insert(all[i].times.end(), sides[i].times.begin(), sides[i].times.end());
      }
    }
    print(name + (isInMemories ? ", arguments in memories" : ", arguments behind pointers"), all);
  }
}

// How long it takes from the death of a host that computes to the next result: the host is started
// again, and the model prepared again.
void measureRecovery(const std::string& folder, const std::string& name,
                     const std::shared_ptr<const graph::Model>& model) {
  std::vector<double> starts;
  std::vector<double> recoveries;
  std::unique_ptr<Service> service;
  const std::string path = folder + "/mortal.sock";
  const auto restart = [&] {
    service.reset();
    const Clock::time_point begin = Clock::now();
    service = std::make_unique<Service>(path, ipc::HostOptions{.isShared = false});
    return begin;
  };
  restart();
  const auto device = service->device();
  const auto prepared = orDie(device->prepareModel(model, {.threads = 1}, {}));
  Run run(prepared, *model, true);
  for (int i = 0; i < 30; ++i) {
    for (int j = 0; j < 3; ++j) run.compute();
    Clock::time_point begin = restart();
    run.compute();
    recoveries.push_back(Microseconds(Clock::now() - begin).count());
    // The same by a client that never had another host.
    begin = restart();
    const auto other = service->device();
    const auto again = orDie(other->prepareModel(model, {.threads = 1}, {}));
    Run first(again, *model, true);
    first.compute();
    starts.push_back(Microseconds(Clock::now() - begin).count());
    run.compute();
  }
  std::printf(
      "| %s, from the death of a host to a result | first start of a client | %.0f | 1.000 "
      "|\n| %s, from the death of a host to a result | recovery | %.0f (%.0f–%.0f) | %.3f "
      "|\n",
      name.c_str(), quantile(starts, 0.5), name.c_str(), quantile(recoveries, 0.5),
      quantile(recoveries, 0.05), quantile(recoveries, 0.95),
      quantile(recoveries, 0.5) / quantile(starts, 0.5));
}

// Computes until the time is over, in so many threads, and returns how often. Keeps the model until
// `whenDone` returns.
uint64_t computeFor(const std::shared_ptr<hal::Device>& device,
                    const std::shared_ptr<const graph::Model>& model, int threads,
                    const std::function<void()>& whenReady, const std::function<void()>& whenDone) {
  const auto prepared = orDie(device->prepareModel(model, {.threads = 1}, {}));
  std::vector<std::unique_ptr<Run>> runs;
  for (int i = 0; i < threads; ++i) runs.push_back(std::make_unique<Run>(prepared, *model, true));
  for (const auto& run : runs) run->compute();
  whenReady();
  const auto end = Clock::now() + std::chrono::nanoseconds(kWorkNs);
  std::atomic<uint64_t> count = 0;
  {
    std::vector<std::jthread> workers;
    for (const auto& run : runs)
      workers.emplace_back([&, run = run.get()] {
        for (; Clock::now() < end; ++count) run->compute();
      });
  }
  whenDone();
  return count;
}

struct Crowd {
  double rate = 0;   // computations in a second
  uint64_t pss = 0;  // of host and clients, in KiB
};

// So many processes, each with so many executions at a time, on one service.
Crowd measureCrowd(const Service& service, const std::shared_ptr<const graph::Model>& model,
                   int clients, int threads) {
  const base::Descriptor ready(::eventfd(0, EFD_CLOEXEC | EFD_SEMAPHORE));
  const base::Descriptor go(::eventfd(0, EFD_CLOEXEC | EFD_SEMAPHORE));
  const base::Descriptor done(::eventfd(0, EFD_CLOEXEC | EFD_SEMAPHORE));
  const base::Descriptor leave(::eventfd(0, EFD_CLOEXEC | EFD_SEMAPHORE));
  const base::Descriptor result(::eventfd(0, EFD_CLOEXEC));
  const base::Descriptor ended(::eventfd(0, EFD_CLOEXEC | EFD_SEMAPHORE));
  const auto add = [](const base::Descriptor& event, uint64_t value) {
    if (::write(event.get(), &value, sizeof value) != sizeof value) die("write");
  };
  const auto take = [](const base::Descriptor& event) {
    uint64_t value = 0;
    if (::read(event.get(), &value, sizeof value) != sizeof value) die("read");
    return value;
  };
  std::vector<std::unique_ptr<Child>> children;
  for (int i = 0; i < clients; ++i)
    children.push_back(std::make_unique<Child>([&] {
      add(result, computeFor(
                      service.device(), model, threads,
                      [&] {
                        add(ready, 1);
                        take(go);
                      },
                      [&] {
                        add(done, 1);
                        take(leave);
                      }));
      add(ended, 1);
      ::pause();
    }));
  for (int i = 0; i < clients; ++i) take(ready);
  add(go, static_cast<uint64_t>(clients));
  for (int i = 0; i < clients; ++i) take(done);
  // Now that as many executions were computed at once, whoever wanted them.
  Crowd crowd;
  crowd.pss = memoryOf(std::to_string(service.process()), {"Pss:"});
  for (const auto& child : children)
    crowd.pss += memoryOf(std::to_string(child->process()), {"Pss:"});
  // This process only measures. Without it, its share of the pages that it has in common with them
  // would be theirs.
  crowd.pss += memoryOf("self", {"Pss:"}) - memoryOf("self", kPrivate);
  add(leave, static_cast<uint64_t>(clients));
  for (int i = 0; i < clients; ++i) take(ended);
  crowd.rate = static_cast<double>(take(result)) / (static_cast<double>(kWorkNs) * 1e-9);
  return crowd;
}

void compareCrowds(const std::string& folder, const std::string& name,
                   const std::shared_ptr<const graph::Model>& model) {
  std::vector<double> rates[2];
  std::vector<double> sizes[2];
  for (int round = 0; round < 3; ++round) {
    // A host for each, so that none keeps what another one needed.
    for (const bool isMany : {false, true}) {
      const Service service(folder + "/crowd.sock", {.isShared = true});
      const Crowd crowd = isMany ? measureCrowd(service, model, kClients, 1)
                                 : measureCrowd(service, model, 1, kClients);
      rates[isMany].push_back(crowd.rate);
      sizes[isMany].push_back(static_cast<double>(crowd.pss));
    }
  }
  const auto print = [&](const char* what, const char* side, std::vector<double>* values,
                         int which) {
    const double median = quantile(values[which], 0.5);
    std::printf("| %s, %s | %s | %.0f (%.0f–%.0f) | %.3f |\n", name.c_str(), what, side, median,
                quantile(values[which], 0), quantile(values[which], 1),
                median / quantile(values[0], 0.5));
  };
  print("inferences in a second", "1 client, 10 executions", rates, 0);
  print("inferences in a second", "10 clients", rates, 1);
  print("PSS of host and clients, KiB", "1 client, 10 executions", sizes, 0);
  print("PSS of host and clients, KiB", "10 clients", sizes, 1);
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> models(argv + 1, argv + argc);
  if (const char* const data = std::getenv("HEARTH_TEST_DATA"); models.empty() && data != nullptr)
    models.push_back(std::string(data) + "/data/models/mobilenet_v2_quantized_1x3x224x224.tflite");
  // Hosts end here on purpose.
  base::setLogLevel(base::LogLevel::kOff);
  std::string folder = std::filesystem::temp_directory_path() / "hearth-services-XXXXXX";
  if (::mkdtemp(folder.data()) == nullptr) die("mkdtemp");
  ::setenv("HEARTH_STORE", (folder + "/store").c_str(), 1);
  ::setenv("XDG_STATE_HOME", (folder + "/state").c_str(), 1);
  const std::vector<int> all = processors();
  std::printf(
      "Times in microseconds: median (5 to 95 of 100).\n\n"
      "| what | side | measured | ratio to the first |\n|---|---|---|---|\n");
  if (all.size() > 1) compareSmall(folder, "two processors", {all[0]}, {all[1]});
  compareSmall(folder, "one processor", {all[0]}, {all[0]});
  for (const std::string& path : models) {
    const std::string name = std::filesystem::path(path).stem();
    const auto file = orDie(tflite::ModelFile::open(path));
    const auto model = orDie(file->importSubgraph(0)).model;
    // Before this process has threads.
    compareCrowds(folder, name, model);
    const Service service(folder + "/service.sock", {.isShared = false});
    compareInferences(name, service, model);
    compareStarts(folder, name, service, model);
    measureRecovery(folder, name, model);
  }
  std::filesystem::remove_all(folder);
  return 0;
}
