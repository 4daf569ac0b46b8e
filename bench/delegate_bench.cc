// SPDX-License-Identifier: Apache-2.0
// What it costs that a vendor's delegate is in a host: executions through the host beside the
// delegate called directly in this process, in turns of one run, and the start of another process
// with a model that the host has already. Arguments: the delegate's library, a model, and options
// as KEY=VALUE.
//
// The host is a process of its own, as `hearth serve` is, but for the sandbox.
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "drivers/delegate/delegate_device.h"
#include "drivers/delegate/offered_graph.h"
#include "frontends/tflite/model_file.h"
#include "ipc/host.h"
#include "ipc/host_process.h"
#include "ipc/hosted_device.h"
#include "memory/pool.h"
#include "ops/specialized_model.h"

namespace {

using namespace hearth;
using Clock = std::chrono::steady_clock;

constexpr int kRounds = 9;
constexpr int kCalls = 400;  // in each turn
constexpr int kStarts = 25;  // of processes

template <typename Value>
Value orDie(Result<Value> result) {
  if (result) return std::move(*result);
  std::fprintf(stderr, "delegate_bench: %s\n", result.error().toString().c_str());
  std::exit(1);
}
void orDie(const Status& status) {
  if (!status) orDie(Result<int>(std::unexpected(status.error())));
}

double microsecondsSince(Clock::time_point begin) {
  return std::chrono::duration<double, std::micro>(Clock::now() - begin).count();
}

// What a process has computed, in microseconds.
double processorTime(pid_t process) {
  clockid_t clock = CLOCK_PROCESS_CPUTIME_ID;
  if (process != 0 && ::clock_getcpuclockid(process, &clock) != 0) std::exit(1);
  timespec time;
  if (::clock_gettime(clock, &time) != 0) std::exit(1);
  return static_cast<double>(time.tv_sec) * 1e6 + static_cast<double>(time.tv_nsec) / 1e3;
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

// Memory for the inputs or outputs of a model, one pool for each.
using Buffers = std::vector<memory::PoolRef>;

Buffers buffersOf(const graph::Model& model, const std::vector<uint32_t>& operands) {
  Buffers buffers;
  for (const uint32_t operand : operands)
    buffers.push_back(
        orDie(memory::Pool::anonymous(orDie(graph::byteSize(model.main().operands[operand])))));
  return buffers;
}

// `kind` is kPointer or kPool: a host sees pools as they are, and copies of what pointers refer to.
std::vector<hal::Argument> argumentsOf(const Buffers& buffers, hal::Argument::Kind kind) {
  std::vector<hal::Argument> arguments;
  for (const memory::PoolRef& buffer : buffers) {
    hal::Argument& argument = arguments.emplace_back();
    argument.kind = kind;
    if (kind == hal::Argument::Kind::kPool)
      argument.pool = buffer;
    else
      argument.pointer = buffer->mutableData();
    argument.length = buffer->size();
  }
  return arguments;
}

// What a computation took, and what of that it took in the host's driver; microseconds.
struct Times {
  double all, inDriver;
};
Times timed(hal::Execution& execution) {
  const Clock::time_point begin = Clock::now();
  const hal::ExecutionResult result = execution.compute({});
  const double all = microsecondsSince(begin);
  orDie(result.status);
  return {all, static_cast<double>(result.timing.inDriver) / 1e3};
}

// A client of the host with an execution.
struct Client {
  Client(const std::string& socket, const std::shared_ptr<const graph::Model>& model)
      : device(orDie(ipc::HostedDevice::create("npu", [socket] { return ipc::joinHost(socket); }))),
        inputs(buffersOf(*model, model->main().inputs)),
        outputs(buffersOf(*model, model->main().outputs)) {
    static_cast<void>(orDie(device->supportedOperations(*model)));
    prepared = orDie(device->prepareModel(model, {.threads = 1}, {}));
    execution = executionWith(hal::Argument::Kind::kPointer);
  }
  std::unique_ptr<hal::Execution> executionWith(hal::Argument::Kind kind) {
    return orDie(
        prepared->createExecution({argumentsOf(inputs, kind), argumentsOf(outputs, kind)}));
  }
  void compute() { static_cast<void>(timed(*execution)); }

  std::shared_ptr<hal::Device> device;
  Buffers inputs, outputs;
  std::shared_ptr<hal::PreparedModel> prepared;
  std::unique_ptr<hal::Execution> execution;
};

// The delegate, called in this process without a device.
std::unique_ptr<drivers::delegate::OfferedGraph> direct(
    const drivers::delegate::DeviceSettings& settings, const graph::Model& model) {
  using namespace drivers::delegate;
  std::vector<graph::Dimensions> shapes;
  for (const uint32_t input : model.main().inputs)
    shapes.push_back(model.main().operands[input].dimensions);
  auto library = orDie(VendorLibrary::load(settings.library));
  auto special = orDie(ops::specialize(model, shapes));
  auto graph = orDie(OfferedGraph::create(writeGraph(special.model, settings.version), *library,
                                          settings.options, 1));
  orDie(graph->prepare());
  return graph;
}

// How long a new process takes from joining the host to its first result, in microseconds.
double startOfAnother(const std::string& socket, const std::shared_ptr<const graph::Model>& model) {
  int ends[2];
  if (::pipe(ends) != 0) std::exit(1);
  const pid_t child = ::fork();
  if (child == 0) {
    const Clock::time_point begin = Clock::now();
    Client client(socket, model);
    client.compute();
    const double time = microsecondsSince(begin);
    ::_exit(::write(ends[1], &time, sizeof time) == sizeof time ? 0 : 1);
  }
  double time = 0;
  if (::read(ends[0], &time, sizeof time) != sizeof time) std::exit(1);
  ::waitpid(child, nullptr, 0);
  ::close(ends[0]);
  ::close(ends[1]);
  return time;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: delegate_bench LIBRARY MODEL [KEY=VALUE...]\n");
    return 2;
  }
  drivers::delegate::DeviceSettings settings{.name = "npu", .library = argv[1]};
  for (int i = 3; i < argc; ++i) {
    const std::string text = argv[i];
    const size_t equals = std::min(text.find('='), text.size() - 1);
    settings.options.emplace_back(text.substr(0, equals), text.substr(equals + 1));
  }
  std::string folder = "/tmp/delegate-bench-XXXXXX";
  if (::mkdtemp(folder.data()) == nullptr) return 1;
  const std::string socket = folder + "/socket";
  const base::Descriptor listening = orDie(ipc::listenAt(socket));
  const pid_t host = ::fork();
  if (host == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ipc::shareMallocArenas();
    const base::Descriptor never(::eventfd(0, EFD_CLOEXEC));
    ipc::Host served(orDie(drivers::delegate::createDevice(settings)),
                     {.isShared = true, .keptModels = 4});
    static_cast<void>(served.serveAll(listening.get(), never.get()));
    ::_exit(0);
  }
  const auto file = orDie(tflite::ModelFile::open(argv[2]));
  const std::shared_ptr<const graph::Model> model = orDie(file->importSubgraph(0)).model;
  const double first = startOfAnother(socket, model);
  std::vector<double> starts;
  for (int i = 0; i < kStarts; ++i) starts.push_back(startOfAnother(socket, model));

  Client client(socket, model);
  const auto graph = direct(settings, *model);
  std::vector<const void*> inputs;
  std::vector<void*> outputs;
  for (const memory::PoolRef& input : client.inputs) inputs.push_back(input->data());
  for (const memory::PoolRef& output : client.outputs) outputs.push_back(output->mutableData());
  const auto withPools = client.executionWith(hal::Argument::Kind::kPool);
  std::vector<double> hosted, inDriver, pooled, inDriverPooled, called;
  // Processor time of a call, on the average of a turn.
  std::vector<double> inClient, inHost, inCall;
  for (int round = 0; round < kRounds; ++round) {
    double ours = processorTime(0);
    const double theirs = processorTime(host);
    for (int call = 0; call < kCalls; ++call) {
      const Times times = timed(*client.execution);
      hosted.push_back(times.all);
      inDriver.push_back(times.inDriver);
    }
    inClient.push_back((processorTime(0) - ours) / kCalls);
    inHost.push_back((processorTime(host) - theirs) / kCalls);
    for (int call = 0; call < kCalls; ++call) {
      const Times times = timed(*withPools);
      pooled.push_back(times.all);
      inDriverPooled.push_back(times.inDriver);
    }
    ours = processorTime(0);
    for (int call = 0; call < kCalls; ++call) {
      const Clock::time_point begin = Clock::now();
      orDie(graph->compute(inputs, outputs));
      called.push_back(microsecondsSince(begin));
    }
    inCall.push_back((processorTime(0) - ours) / kCalls);
  }
  std::printf("a process that starts: first %.2f ms, with the model there %.2f ms (median of %d)\n",
              first / 1000, median(starts) / 1000, kStarts);
  const auto print = [&](const char* how, const std::vector<double>& all,
                         const std::vector<double>& driver) {
    std::printf("%s: %.1f us, %.1f us more; in the driver %.1f us, %.1f us more\n", how,
                median(all), median(all) - median(called), median(driver),
                median(driver) - median(called));
  };
  std::printf("an execution, called directly: %.1f us\n", median(called));
  print("through the host", hosted, inDriver);
  print("through the host, with its arguments in shared memory", pooled, inDriverPooled);
  std::printf(
      "its processor time: called directly %.1f us, through the host %.1f us there and %.1f us in "
      "the client\n",
      median(inCall), median(inHost), median(inClient));
  ::kill(host, SIGKILL);
  ::waitpid(host, nullptr, 0);
  std::filesystem::remove_all(folder);
  return 0;
}
