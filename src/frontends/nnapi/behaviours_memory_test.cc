// SPDX-License-Identifier: Apache-2.0
// Behaviours 43, 44 and 51 of NNAPI: memory of files and hardware buffers.
#include <fcntl.h>
#include <linux/udmabuf.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstring>
#include <thread>

#include "base/descriptor.h"
#include "drivers/cpu/plan/execution_context.h"
#include "frontends/nnapi/testing/memory_behaviour.h"

namespace hearth::nnapi {
namespace {

using ndk::Out;

// y = x + c, where the constant c is the beginning of a memory; tensors of two floats.
void addConstant(ndk::Model& model, const ndk::MemoryHandle& constant) {
  const uint32_t x = model.operand(floats({2}));
  const uint32_t c = model.operand(floats({2}));
  const uint32_t y = model.operand(floats({2}));
  ASSERT_CODE(NO_ERROR, ANeuralNetworksModel_setOperandValueFromMemory(
                            model.get(), static_cast<int32_t>(c), constant.get(), 0, 8));
  model.operation(ANEURALNETWORKS_ADD, {x, c, model.int32(0)}, {y});
  model.finish({x}, {y});
}

TEST_F(MemoryBehaviour, B43_MemoryOfFiles) {
  ndk::MemoryHandle memory;
  const base::Descriptor file = fileOf({0, 0});
  EXPECT_CODE(BAD_DATA,
              ANeuralNetworksMemory_createFromFd(0, PROT_READ, file.get(), 0, Out(memory)));
  EXPECT_CODE(BAD_DATA, ANeuralNetworksMemory_createFromFd(8, PROT_READ, -1, 0, Out(memory)));
  EXPECT_CODE(BAD_DATA,
              ANeuralNetworksMemory_createFromFd(8, PROT_READ, 1'000'000, 0, Out(memory)));
  EXPECT_CODE(BAD_DATA, ANeuralNetworksMemory_createFromFd(8, 0x40, file.get(), 0, Out(memory)));
  EXPECT_CODE(BAD_DATA,
              ANeuralNetworksMemory_createFromFd(SIZE_MAX, PROT_READ, file.get(), 8, Out(memory)));
  EXPECT_EQ(memory, nullptr);

  for (const size_t offset : {0, 20, 200, 5000}) {
    SCOPED_TRACE(offset);
    base::Descriptor values = fileOf({3, 4}, offset);
    // Read-only descriptors and protection suffice for constants and inputs.
    const std::string path = "/proc/self/fd/" + std::to_string(values.get());
    base::Descriptor readOnly(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    ASSERT_TRUE(readOnly.valid());
    values.reset();
    const ndk::MemoryHandle constant = memoryOf(readOnly, 8, offset, PROT_READ);
    readOnly.reset();

    ndk::Model model;
    addConstant(model, constant);
    const ndk::Compilation compilation = compileForAll(model);
    ndk::Execution execution(compilation);
    std::vector<float> sum(2);
    execution.output(0, sum);
    ASSERT_CODE(NO_ERROR, setInput(execution, 0, constant, 0, 8));
    execution.compute();
    EXPECT_THAT(sum, testing::ElementsAre(6, 8));
    // The memory of an output must be writable.
    ndk::Execution wrong(compilation);
    wrong.input(0, a_);
    ASSERT_CODE(NO_ERROR, setOutput(wrong, 0, constant, 0, 8));
    EXPECT_CODE(OP_FAILED, ANeuralNetworksExecution_compute(wrong.get()));
  }
}

TEST_F(MemoryBehaviour, B43_FilesThatShrinkFailTheExecution) {
  const base::Descriptor file = fileOf({1, 2, 3, 4});
  const ndk::MemoryHandle memory = memoryOf(file, 16);
  const ndk::Compilation compilation = compileForAll(addModel());
  std::vector<float> sum(2);
  ndk::Execution execution(compilation);
  execution.reusable().output(0, sum);
  ASSERT_CODE(NO_ERROR, setInput(execution, 0, memory, 0, 8));
  ASSERT_CODE(NO_ERROR, setInput(execution, 1, memory, 8, 8));
  execution.compute();
  EXPECT_THAT(sum, testing::ElementsAre(4, 6));
  ASSERT_EQ(::ftruncate(file.get(), 0), 0);
  EXPECT_CODE(OP_FAILED, ANeuralNetworksExecution_compute(execution.get()));

  // A file that is too short from the start cannot hold a constant.
  const ndk::MemoryHandle hole = memoryOf(file, 8);
  ndk::Model model;
  const auto index = static_cast<int32_t>(model.operand(floats({2})));
  EXPECT_CODE(UNMAPPABLE,
              ANeuralNetworksModel_setOperandValueFromMemory(model.get(), index, hole.get(), 0, 8));
}

// The compilation fails where it reads the constant, else the execution does.
TEST_F(MemoryBehaviour, B43_FilesThatShrinkBeforeACompilationFailIt) {
  for (const int protect : {PROT_READ, PROT_READ | PROT_WRITE}) {
    const base::Descriptor file = fileOf({1, 2});
    const ndk::MemoryHandle memory = memoryOf(file, 8, 0, protect);
    ndk::Model model;
    addConstant(model, memory);
    ASSERT_EQ(::ftruncate(file.get(), 0), 0);
    for (const ANeuralNetworksDevice* const device : ndk::devices()) {
      const ndk::Compilation compilation(model, {device});
      if (ANeuralNetworksCompilation_finish(compilation.get()) != ANEURALNETWORKS_NO_ERROR)
        continue;
      ndk::Execution execution(compilation);
      std::vector<float> sum(2);
      execution.input(0, a_).output(0, sum);
      EXPECT_CODE(OP_FAILED, ANeuralNetworksExecution_compute(execution.get()));
    }
  }
}

TEST_F(MemoryBehaviour, B43_FilesThatShrinkDuringExecutionsFailThem) {
  constexpr size_t kCount = size_t{1} << 16;
  constexpr size_t kBytes = kCount * sizeof(float);
  const ndk::Model model = addModel({kCount});
  for (const ANeuralNetworksDevice* const device : ndk::devices()) {
    const base::Descriptor file = fileOf(std::vector<float>(3 * kCount, 1.0f));
    const ndk::Compilation compilation(model, {device});
    ASSERT_CODE(NO_ERROR, ANeuralNetworksCompilation_finish(compilation.get()));
    std::atomic<bool> isOver = false;
    std::jthread other([&] {
      while (!isOver) {
        EXPECT_EQ(::ftruncate(file.get(), 0), 0);
        EXPECT_EQ(::ftruncate(file.get(), 3 * kBytes), 0);
      }
    });
    int failures = 0;
    for (int i = 0; i < 200; ++i) {
      // One that has lost pages stays lost.
      const ndk::MemoryHandle memory = memoryOf(file, 3 * kBytes);
      ndk::Execution execution(compilation);
      ASSERT_CODE(NO_ERROR, setInput(execution, 0, memory, 0, kBytes));
      ASSERT_CODE(NO_ERROR, setInput(execution, 1, memory, kBytes, kBytes));
      ASSERT_CODE(NO_ERROR, setOutput(execution, 0, memory, 2 * kBytes, kBytes));
      const int code = ANeuralNetworksExecution_compute(execution.get());
      EXPECT_TRUE(code == ANEURALNETWORKS_NO_ERROR || code == ANEURALNETWORKS_OP_FAILED ||
                  code == ANEURALNETWORKS_UNMAPPABLE)
          << code;
      failures += code != ANEURALNETWORKS_NO_ERROR;
    }
    isOver = true;
    EXPECT_GT(failures, 0);
  }
}

// A dma-buf, if the system has the driver udmabuf, else the memfd that it would be made from.
base::Descriptor sharedWithDevices(size_t size) {
  base::Descriptor pages(::memfd_create("pages", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  EXPECT_EQ(::ftruncate(pages.get(), static_cast<off_t>(size)), 0);
  EXPECT_EQ(::fcntl(pages.get(), F_ADD_SEALS, F_SEAL_SHRINK), 0);
  const base::Descriptor driver(::open("/dev/udmabuf", O_RDWR | O_CLOEXEC));
  udmabuf_create wanted{};
  wanted.memfd = static_cast<uint32_t>(pages.get());
  wanted.flags = UDMABUF_FLAGS_CLOEXEC;
  wanted.size = size;
  base::Descriptor shared(driver.valid() ? ::ioctl(driver.get(), UDMABUF_CREATE, &wanted) : -1);
  return shared.valid() ? std::move(shared) : std::move(pages);
}

TEST_F(MemoryBehaviour, B43_MemoryThatDevicesShare) {
  const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  const base::Descriptor shared = sharedWithDevices(page);
  const ndk::MemoryHandle memory = memoryOf(shared, page);
  void* const address = ::mmap(nullptr, page, PROT_READ | PROT_WRITE, MAP_SHARED, shared.get(), 0);
  ASSERT_NE(address, MAP_FAILED);
  auto* const values = static_cast<float*>(address);
  values[0] = 3;
  values[1] = 5;
  const ndk::Model model = addModel();
  const ndk::Compilation compilation = compileForAll(model);
  ndk::Execution execution(compilation);
  EXPECT_CODE(NO_ERROR, setInput(execution, 0, memory, 0, 8));
  EXPECT_CODE(NO_ERROR, setOutput(execution, 0, memory, 64, 8));
  execution.input(1, a_).compute();
  EXPECT_EQ(values[16], 4);
  EXPECT_EQ(values[17], 7);
  ::munmap(address, page);
  // A range past the end cannot be mapped.
  const ndk::MemoryHandle larger = memoryOf(shared, 2 * page);
  ndk::Execution outside(compilation);
  EXPECT_CODE(NO_ERROR, setInput(outside, 0, larger, page, 8));
  std::vector<float> sum(2);
  outside.input(1, a_).output(0, sum);
  EXPECT_CODE(OP_FAILED, ANeuralNetworksExecution_compute(outside.get()));
}

TEST_F(MemoryBehaviour, B43_ArgumentsReachTheKernelsWithoutACopy) {
  constexpr size_t kCount = 1000;
  constexpr size_t kBytes = kCount * sizeof(float);
  const ndk::Model model = addModel({kCount});
  const ndk::Compilation compilation(model, {ndk::devices()[0]});
  ASSERT_CODE(NO_ERROR, ANeuralNetworksCompilation_finish(compilation.get()));
  // By pointer, with bytes behind the arguments that kernels may read. The driver can rely on them
  // only within a page, so no argument may end where a page ends.
  constexpr size_t kPage = 4096;
  static_assert(kBytes % kPage + 64 < kPage && 2 * kBytes % kPage + 64 < kPage);
  alignas(kPage) std::array<float, 3 * kCount + 64> buffer{};
  buffer[0] = 1;
  buffer[kCount] = 2;
  const uint64_t before = cpu::ExecutionContext::copiedBytes();
  const auto byPointer = [&](size_t shift) {
    const ndk::Execution execution(compilation);
    for (int32_t i = 0; i < 2; ++i)
      EXPECT_CODE(NO_ERROR, ANeuralNetworksExecution_setInput(execution.get(), i, nullptr,
                                                              &buffer[shift + i * kCount], kBytes));
    EXPECT_CODE(NO_ERROR, ANeuralNetworksExecution_setOutput(execution.get(), 0, nullptr,
                                                             &buffer[shift + 2 * kCount], kBytes));
    return ANeuralNetworksExecution_compute(execution.get());
  };
  EXPECT_CODE(NO_ERROR, byPointer(0));
  EXPECT_EQ(buffer[2 * kCount], 3);
  EXPECT_EQ(cpu::ExecutionContext::copiedBytes(), before);
  // By memory.
  const base::Descriptor file = fileOf(std::vector<float>(3 * kCount, 4));
  const ndk::MemoryHandle memory = memoryOf(file, 3 * kBytes);
  const ndk::Execution execution(compilation);
  for (int32_t i = 0; i < 2; ++i)
    EXPECT_CODE(NO_ERROR, setInput(execution, i, memory, static_cast<size_t>(i) * kBytes, kBytes));
  EXPECT_CODE(NO_ERROR, setOutput(execution, 0, memory, 2 * kBytes, kBytes));
  EXPECT_CODE(NO_ERROR, ANeuralNetworksExecution_compute(execution.get()));
  float sum = 0;
  EXPECT_EQ(::pread(file.get(), &sum, sizeof(sum), 2 * kBytes), ssize_t{sizeof(sum)});
  EXPECT_EQ(sum, 8);
  EXPECT_EQ(cpu::ExecutionContext::copiedBytes(), before);
  // Arguments that are not aligned to 8 bytes are copied, as documented; so the counter works.
  EXPECT_CODE(NO_ERROR, byPointer(1));
  EXPECT_EQ(cpu::ExecutionContext::copiedBytes(), before + 3 * kBytes);
}

TEST_F(MemoryBehaviour, B44_RangesInsideTheMemory) {
  const base::Descriptor file = fileOf(std::vector<float>(16, 0));
  const ndk::MemoryHandle memory = memoryOf(file, 64);
  ndk::Model model;
  const auto constant = static_cast<int32_t>(model.operand(floats({2})));
  const auto setConstant = [&](size_t offset, size_t length) {
    return ANeuralNetworksModel_setOperandValueFromMemory(model.get(), constant, memory.get(),
                                                          offset, length);
  };
  EXPECT_CODE(NO_ERROR, setConstant(56, 8));
  EXPECT_CODE(BAD_DATA, setConstant(57, 8));
  EXPECT_CODE(BAD_DATA, setConstant(0, 4));
  EXPECT_CODE(BAD_DATA, setConstant(SIZE_MAX - 3, 8));
  EXPECT_CODE(BAD_DATA, setConstant(0, 0));
  const ndk::Compilation compilation = compileForAll(addModel());
  ndk::Execution execution(compilation);
  for (const auto& [offset, length] : {std::pair<size_t, size_t>(57, 8),
                                       {SIZE_MAX, 8},
                                       {SIZE_MAX - 7, 8},
                                       {64, 8},
                                       {0, 0},
                                       {0, 7},
                                       {0, 64}}) {
    EXPECT_CODE(BAD_DATA, setInput(execution, 0, memory, offset, length));
    EXPECT_CODE(BAD_DATA, setOutput(execution, 0, memory, offset, length));
  }
  EXPECT_CODE(NO_ERROR, setInput(execution, 0, memory, 56, 8));
  EXPECT_CODE(NO_ERROR, setOutput(execution, 0, memory, 0, 8));
}

ndk::HardwareBufferHandle hardwareBuffer(uint32_t width, uint32_t height, uint32_t format) {
  AHardwareBuffer_Desc description = {};
  description.width = width;
  description.height = height;
  description.layers = 1;
  description.format = format;
  description.usage = AHARDWAREBUFFER_USAGE_CPU_READ_OFTEN | AHARDWAREBUFFER_USAGE_CPU_WRITE_OFTEN;
  ndk::HardwareBufferHandle buffer;
  EXPECT_EQ(AHardwareBuffer_allocate(&description, Out(buffer)), 0);
  return buffer;
}

TEST_F(MemoryBehaviour, B51_HardwareBuffers) {
  const ndk::Compilation compilation = compileForAll(addModel());
  // A BLOB works like any other memory.
  const ndk::HardwareBufferHandle blob = hardwareBuffer(24, 1, AHARDWAREBUFFER_FORMAT_BLOB);
  void* address = nullptr;
  ASSERT_EQ(AHardwareBuffer_lock(blob.get(), AHARDWAREBUFFER_USAGE_CPU_WRITE_OFTEN, -1, nullptr,
                                 &address),
            0);
  const float values[] = {1, 2, 3, 4, 0, 0};
  std::memcpy(address, values, sizeof(values));
  ASSERT_EQ(AHardwareBuffer_unlock(blob.get(), nullptr), 0);
  ndk::MemoryHandle memory;
  ASSERT_CODE(NO_ERROR, ANeuralNetworksMemory_createFromAHardwareBuffer(blob.get(), Out(memory)));
  ndk::Execution execution(compilation);
  ASSERT_CODE(NO_ERROR, setInput(execution, 0, memory, 0, 8));
  ASSERT_CODE(NO_ERROR, setInput(execution, 1, memory, 8, 8));
  EXPECT_CODE(BAD_DATA, setOutput(execution, 0, memory, 20, 8));
  ASSERT_CODE(NO_ERROR, setOutput(execution, 0, memory, 16, 8));
  execution.compute();
  float sum[2];
  std::memcpy(sum, static_cast<char*>(address) + 16, 8);
  EXPECT_THAT(sum, testing::ElementsAre(4, 6));

  // An image is used as a whole, and only as an argument.
  const ndk::HardwareBufferHandle image =
      hardwareBuffer(2, 1, AHARDWAREBUFFER_FORMAT_R8G8B8A8_UNORM);
  ndk::MemoryHandle imageMemory;
  ASSERT_CODE(NO_ERROR,
              ANeuralNetworksMemory_createFromAHardwareBuffer(image.get(), Out(imageMemory)));
  ndk::Model model;
  const auto index = static_cast<int32_t>(model.operand(floats({2})));
  EXPECT_CODE(BAD_DATA, ANeuralNetworksModel_setOperandValueFromMemory(model.get(), index,
                                                                       imageMemory.get(), 0, 8));
  ndk::Execution second(compilation);
  EXPECT_CODE(BAD_DATA, setInput(second, 0, imageMemory, 0, 8));
  EXPECT_CODE(BAD_DATA, setOutput(second, 0, imageMemory, 4, 0));
  EXPECT_CODE(NO_ERROR, setInput(second, 0, imageMemory, 0, 0));
  std::vector<float> result(2);
  second.input(1, a_).output(0, result).compute();
  EXPECT_THAT(result, testing::ElementsAre(1, 2));
  // An image of another size than its operand fails the execution.
  const ndk::HardwareBufferHandle large =
      hardwareBuffer(3, 3, AHARDWAREBUFFER_FORMAT_R8G8B8A8_UNORM);
  ASSERT_CODE(NO_ERROR,
              ANeuralNetworksMemory_createFromAHardwareBuffer(large.get(), Out(imageMemory)));
  ndk::Execution third(compilation);
  ASSERT_CODE(NO_ERROR, setInput(third, 0, imageMemory, 0, 0));
  third.input(1, a_).output(0, result);
  EXPECT_CODE(OP_FAILED, ANeuralNetworksExecution_compute(third.get()));
}

}  // namespace
}  // namespace hearth::nnapi
