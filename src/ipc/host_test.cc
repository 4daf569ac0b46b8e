// SPDX-License-Identifier: Apache-2.0
// What clients must not be able to do to a host, nor to each other.
#include "ipc/host.h"

#include <capnp/serialize.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "base/log.h"
#include "graph/model_bytes.h"
#include "hal/cts/device_fixture.h"
#include "hal/cts/model_builder.h"
#include "ipc/host_process.h"
#include "ipc/hosted_device.h"
#include "ipc/session.h"
#include "ipc/testing/comes_true.h"
#include "ipc/testing/fake_device.h"
#include "ipc/testing/listening_host.h"
#include "ipc/testing/local_host.h"
#include "ipc/testing/sealed_memory.h"
#include "ipc/testing/session_calls.h"

namespace hearth::ipc {
namespace {

using hal::cts::addModel;
using testing::HasSubstr;

size_t openDescriptors() {
  const std::filesystem::directory_iterator all("/proc/self/fd");
  return static_cast<size_t>(std::distance(begin(all), end(all)));
}

// A host that listens on a socket.
class HostTest : public testing::Test {
 protected:
  void TearDown() override {
    host_.reset();
    EXPECT_EQ(fake_->prepared, 0);
    EXPECT_EQ(fake_->executions, 0);
  }

  const std::string& path() const { return host_->path(); }
  base::Descriptor connect() {
    auto socket = joinHost(path());
    EXPECT_TRUE(socket) << socket.error().toString();
    return socket ? std::move(*socket) : base::Descriptor();
  }
  std::shared_ptr<Session> greet() {
    auto session = Session::open(connect());
    EXPECT_TRUE(session) << session.error().toString();
    return session ? *session : nullptr;
  }
  // A model of two floats, on a connection of its own.
  std::shared_ptr<hal::PreparedModel> prepareAlone() {
    auto device = HostedDevice::create("fake", host_->opener());
    EXPECT_TRUE(device) << device.error().toString();
    if (!device) return nullptr;
    auto prepared =
        (*device)->prepareModel(std::make_shared<const graph::Model>(addModel({2})), {}, {});
    EXPECT_TRUE(prepared) << prepared.error().toString();
    return prepared ? *prepared : nullptr;
  }
  static void expectSums(hal::PreparedModel& prepared, float number) {
    std::vector<float> a = {number, number + 1};
    std::vector<float> out(2);
    const hal::ExecutionResult result = hal::cts::computeOnce(
        prepared,
        {{hal::cts::argumentFor(a), hal::cts::argumentFor(a)}, {hal::cts::argumentFor(out)}});
    ASSERT_TRUE(result.status) << result.status.error().toString();
    EXPECT_THAT(out, testing::ElementsAre(2 * number, 2 * (number + 1)));
  }
  // A client that is served as ever, whatever others did.
  void expectServed() {
    const auto prepared = prepareAlone();
    ASSERT_NE(prepared, nullptr);
    expectSums(*prepared, 1);
  }
  // Whether the host has closed the connection.
  static bool isEnded(int socket) {
    const auto frame = receiveFrame(socket);
    return !frame && frame.error().code() == ErrorCode::kDeadObject;
  }
  static bool isEnded(Session& session) {
    Outgoing outgoing;
    outgoing.request.setWarmUp();
    return !session.call(outgoing);
  }
  static Status send(int socket, Outgoing& outgoing) {
    const auto words = capnp::messageToFlatArray(outgoing.message);
    return sendFrame(socket, {words.begin(), words.size()}, outgoing.attachments.descriptors());
  }
  const std::shared_ptr<FakeDevice> fake_ = std::make_shared<FakeDevice>();
  std::unique_ptr<ListeningHost> host_ = std::make_unique<ListeningHost>(
      fake_, HostOptions{.clients = 8, .clientsOfUser = 6, .objects = 50, .memories = 20});
};

TEST_F(HostTest, ListensWhereNobodyElseDoes) {
  const auto second = listenAt(path());
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code(), ErrorCode::kBadState);
  expectServed();
  // One that nobody listens on any more is replaced.
  const std::string other = path() + "-other";
  ASSERT_TRUE(listenAt(other));
  EXPECT_TRUE(listenAt(other));
  ::unlink(other.c_str());
  EXPECT_FALSE(listenAt(std::string(200, 'x')));
  EXPECT_FALSE(joinHost(path() + "-none"));
}

TEST_F(HostTest, OtherVersionsAreToldSo) {
  for (const bool isApi : {false, true}) {
    const base::Descriptor socket = connect();
    Outgoing outgoing;
    auto hello = outgoing.request.initHello();
    hello.setVersion(schema::VERSION + (isApi ? 0 : 1));
    hello.setApiVersion(hal::kApiVersion + (isApi ? 1 : 0));
    ASSERT_TRUE(send(socket.get(), outgoing));
    const Error error = errorOf(receiveFrame(socket.get()));
    EXPECT_EQ(error.code(), ErrorCode::kUnsupported);
    EXPECT_THAT(error.message(),
                HasSubstr(std::to_string(isApi ? hal::kApiVersion + 1 : schema::VERSION + 1)));
    EXPECT_TRUE(isEnded(socket.get()));
  }
  expectServed();
}

TEST_F(HostTest, WhoSendsNonsenseIsTurnedAway) {
  const auto expectEnded = [&](const void* bytes, size_t size) {
    const base::Descriptor socket = connect();
    ASSERT_EQ(::send(socket.get(), bytes, size, 0), static_cast<ssize_t>(size));
    EXPECT_TRUE(isEnded(socket.get()));
  };
  expectEnded("hello", 5);
  // A frame whose message is cut off, and one of random bytes.
  std::vector<uint8_t> bytes = {0x48, 0x72, 0x44, 0x31, 0, 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0};
  for (uint8_t i = 0; i < 32; ++i) bytes.push_back(static_cast<uint8_t>(i * 37 + 11));
  expectEnded(bytes.data(), bytes.size());
  // Another request than the greeting.
  const base::Descriptor socket = connect();
  Outgoing outgoing;
  outgoing.request.setFlush();
  ASSERT_TRUE(send(socket.get(), outgoing));
  EXPECT_TRUE(isEnded(socket.get()));
  EXPECT_EQ(fake_->flushes, 0);
  expectServed();
}

TEST_F(HostTest, NobodyHasWhatBelongsToAnother) {
  const auto owner = greet();
  const uint64_t model = prepare(*owner);
  for (const uint64_t name : {model, model + 1, uint64_t{0}, UINT64_MAX}) {
    const auto thief = greet();
    Outgoing outgoing;
    outgoing.request.initStartReport().setModel(name);
    EXPECT_FALSE(thief->call(outgoing));
  }
  const auto thief = greet();
  thief->release(schema::Release::Kind::MODEL, model);
  Outgoing computation;
  computation.request.initCompute().setExecution(model);
  EXPECT_FALSE(thief->call(computation));
  // It is still the owner's.
  Outgoing outgoing;
  outgoing.request.initStartReport().setModel(model);
  EXPECT_TRUE(owner->call(outgoing));
  EXPECT_EQ(fake_->prepared, 1);
}

TEST_F(HostTest, ClientsOfTheSameModelHaveOneInCommon) {
  std::vector<std::shared_ptr<hal::PreparedModel>> clients;
  for (int i = 0; i < 4; ++i) {
    clients.push_back(prepareAlone());
    ASSERT_NE(clients.back(), nullptr);
    EXPECT_EQ(fake_->prepared, 1);
  }
  // At once each gets its own results.
  {
    std::vector<std::jthread> threads;
    for (size_t i = 0; i < clients.size(); ++i)
      threads.emplace_back([&, i] {
        for (int k = 0; k < 50; ++k) expectSums(*clients[i], static_cast<float>(100 * i) + 1);
      });
  }
  EXPECT_EQ(fake_->prepared, 1);
  // The report of each is its own, too.
  EXPECT_EQ(clients[0]->startReport().packedBytes.at("ADD"), 5u);
  EXPECT_EQ(clients[0]->startReport().sharedBytes, 0u);
  EXPECT_TRUE(clients[1]->startReport().packedBytes.empty());
  EXPECT_EQ(clients[1]->startReport().sharedBytes, 5u);
  // One that goes, the first as well, takes nothing from the others.
  while (!clients.empty()) {
    clients.erase(clients.begin());
    for (const auto& client : clients) expectSums(*client, 7);
    EXPECT_TRUE(clients.empty() || fake_->prepared == 1);
  }
  EXPECT_TRUE(comesTrue([&] { return fake_->prepared == 0; }));
}

// As that of a GPU that was lost: in the host it is there again for the next model.
TEST_F(HostTest, AModelWhoseDeviceIsGoneIsNotGivenToOthers) {
  std::vector<std::shared_ptr<hal::PreparedModel>> clients = {prepareAlone()};
  // By a message, and in a mailbox.
  for (const bool isInMailbox : {false, true}) {
    ASSERT_NE(clients.back(), nullptr);
    std::vector<float> a = {1, 2};
    std::vector<float> out(2);
    const auto execution = clients.back()->createExecution(
        {{hal::cts::argumentFor(a), hal::cts::argumentFor(a)}, {hal::cts::argumentFor(out)}});
    ASSERT_TRUE(execution) << execution.error().toString();
    for (int i = 0; i < (isInMailbox ? 2 : 0); ++i) ASSERT_TRUE((*execution)->compute({}).status);
    hal::ExecutionResult dead;
    dead.status = fail(ErrorCode::kDeadObject, "The device was lost.");
    fake_->answerWith(dead);
    const hal::ExecutionResult result = (*execution)->compute({});
    ASSERT_FALSE(result.status);
    EXPECT_EQ(result.status.error().code(), ErrorCode::kDeadObject);
    fake_->answerWith({});
    const int before = fake_->prepared;
    clients.push_back(prepareAlone());
    ASSERT_NE(clients.back(), nullptr);
    EXPECT_EQ(fake_->prepared, before + 1);
    expectSums(*clients.back(), 1);
  }
}

TEST_F(HostTest, WhatMayDifferIsPreparedForEachClient) {
  std::vector<std::shared_ptr<Session>> sessions = {greet(), greet()};
  const base::Descriptor sealed = sealedMemory(kPage);
  const base::Descriptor unsealed = pageOfMemory();
  const auto prepareWith = [&](Session& session, const base::Descriptor* pool, int32_t priority,
                               const base::Descriptor* cache) {
    Outgoing outgoing;
    auto request = outgoing.request.initPrepare();
    graph::Model model = addModel({2});
    if (pool != nullptr)
      model.pools.push_back(
          *memory::Pool::ofFile(pool->get(), 0, kPage, memory::Mapping::Access::kReadOnly));
    EXPECT_TRUE(writeModel(model, request.initModel(), &outgoing.attachments));
    request.setPreference(1);
    request.setPriority(priority);
    if (cache != nullptr) {
      request.initCache().initModel(1).set(
          0, static_cast<int32_t>(outgoing.attachments.add(cache->get())));
      const hal::CacheToken token{};
      request.getCache().setToken(kj::arrayPtr(token.data(), token.size()));
    }
    objectOf(session.call(outgoing));
  };
  // The models that exist once both clients have prepared one.
  const auto made = [&](const base::Descriptor* pool, std::array<int32_t, 2> priorities,
                        const base::Descriptor* cache) {
    const int before = fake_->prepared;
    for (size_t i = 0; i < 2; ++i) prepareWith(*sessions[i], pool, priorities[i], cache);
    return fake_->prepared - before;
  };
  EXPECT_EQ(made(nullptr, {100, 100}, nullptr), 1);
  EXPECT_EQ(made(&sealed, {100, 100}, nullptr), 1);
  EXPECT_EQ(made(nullptr, {90, 110}, nullptr), 2);
  // The owner may change these constants; those files are written.
  EXPECT_EQ(made(&unsealed, {100, 100}, nullptr), 2);
  EXPECT_EQ(made(nullptr, {100, 100}, &unsealed), 2);
}

// Else a client could hold what counts as another one's.
TEST_F(HostTest, PoolsOfSharedModelsCountForEachClientThatHasThem) {
  const base::Descriptor sealed = sealedMemory(kPage);
  const auto prepareWithPools = [&](Session& session, int count) {
    Outgoing outgoing;
    graph::Model model = addModel({2});
    for (int i = 0; i < count; ++i)
      model.pools.push_back(
          *memory::Pool::ofFile(sealed.get(), 0, kPage, memory::Mapping::Access::kReadOnly));
    EXPECT_TRUE(
        writeModel(model, outgoing.request.initPrepare().initModel(), &outgoing.attachments));
    outgoing.request.getPrepare().setPreference(1);
    outgoing.request.getPrepare().setPriority(100);
    return session.call(outgoing);
  };
  const auto first = greet();
  const auto second = greet();
  const uint64_t model = objectOf(prepareWithPools(*first, 15));
  objectOf(prepareWithPools(*second, 15));
  EXPECT_EQ(fake_->prepared, 1);
  for (const auto& session : {first, second})
    EXPECT_EQ(errorOf(prepareWithPools(*session, 6)).code(),
              ErrorCode::kResourceExhaustedTransient);
  // Although the second one still has the model.
  first->release(schema::Release::Kind::MODEL, model);
  EXPECT_TRUE(comesTrue([&] {
    return errorOf(prepareWithPools(*first, 20)).code() == ErrorCode::kBadData;
  })) << "a model is the wrong kind of reply";
  EXPECT_EQ(errorOf(prepareWithPools(*second, 6)).code(), ErrorCode::kResourceExhaustedTransient);
}

TEST_F(HostTest, WrongDescriptorsAreErrors) {
  const auto session = greet();
  const uint64_t model = prepare(*session);
  const base::Descriptor folder(::open("/", O_RDONLY | O_CLOEXEC));
  const base::Descriptor null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  const base::Descriptor event(::eventfd(0, EFD_CLOEXEC));
  const base::Descriptor small(::memfd_create("small", MFD_CLOEXEC));
  ASSERT_EQ(::ftruncate(small.get(), 4), 0);
  const base::Descriptor readable(::open("/proc/self/exe", O_RDONLY | O_CLOEXEC));
  for (const base::Descriptor* const fd : {&folder, &null, &event, &small, &readable}) {
    Outgoing outgoing;
    auto memory = executionOf(outgoing, model, 8).getMemories()[0];
    memory.setDescriptor(outgoing.attachments.add(fd->get()));
    memory.setSize(4096);
    memory.setIsWritable(true);
    const Error error = errorOf(session->call(outgoing));
    EXPECT_NE(error.code(), ErrorCode::kIncomplete);
    EXPECT_NE(error.code(), ErrorCode::kDeadObject) << error.toString();
  }
  // One that the message does not have.
  Outgoing outgoing;
  executionOf(outgoing, model, 8).getMemories()[0].setSize(4096);
  EXPECT_EQ(errorOf(session->call(outgoing)).code(), ErrorCode::kBadData);
  EXPECT_FALSE(isEnded(*session));
}

// The write would end the host.
TEST_F(HostTest, ABufferIsCopiedToWritableMemoryOnly) {
  const auto session = greet();
  Outgoing allocation;
  auto request = allocation.request.initAllocate();
  auto dimensions = request.initDimensions(1);
  dimensions.set(0, 2);
  auto role = request.initRoles(1)[0];
  role.setModel(prepare(*session));
  role.setIsInput(true);
  role.setFrequency(1);
  const uint64_t buffer = objectOf(session->call(allocation));
  const base::Descriptor file(::memfd_create("file", MFD_CLOEXEC));
  ASSERT_EQ(::ftruncate(file.get(), 8), 0);
  for (const bool isWritable : {false, true}) {
    Outgoing outgoing;
    auto copy = outgoing.request.initCopyTo();
    copy.setBuffer(buffer);
    auto memory = copy.initMemory();
    memory.setDescriptor(outgoing.attachments.add(file.get()));
    memory.setSize(8);
    memory.setIsWritable(isWritable);
    const Error error = errorOf(session->call(outgoing));
    EXPECT_EQ(error.code(), isWritable ? ErrorCode::kIncomplete : ErrorCode::kBadData)
        << error.toString();
  }
  EXPECT_FALSE(isEnded(*session));
}

TEST_F(HostTest, HugeClaimsAreRefused) {
  const auto session = greet();
  const uint64_t model = prepare(*session);
  const base::Descriptor sparse(::memfd_create("sparse", MFD_CLOEXEC));
  ASSERT_EQ(::ftruncate(sparse.get(), off_t{1} << 40), 0);
  for (const uint64_t size : {uint64_t{1} << 40, uint64_t{1} << 60, UINT64_MAX}) {
    Outgoing outgoing;
    auto memory = executionOf(outgoing, model, size).getMemories()[0];
    memory.setDescriptor(outgoing.attachments.add(sparse.get()));
    memory.setSize(size);
    memory.setIsWritable(true);
    const Error error = errorOf(session->call(outgoing));
    EXPECT_NE(error.code(), ErrorCode::kIncomplete) << size;
    EXPECT_NE(error.code(), ErrorCode::kDeadObject) << error.toString();
  }
  Outgoing outgoing;
  auto memory = executionOf(outgoing, model, UINT64_MAX).getMemories()[0];
  memory.setDescriptor(outgoing.attachments.add(sparse.get()));
  memory.setSize(4096);
  EXPECT_EQ(errorOf(session->call(outgoing)).code(), ErrorCode::kBadData);
  // A model whose bytes are the start of one that says it is huge.
  const auto bytes = graph::encodeModel(addModel({2}));
  for (size_t length = 0; length <= bytes.size(); ++length) {
    Outgoing cut;
    std::vector<uint8_t> changed(bytes.begin(), bytes.begin() + static_cast<long>(length));
    for (size_t i = std::max<size_t>(length, 8) - 8; i < length; ++i) changed[i] = 0xff;
    cut.request.initSupportedOperations().setBytes(kj::arrayPtr(changed.data(), changed.size()));
    EXPECT_NE(errorOf(session->call(cut)).code(), ErrorCode::kIncomplete) << length;
  }
  EXPECT_FALSE(isEnded(*session));
}

TEST_F(HostTest, ObjectsAndMemoriesOfAClientAreLimited) {
  const auto session = greet();
  const uint64_t model = prepare(*session);
  const base::Descriptor file = pageOfMemory();
  const auto create = [&] {
    return execute(*session, model, file);
  };
  std::vector<uint64_t> executions;
  for (int i = 0; i < 20; ++i) executions.push_back(objectOf(create()));
  EXPECT_EQ(errorOf(create()).code(), ErrorCode::kResourceExhaustedTransient);
  // Another client has its own share, and what is released can be had again.
  expectServed();
  session->release(schema::Release::Kind::EXECUTION, executions[0]);
  EXPECT_TRUE(comesTrue([&] { return errorOf(create()).code() == ErrorCode::kBadData; }))
      << "an execution is the wrong kind of reply";
  for (int i = 0; i < 29; ++i) prepare(*session);
  Outgoing outgoing;
  EXPECT_TRUE(
      writeModel(addModel({2}), outgoing.request.initPrepare().initModel(), &outgoing.attachments));
  outgoing.request.getPrepare().setPreference(1);
  outgoing.request.getPrepare().setPriority(100);
  EXPECT_EQ(errorOf(session->call(outgoing)).code(), ErrorCode::kResourceExhaustedTransient);
}

TEST_F(HostTest, ConstantsOfAClientsModelsAreLimited) {
  LocalHost host(fake_, {.isShared = true, .bytes = 3 * kPage});
  auto socket = host.open();
  ASSERT_TRUE(socket) << socket.error().toString();
  const auto session = Session::open(std::move(*socket));
  ASSERT_TRUE(session) << session.error().toString();
  const base::Descriptor file = pageOfMemory();
  const auto prepareWithPage = [&] {
    Outgoing outgoing;
    graph::Model model = addModel({2});
    auto pool = memory::Pool::ofFile(file.get(), 0, kPage, memory::Mapping::Access::kReadOnly);
    EXPECT_TRUE(pool) << pool.error().toString();
    model.pools.push_back(*pool);
    EXPECT_TRUE(
        writeModel(model, outgoing.request.initPrepare().initModel(), &outgoing.attachments));
    outgoing.request.getPrepare().setPreference(1);
    outgoing.request.getPrepare().setPriority(100);
    return (*session)->call(outgoing);
  };
  const uint64_t first = objectOf(prepareWithPage());
  objectOf(prepareWithPage());
  EXPECT_EQ(errorOf(prepareWithPage()).code(), ErrorCode::kResourceExhaustedTransient);
  (*session)->release(schema::Release::Kind::MODEL, first);
  EXPECT_TRUE(comesTrue([&] { return errorOf(prepareWithPage()).code() == ErrorCode::kBadData; }))
      << "a model is the wrong kind of reply";
}

TEST_F(HostTest, ConnectionsOfAUserAreLimited) {
  std::vector<std::shared_ptr<Session>> sessions;
  for (int i = 0; i < 6; ++i) sessions.push_back(greet());
  for (int i = 0; i < 200; ++i) {
    const auto refused = Session::open(connect());
    ASSERT_FALSE(refused);
    EXPECT_TRUE(refused.error().code() == ErrorCode::kResourceExhaustedTransient ||
                refused.error().code() == ErrorCode::kDeadObject)
        << refused.error().toString();
  }
  for (const auto& session : sessions) EXPECT_FALSE(isEnded(*session));
  sessions.clear();
  EXPECT_TRUE(comesTrue([&] { return Session::open(connect()).has_value(); }));
}

// Those beyond the limits are turned away, in a sentence if they read it; who is served stays so.
TEST_F(HostTest, TenThousandConnectionsDisturbNobody) {
  base::setLogLevel(base::LogLevel::kOff);
  const auto session = greet();
  std::vector<base::Descriptor> kept;
  for (int i = 0; i < 10'000; ++i) {
    base::Descriptor socket = connect();
    ASSERT_TRUE(socket.valid()) << i;
    // Some stay, without a word.
    if (i % 50 == 0) kept.push_back(std::move(socket));
    if (i % 1000 == 0) {
      EXPECT_FALSE(isEnded(*session));
    }
  }
  EXPECT_FALSE(isEnded(*session));
  kept.clear();
  base::setLogLevelFromEnvironment();
  EXPECT_TRUE(comesTrue([&] { return Session::open(connect()).has_value(); }));
}

TEST_F(HostTest, AnExecutionIsComputedByOneThreadAtATime) {
  const auto session = greet();
  const uint64_t model = prepare(*session);
  const uint64_t execution = objectOf(execute(*session, model, pageOfMemory()));
  const auto compute = [&] {
    Outgoing computation;
    computation.request.initCompute().setExecution(execution);
    computation.request.getCompute().setDeadline(INT64_MAX);
    const auto frame = session->call(computation);
    EXPECT_TRUE(frame);
    return readReply(*frame, schema::Reply::RESULT, [](auto reply) -> Result<hal::ExecutionResult> {
      return readResult(reply.getResult());
    });
  };
  fake_->hold();
  std::thread first([&] {
    const auto result = compute();
    EXPECT_TRUE(result && result->status);
  });
  fake_->waitForComputations(1);
  const auto second = compute();
  fake_->letGo();
  first.join();
  ASSERT_TRUE(second);
  ASSERT_FALSE(second->status);
  EXPECT_EQ(second->status.error().code(), ErrorCode::kBadState);
}

TEST_F(HostTest, ACallWithADeadlineDoesNotWaitForLongAndLeavesTheConnectionAsItWas) {
  const auto session = greet();
  const uint64_t execution = objectOf(execute(*session, prepare(*session), pageOfMemory()));
  const auto compute = [&](base::Deadline deadline) {
    Outgoing computation;
    computation.request.initCompute().setExecution(execution);
    computation.request.getCompute().setDeadline(INT64_MAX);
    return session->call(computation, Patience::until(deadline));
  };
  fake_->hold();
  // Of two that wait one reads for both; it goes first.
  std::thread longer([&] {
    const auto frame = compute(base::Deadline::after(50'000'000));
    EXPECT_TRUE(frame || frame.error().code() == ErrorCode::kMissedDeadlineTransient);
  });
  const auto late = compute(base::Deadline::after(1'000'000));
  EXPECT_TRUE(late || late.error().code() == ErrorCode::kMissedDeadlineTransient);
  longer.join();
  const auto none = compute(base::Deadline::after(0));
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code(), ErrorCode::kMissedDeadlineTransient);
  EXPECT_FALSE(session->isDead());
  fake_->letGo();
  // The late replies are for nobody.
  Outgoing warmUp;
  warmUp.request.setWarmUp();
  EXPECT_TRUE(session->call(warmUp));
}

TEST_F(HostTest, NothingIsLeftOfClientsThatEnd) {
  expectServed();
  EXPECT_TRUE(comesTrue([&] { return fake_->prepared == 0; }));
  const size_t before = openDescriptors();
  for (int i = 0; i < 100; ++i) {
    // One connection at a time, so that the limit is not met.
    ASSERT_TRUE(comesTrue([&] { return fake_->prepared == 0; }));
    const auto session = greet();
    ASSERT_NE(session, nullptr);
    const uint64_t model = prepare(*session);
    EXPECT_NE(objectOf(execute(*session, model, pageOfMemory())), 0u);
    EXPECT_EQ(fake_->executions, 1);
    // Some end in the middle of a request.
    if (i % 2 == 0) session->release(schema::Release::Kind::MODEL, model + 77);
  }
  EXPECT_TRUE(comesTrue([&] { return fake_->executions == 0 && fake_->prepared == 0; }));
  EXPECT_TRUE(comesTrue([&] { return openDescriptors() <= before; }))
      << openDescriptors() << " > " << before;
}

// Threads of hosts that wait for messages, or are at one.
size_t countReaders() {
  size_t readers = 0;
  for (const auto& thread : std::filesystem::directory_iterator("/proc/self/task")) {
    std::ifstream file(thread.path() / "comm");
    std::string name;
    // One that ends meanwhile has none.
    if (std::getline(file, name) && name == "hearth-host") ++readers;
  }
  return readers;
}

constexpr HostOptions kImpatient{.idleThreads = std::chrono::milliseconds(5)};

void expectServedWithoutThreadsMeanwhile(const HostOpener& opener, FakeDevice& fake) {
  const auto device = HostedDevice::create("fake", opener);
  ASSERT_TRUE(device) << device.error().toString();
  for (int i = 1; i <= 3; ++i) {
    EXPECT_TRUE(comesTrue([] { return countReaders() == 0; }));
    (*device)->warmUp();
    EXPECT_EQ(fake.warmUps, i);
  }
}

TEST(IdleClient, HasNoThreadThatWaitsForItsMessages) {
  const auto fake = std::make_shared<FakeDevice>();
  const ListeningHost host(fake, kImpatient);
  expectServedWithoutThreadsMeanwhile(host.opener(), *fake);
}

TEST(IdleClient, HasNoThreadThatWaitsForItsMessagesWhenAlone) {
  const auto fake = std::make_shared<FakeDevice>();
  LocalHost host(fake, kImpatient);
  expectServedWithoutThreadsMeanwhile(host.opener(), *fake);
}

TEST(IdleClient, IsReadWhileItsOnlyOtherThreadComputes) {
  const auto fake = std::make_shared<FakeDevice>();
  const ListeningHost host(fake, kImpatient);
  const auto device = HostedDevice::create("fake", host.opener());
  ASSERT_TRUE(device) << device.error().toString();
  const auto prepared =
      (*device)->prepareModel(std::make_shared<const graph::Model>(addModel({2})), {}, {});
  ASSERT_TRUE(prepared) << prepared.error().toString();
  fake->hold();
  std::thread computing([&] {
    std::vector<float> a = {1, 2};
    std::vector<float> out(2);
    const hal::ExecutionResult result = hal::cts::computeOnce(
        **prepared,
        {{hal::cts::argumentFor(a), hal::cts::argumentFor(a)}, {hal::cts::argumentFor(out)}});
    EXPECT_TRUE(result.status);
    EXPECT_THAT(out, testing::ElementsAre(2, 4));
  });
  fake->waitForComputations(1);
  for (int i = 1; i <= 3; ++i) {
    std::this_thread::sleep_for(20 * kImpatient.idleThreads);
    (*device)->warmUp();
    EXPECT_EQ(fake->warmUps, i);
  }
  fake->letGo();
  computing.join();
}

// A message may come at the instant at which the last thread stops waiting.
TEST(IdleClient, IsAnsweredWheneverItsMessageComes) {
  const auto fake = std::make_shared<FakeDevice>();
  const ListeningHost host(fake, {.idleThreads = std::chrono::milliseconds(1)});
  constexpr int kThreads = 3;
  constexpr int kMessages = 150;
  {
    std::vector<std::jthread> threads;
    for (unsigned i = 0; i < kThreads; ++i)
      threads.emplace_back([&host, i] {
        const auto device = HostedDevice::create("fake", host.opener());
        ASSERT_TRUE(device) << device.error().toString();
        std::mt19937 random(i);
        for (int message = 0; message < kMessages; ++message) {
          (*device)->warmUp();
          // Around the time after which threads end; the kernel's clock ticks in milliseconds.
          std::this_thread::sleep_for(std::chrono::microseconds(random() % 10'000));
        }
      });
  }
  EXPECT_EQ(fake->warmUps, kThreads * kMessages);
}

TEST_F(HostTest, AClientThatDoesNotReadDelaysNobody) {
  const base::Descriptor socket = connect();
  Outgoing hello;
  hello.request.initHello().setVersion(schema::VERSION);
  hello.request.getHello().setApiVersion(hal::kApiVersion);
  ASSERT_TRUE(send(socket.get(), hello));
  ASSERT_EQ(::fcntl(socket.get(), F_SETFL, O_NONBLOCK), 0);
  // Until neither side can send.
  for (int i = 0; i < 100'000; ++i) {
    Outgoing outgoing;
    outgoing.request.setWarmUp();
    if (!send(socket.get(), outgoing)) break;
  }
  expectServed();
}

}  // namespace
}  // namespace hearth::ipc
