// SPDX-License-Identifier: Apache-2.0
#include "hal/cts/device_fixture.h"

#include <map>

namespace hearth::hal::cts {

void DeviceUser::openDevice(const Backend& backend) {
  // Devices live as long as the process.
  static auto& devices = *new std::map<std::string, Result<std::shared_ptr<Device>>>();
  auto it = devices.find(backend.name);
  if (it == devices.end()) it = devices.emplace(backend.name, backend.create()).first;
  const auto& device = it->second;
  if (!device && device.error().code() == ErrorCode::kUnsupported)
    GTEST_SKIP() << device.error().toString();
  ASSERT_TRUE(device) << device.error().toString();
  ASSERT_NE(*device, nullptr);
  device_ = *device;
}

namespace {

// A void function, since GTEST_SKIP() and ASSERT_* return from it.
void tryPrepare(Device& device, const graph::Model& model, const PrepareOptions& options,
                std::shared_ptr<PreparedModel>* prepared) {
  const Status status = graph::validate(model);
  ASSERT_TRUE(status) << "The test's own model is wrong: " << status.error().toString();
  const auto supports = device.supportedOperations(model);
  ASSERT_TRUE(supports) << supports.error().toString();
  ASSERT_EQ(supports->size(), model.main().operations.size());
  for (size_t i = 0; i < supports->size(); ++i)
    if (!(*supports)[i].supported)
      GTEST_SKIP() << graph::nameOf(model.main().operations[i].type)
                   << " is not supported: " << (*supports)[i].reason;
  auto result = device.prepareModel(std::make_shared<const graph::Model>(model), options, {});
  ASSERT_TRUE(result) << result.error().toString();
  ASSERT_NE(*result, nullptr);
  *prepared = *result;
}

}  // namespace

std::shared_ptr<PreparedModel> DeviceUser::prepare(const graph::Model& model,
                                                   const PrepareOptions& options) {
  std::shared_ptr<PreparedModel> prepared;
  tryPrepare(device(), model, options, &prepared);
  return prepared;
}

Argument pointerArgument(const void* data, uint64_t length, graph::Dimensions dimensions) {
  Argument argument;
  argument.kind = Argument::Kind::kPointer;
  argument.pointer = const_cast<void*>(data);
  argument.length = length;
  argument.dimensions = std::move(dimensions);
  return argument;
}

Argument poolArgument(memory::PoolRef pool, uint64_t offset, uint64_t length,
                      graph::Dimensions dimensions) {
  Argument argument;
  argument.kind = Argument::Kind::kPool;
  argument.pool = std::move(pool);
  argument.offset = offset;
  argument.length = length;
  argument.dimensions = std::move(dimensions);
  return argument;
}

memory::PoolRef poolOf(const void* data, size_t size) {
  auto pool = memory::Pool::anonymous(size);
  if (!pool) return nullptr;
  std::memcpy((*pool)->mutableData(), data, size);
  return *pool;
}

ExecutionResult computeOnce(PreparedModel& prepared, Request request,
                            const base::Deadline& deadline) {
  auto execution = prepared.createExecution(std::move(request));
  if (!execution) return {.status = std::unexpected(execution.error())};
  return (*execution)->compute(deadline);
}

}  // namespace hearth::hal::cts
