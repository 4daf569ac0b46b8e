// SPDX-License-Identifier: Apache-2.0
// Two clients of one host with a GPU, of which one sends what it can: the results of the other stay
// the same to the bit, and it gets no error. The GPU is Vulkan's implementation on the CPU, and
// messages of the validation layer end the test, since the host is a thread of this process.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/log.h"
#include "cache/testing/store_test_util.h"
#include "drivers/vulkan/testing/test_gpu.h"
#include "drivers/vulkan/vulkan_device.h"
#include "hal/cts/device_fixture.h"
#include "hal/cts/model_builder.h"
#include "ipc/host_process.h"
#include "ipc/hosted_device.h"
#include "ipc/testing/client_messages.h"
#include "ipc/testing/comes_true.h"
#include "ipc/testing/honest_client.h"
#include "ipc/testing/listening_host.h"
#include "ipc/testing/session_calls.h"

extern char** environ;

namespace hearth::ipc {
namespace {

using graph::OperandType;
using graph::OperationType;

constexpr uint64_t kClientBytes = uint64_t{64} << 20;
// Where the process that is killed finds the host, and the descriptor by which it says that it has
// computed.
constexpr char kSocketVariable[] = "HEARTH_TEST_SOCKET";
constexpr int kBeginning = 3;

Result<std::shared_ptr<HostedDevice>> join(const HostOpener& opener) {
  return HostedDevice::create(vulkan::kVulkanDeviceName, opener);
}

// A row of convolutions that takes some milliseconds.
graph::Model longModel() {
  constexpr uint32_t kSide = 48, kChannels = 16;
  hal::cts::ModelBuilder builder;
  const OperandType real = OperandType::kTensorFloat32;
  const graph::Dimensions shape = {1, kSide, kSide, kChannels};
  uint32_t value = builder.input(real, shape);
  const uint32_t one = builder.scalar(1);
  const uint32_t none = builder.scalar(0);
  const std::vector<float> weights(size_t{kChannels} * 9 * kChannels, 0.01f);
  const uint32_t filter = builder.constant(real, {kChannels, 3, 3, kChannels}, weights);
  const uint32_t bias = builder.constant(real, {kChannels}, std::vector<float>(kChannels, 0.5f));
  for (int layer = 0; layer < 4; ++layer) {
    const uint32_t next = layer < 3 ? builder.temporary(real, shape) : builder.output(real, shape);
    builder.operation(OperationType::kConv2d, {value, filter, bias, one, one, one, none}, {next});
    value = next;
  }
  return builder.model();
}

class HostileGpuClientTest : public testing::Test {
 protected:
  HostileGpuClientTest() {
    ::setenv("XDG_STATE_HOME", (folder_.path() / "state").c_str(), 1);
    base::setLogLevel(base::LogLevel::kOff);
  }
  ~HostileGpuClientTest() override {
    base::setLogLevelFromEnvironment();
    ::unsetenv("XDG_STATE_HOME");
  }
  void SetUp() override {
    auto device = vulkan::createValidatedDevice();
    if (!device && device.error().code() == ErrorCode::kUnsupported)
      GTEST_SKIP() << device.error().toString();
    ASSERT_TRUE(device) << device.error().toString();
    host_ = std::make_unique<ListeningHost>(*std::move(device), HostOptions{.bytes = kClientBytes});
    auto joined = ipc::join(host_->opener());
    ASSERT_TRUE(joined) << joined.error().toString();
    honest_ = std::make_unique<HonestClient>(*std::move(joined));
  }
  void TearDown() override {
    if (honest_ == nullptr) return;
    // Also when all is over.
    const int before = honest_->rounds();
    EXPECT_TRUE(
        comesTrue([&] { return honest_->rounds() > before + 1 || !honest_->problem().empty(); }));
    EXPECT_EQ(honest_->problem(), "");
    honest_.reset();
    host_.reset();
  }

  std::shared_ptr<hal::Device> join() {
    auto device = ipc::join(host_->opener());
    EXPECT_TRUE(device) << device.error().toString();
    return device ? *device : nullptr;
  }
  std::shared_ptr<Session> greet() {
    // Those of clients that have just gone may still be counted.
    std::shared_ptr<Session> session;
    EXPECT_TRUE(comesTrue([&] {
      auto socket = joinHost(host_->path());
      if (!socket) return false;
      auto opened = Session::open(std::move(*socket));
      if (opened) session = *opened;
      return opened.has_value();
    }));
    return session;
  }
  uint32_t below(size_t limit) { return static_cast<uint32_t>(random_() % limit); }

  const cache::TempFolder folder_{cache::TempFolder::Place::kMemory};
  std::mt19937 random_{41};
  std::unique_ptr<ListeningHost> host_;
  std::unique_ptr<HonestClient> honest_;
};

Result<Frame> compute(Session& session, uint64_t execution, Patience patience) {
  Outgoing computation;
  computation.request.initCompute().setExecution(execution);
  computation.request.getCompute().setDeadline(INT64_MAX);
  return session.call(computation, patience);
}
Result<Frame> compute(Session& session, uint64_t execution) {
  return compute(session, execution, session.patience({}));
}

TEST_F(HostileGpuClientTest, SendsMessagesOfAnyKind) {
  std::vector<std::vector<uint8_t>> inputs;
  for (const auto& entry : std::filesystem::directory_iterator(HEARTH_CORPUS)) {
    std::ifstream file(entry.path(), std::ios::binary);
    inputs.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  ASSERT_GE(inputs.size(), 5u);
  for (const std::vector<uint8_t>& input : inputs)
    for (int round = 0; round < 25; ++round) {
      std::vector<uint8_t> changed = input;
      for (uint32_t changes = below(4); changes > 0; --changes)
        changed[below(changed.size())] = static_cast<uint8_t>(random_());
      if (round % 3 == 2) changed.resize(below(changed.size()));
      auto socket = joinHost(host_->path());
      if (socket) sendMessages(socket->get(), changed);
    }
  EXPECT_NE(greet(), nullptr);
}

TEST_F(HostileGpuClientTest, ChangesItsCacheFiles) {
  const auto device = join();
  const auto model = std::make_shared<const graph::Model>(hal::cts::convolutionModel(9));
  std::vector<std::vector<uint8_t>> values = {
      valuesFor(model->main().operands[model->main().inputs[0]], random_)};
  std::vector<uint8_t> expected;
  const auto expectRight = [&](hal::PreparedModel& prepared) {
    const auto computed = computeModel(prepared, *model, values);
    ASSERT_TRUE(computed) << computed.error().toString();
    if (expected.empty()) expected = *computed;
    EXPECT_EQ(*computed, expected);
  };
  for (int round = 0; round < 24; ++round) {
    const base::Descriptor files[] = {base::Descriptor(::memfd_create("model", MFD_CLOEXEC)),
                                      base::Descriptor(::memfd_create("data", MFD_CLOEXEC))};
    const auto cache = [&] {
      hal::Cache given;
      given.token = {7};
      given.modelFiles.push_back(*files[0].duplicate());
      given.dataFiles.push_back(*files[1].duplicate());
      return given;
    };
    const auto prepared = device->prepareModel(model, {}, cache());
    ASSERT_TRUE(prepared) << prepared.error().toString();
    expectRight(**prepared);
    const base::Descriptor& file = files[round % 2];
    const off_t size = ::lseek(file.get(), 0, SEEK_END);
    ASSERT_GT(size, 0);
    if (round == 0) {
      const auto warm = device->prepareModelFromCache({}, cache());
      ASSERT_TRUE(warm) << warm.error().toString();
      expectRight(**warm);
    }
    if (round % 3 == 0) {
      ASSERT_EQ(::ftruncate(file.get(), below(static_cast<size_t>(size))), 0);
      EXPECT_FALSE(device->prepareModelFromCache({}, cache()));
    } else if (round % 3 == 1) {
      uint8_t byte = 0;
      const auto at = static_cast<off_t>(below(static_cast<size_t>(size)));
      ASSERT_EQ(::pread(file.get(), &byte, 1, at), 1);
      byte ^= 0x10;
      ASSERT_EQ(::pwrite(file.get(), &byte, 1, at), 1);
      EXPECT_FALSE(device->prepareModelFromCache({}, cache()));
    } else {
      // While the host reads it.
      std::jthread cutter([&](const std::stop_token& stop) {
        while (!stop.stop_requested())
          for (const off_t length : {off_t{0}, size})
            static_cast<void>(::ftruncate(file.get(), length));
      });
      for (int i = 0; i < 5; ++i) static_cast<void>(device->prepareModelFromCache({}, cache()));
    }
  }
}

TEST_F(HostileGpuClientTest, CutsAndGivesUpWhatIsInUse) {
  for (int round = 0; round < 20; ++round) {
    const auto session = greet();
    ASSERT_NE(session, nullptr);
    const uint64_t model = prepare(*session);
    const base::Descriptor file = pageOfMemory();
    const uint64_t execution = objectOf(execute(*session, model, file));
    {
      std::jthread cutter([&](const std::stop_token& stop) {
        while (!stop.stop_requested())
          for (const uint64_t length : {uint64_t{0}, kPage})
            static_cast<void>(::ftruncate(file.get(), static_cast<off_t>(length)));
      });
      for (int i = 0; i < 10; ++i) static_cast<void>(compute(*session, execution));
    }
    std::jthread computing([&] {
      for (int i = 0; i < 10; ++i) static_cast<void>(compute(*session, execution));
    });
    session->release(schema::Release::Kind::MODEL, model);
    if (round % 2 == 0) session->release(schema::Release::Kind::EXECUTION, execution);
  }
}

TEST_F(HostileGpuClientTest, GivesUpMemoryOfTheDeviceThatIsInUse) {
  constexpr uint32_t kCount = 10'000;
  const auto device = join();
  const auto model = std::make_shared<const graph::Model>(stepModel(kCount));
  for (int round = 0; round < 20; ++round) {
    auto prepared = device->prepareModel(model, {}, {});
    ASSERT_TRUE(prepared) << prepared.error().toString();
    auto buffer = device->allocate({}, {{*prepared, true, 0}, {*prepared, false, 0}});
    ASSERT_TRUE(buffer) << buffer.error().toString();
    hal::Argument state;
    state.kind = hal::Argument::Kind::kBuffer;
    state.token = (*buffer)->token();
    std::vector<float> step(kCount, 1.0f);
    auto execution = (*prepared)->createExecution({{state, hal::cts::argumentFor(step)}, {state}});
    ASSERT_TRUE(execution) << execution.error().toString();
    {
      std::jthread computing([&] {
        for (int i = 0; i < 5; ++i) EXPECT_TRUE((*execution)->compute({}).status);
      });
      buffer->reset();
      prepared->reset();
    }
    // Nobody has it any more, not even who knows its token.
    auto again = device->prepareModel(model, {}, {});
    ASSERT_TRUE(again) << again.error().toString();
    execution->reset();
    EXPECT_FALSE((*again)->createExecution({{state, hal::cts::argumentFor(step)}, {state}}));
  }
}

TEST_F(HostileGpuClientTest, NamesWhatIsNotThere) {
  const auto session = greet();
  const uint64_t model = prepare(*session);
  const base::Descriptor file = pageOfMemory();
  const uint64_t numbers[] = {0,         1, 4, 8, 9, kPage - 8, kPage, kPage + 1, uint64_t{1} << 40,
                              UINT64_MAX};
  const auto number = [&] {
    return numbers[below(std::size(numbers))];
  };
  int made = 0;
  for (int round = 0; round < 400; ++round) {
    Outgoing outgoing;
    auto request = executionOf(outgoing, model, 8);
    auto memory = request.getMemories()[0];
    memory.setDescriptor(outgoing.attachments.add(file.get()));
    memory.setSize(round % 3 == 0 ? number() : kPage);
    memory.setIsWritable(round % 7 != 0);
    const auto change = [&](schema::Argument::Builder argument) {
      switch (below(4)) {
        case 0:
          argument.setOffset(number());
          break;
        case 1:
          argument.setLength(number());
          break;
        case 2:
          // Those of the other client have these names on its own connection.
          argument.setKind(schema::Argument::Kind::BUFFER);
          argument.setBuffer(below(30));
          break;
        default:
          argument.initDimensions(2).set(0, static_cast<uint32_t>(number()));
      }
    };
    if (round % 5 != 4) change(request.getInputs()[below(2)]);
    if (round % 5 > 2) change(request.getOutputs()[0]);
    const auto frame = session->call(outgoing);
    ASSERT_TRUE(frame) << frame.error().toString();
    const Error error = errorOf(frame);
    if (error.code() != ErrorCode::kBadData ||
        error.message().find("something else") == std::string::npos)
      continue;
    const uint64_t execution = objectOf(frame);
    static_cast<void>(compute(*session, execution));
    session->release(schema::Release::Kind::EXECUTION, execution);
    ++made;
  }
  EXPECT_GT(made, 0);

  // Numbers that lie outside of a table.
  hal::cts::ModelBuilder builder;
  const uint32_t table = builder.input(OperandType::kTensorFloat32, {9, 4});
  const uint32_t indices = builder.input(OperandType::kTensorInt32, {5});
  builder.operation(OperationType::kGather, {table, builder.scalar(0), indices},
                    {builder.output(OperandType::kTensorFloat32, {5, 4})});
  const auto lookup = std::make_shared<const graph::Model>(builder.model());
  const auto device = join();
  const auto prepared = device->prepareModel(lookup, {}, {});
  ASSERT_TRUE(prepared) << prepared.error().toString();
  const graph::Subgraph& main = lookup->main();
  for (int round = 0; round < 50; ++round) {
    const auto computed = computeModel(**prepared, *lookup,
                                       {valuesFor(main.operands[main.inputs[0]], random_),
                                        valuesFor(main.operands[main.inputs[1]], random_)});
    ASSERT_FALSE(computed);
    EXPECT_EQ(computed.error().code(), ErrorCode::kBadData) << computed.error().toString();
  }
}

TEST_F(HostileGpuClientTest, AsksForMuchAtOnceAndCancels) {
  constexpr int kThreads = 8;
  const auto model = std::make_shared<const graph::Model>(longModel());
  const std::vector<std::vector<uint8_t>> values = {
      valuesFor(model->main().operands[model->main().inputs[0]], random_)};
  const auto device = join();
  const auto prepared = device->prepareModel(model, {}, {});
  ASSERT_TRUE(prepared) << prepared.error().toString();
  const auto expected = computeModel(**prepared, *model, values);
  ASSERT_TRUE(expected) << expected.error().toString();
  std::vector<std::jthread> threads;
  for (int thread = 0; thread < kThreads; ++thread)
    threads.emplace_back([&, thread] {
      for (int i = 0; i < 10; ++i) {
        // Deadlines that have passed, that pass meanwhile, and none.
        const base::Deadline deadline =
            i % 3 == 2 ? base::Deadline() : base::Deadline::after(i % 3 * 1'000'000 * (thread + 1));
        const auto computed = computeModel(**prepared, *model, values, deadline);
        if (computed)
          EXPECT_EQ(*computed, *expected);
        else
          EXPECT_TRUE(hal::cts::isMissedDeadline(computed.error())) << computed.error().toString();
      }
    });
  // Connections that are closed while the host computes for them.
  for (int i = 0; i < 20; ++i) {
    const auto session = greet();
    ASSERT_NE(session, nullptr);
    const uint64_t execution = objectOf(execute(*session, prepare(*session), pageOfMemory()));
    static_cast<void>(
        compute(*session, execution, Patience::until(base::Deadline::after(1000 * i))));
  }
}

TEST_F(HostileGpuClientTest, TakesAllTheMemoryThatItMay) {
  constexpr uint32_t kCount = 1 << 20;
  const auto device = join();
  const auto model = std::make_shared<const graph::Model>(stepModel(kCount));
  const auto prepared = device->prepareModel(model, {}, {});
  ASSERT_TRUE(prepared) << prepared.error().toString();
  const std::vector<hal::BufferRole> roles = {{*prepared, true, 0}};
  std::vector<std::unique_ptr<hal::Buffer>> taken;
  const auto takeAll = [&] {
    for (;;) {
      auto buffer = device->allocate({}, roles);
      if (!buffer) {
        EXPECT_EQ(buffer.error().code(), ErrorCode::kResourceExhaustedTransient)
            << buffer.error().toString();
        break;
      }
      taken.push_back(*std::move(buffer));
      ASSERT_LE(taken.size() * kCount * sizeof(float), kClientBytes);
    }
  };
  ASSERT_NO_FATAL_FAILURE(takeAll());
  EXPECT_GE(taken.size(), 8u);
  // Other clients have memory of their own.
  {
    const HonestClient other(join());
    EXPECT_TRUE(comesTrue([&] { return other.rounds() > 1 || !other.problem().empty(); }));
    EXPECT_EQ(other.problem(), "");
  }
  const size_t most = taken.size();
  taken.clear();
  EXPECT_TRUE(comesTrue([&] {
    takeAll();
    const bool isAll = taken.size() == most;
    taken.clear();
    return isAll;
  }));
}

TEST_F(HostileGpuClientTest, IsKilledWhileTheGpuComputes) {
  std::string socket = std::string(kSocketVariable) + "=" + host_->path();
  std::vector<char*> variables;
  for (char** variable = environ; *variable != nullptr; ++variable) variables.push_back(*variable);
  variables.push_back(socket.data());
  variables.push_back(nullptr);
  for (int round = 0; round < 5; ++round) {
    int ends[2];
    ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    base::Descriptor reading(ends[0]), writing(ends[1]);
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_adddup2(&actions, writing.get(), kBeginning);
    char program[] = "client", disabled[] = "--gtest_also_run_disabled_tests",
         filter[] = "--gtest_filter=*ComputesUntilItIsKilled";
    char* const arguments[] = {program, disabled, filter, nullptr};
    pid_t child = 0;
    const int spawned =
        ::posix_spawn(&child, "/proc/self/exe", &actions, nullptr, arguments, variables.data());
    ::posix_spawn_file_actions_destroy(&actions);
    ASSERT_EQ(spawned, 0);
    writing.reset();
    char byte = 0;
    EXPECT_EQ(::read(reading.get(), &byte, 1), 1) << "It has not computed.";
    std::this_thread::sleep_for(std::chrono::microseconds(below(20'000)));
    EXPECT_EQ(::kill(child, SIGKILL), 0);
    int status = 0;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFSIGNALED(status)) << status;
  }
}

// Run by the test above.
TEST(HostileGpuClientProcess, DISABLED_ComputesUntilItIsKilled) {
  const char* const path = std::getenv(kSocketVariable);
  ASSERT_NE(path, nullptr);
  const auto device = join([path] { return joinHost(path); });
  ASSERT_TRUE(device) << device.error().toString();
  const auto model = std::make_shared<const graph::Model>(longModel());
  const auto prepared = (*device)->prepareModel(model, {}, {});
  ASSERT_TRUE(prepared) << prepared.error().toString();
  std::mt19937 random(1);
  const std::vector<std::vector<uint8_t>> values = {
      valuesFor(model->main().operands[model->main().inputs[0]], random)};
  ASSERT_TRUE(computeModel(**prepared, *model, values));
  ASSERT_EQ(::write(kBeginning, "x", 1), 1);
  for (;;) ASSERT_TRUE(computeModel(**prepared, *model, values));
}

// No client is to blame, and each goes on with models that it prepares again, whatever others keep.
TEST(HungGpuTest, IsADeadObjectAfterWhichTheHostServesOn) {
  const std::shared_ptr<vulkan::Gpu> gpu = vulkan::openTestGpu();
  if (gpu == nullptr) return;
  auto pipelines = vulkan::Pipelines::create(gpu);
  ASSERT_TRUE(pipelines) << pipelines.error().toString();
  const ListeningHost host(
      vulkan::deviceOf(vulkan::validatedOptions(),
                       {gpu, *std::move(pipelines), std::make_shared<vulkan::DeviceTensors>(),
                        std::make_shared<vulkan::KnownAnswers>()}),
      {});
  const auto model = std::make_shared<const graph::Model>(longModel());
  std::mt19937 random(1);
  const std::vector<std::vector<uint8_t>> values = {
      valuesFor(model->main().operands[model->main().inputs[0]], random)};
  std::vector<std::shared_ptr<hal::Device>> clients;
  std::vector<std::shared_ptr<hal::PreparedModel>> models;
  std::vector<uint8_t> expected;
  for (int i = 0; i < 2; ++i) {
    const auto device = join(host.opener());
    ASSERT_TRUE(device) << device.error().toString();
    clients.push_back(*device);
    const auto prepared = clients.back()->prepareModel(model, {}, {});
    ASSERT_TRUE(prepared) << prepared.error().toString();
    models.push_back(*prepared);
    const auto computed = computeModel(*models.back(), *model, values);
    ASSERT_TRUE(computed) << computed.error().toString();
    expected = *computed;
  }
  gpu->functionsForTest().vkWaitForFences = [](VkDevice, uint32_t, const VkFence*, VkBool32,
                                               uint64_t) {
    return VK_TIMEOUT;
  };
  for (const auto& hung : models) {
    const auto computed = computeModel(*hung, *model, values);
    ASSERT_FALSE(computed);
    EXPECT_EQ(computed.error().code(), ErrorCode::kDeadObject) << computed.error().toString();
  }
  for (const auto& device : clients) {
    const auto prepared = device->prepareModel(model, {}, {});
    ASSERT_TRUE(prepared) << prepared.error().toString();
    const auto computed = computeModel(**prepared, *model, values);
    ASSERT_TRUE(computed) << computed.error().toString();
    EXPECT_EQ(*computed, expected);
  }
}

}  // namespace
}  // namespace hearth::ipc
