// SPDX-License-Identifier: Apache-2.0
#include "drivers/cpu/lowering/unary_lookup_table.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <numeric>
#include <vector>

#include "drivers/cpu/kernels/function_kernel.h"
#include "threads/parallel_ranges.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace hearth::cpu {
namespace {

// Bytes of an element of a type that can be looked up; 0 for other types.
size_t indexBytes(graph::OperandType type) {
  switch (type) {
    case graph::OperandType::kTensorQuant8Asymm:
    case graph::OperandType::kTensorQuant8AsymmSigned:
    case graph::OperandType::kTensorQuant8Symm:
      return 1;
    case graph::OperandType::kTensorQuant16Symm:
    case graph::OperandType::kTensorQuant16Asymm:
    case graph::OperandType::kTensorInt16:
      return 2;
    default:
      return 0;
  }
}

// The function's values, by the bits of the element.
using Table = std::vector<uint8_t>;

template <typename T>
std::vector<uint8_t> allValues() {
  std::vector<T> values(size_t{1} << (8 * sizeof(T)));
  std::iota(values.begin(), values.end(), T{0});
  std::vector<uint8_t> bytes(values.size() * sizeof(T));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

Result<Table> makeTable(ops::OperationContext context, size_t bytesIn, size_t bytesOut) {
  const ops::OperationDefinition* definition = ops::findOperation(context.operation->type);
  if (definition == nullptr)
    return fail(ErrorCode::kUnsupported, "{} has no kernel.", context.describe());
  std::vector<uint8_t> values = bytesIn == 1 ? allValues<uint8_t>() : allValues<uint16_t>();
  const size_t count = values.size() / bytesIn;
  Table table(count * bytesOut);
  // The rank stays the same, for arguments that are broadcast.
  ops::Tensor& input = context.inputs[0];
  std::fill(input.dimensions.begin(), input.dimensions.end(), 1);
  input.dimensions.back() = static_cast<uint32_t>(count);
  input.data = values.data();
  context.outputs[0].dimensions = input.dimensions;
  context.outputs[0].data = table.data();
  context.threadPool = nullptr;
  HEARTH_TRY(definition->execute(context));
  return table;
}

template <typename Index, typename Value>
void lookUpWide(const Table& table, const void* source, void* target, uint64_t begin,
                uint64_t end) {
  const auto* from = static_cast<const Index*>(source);
  auto* to = static_cast<Value*>(target);
  const auto* values = reinterpret_cast<const Value*>(table.data());
  for (uint64_t i = begin; i < end; ++i) to[i] = values[from[i]];
}

#if defined(__x86_64__)
// One instruction looks up in two registers, which are half of the table.
__attribute__((target("avx512f,avx512bw,avx512vl,avx512vbmi"))) size_t
lookUpVbmi(const uint8_t* table, const uint8_t* source, uint8_t* target, size_t count) {
  const __m512i a = _mm512_loadu_si512(table);
  const __m512i b = _mm512_loadu_si512(table + 64);
  const __m512i c = _mm512_loadu_si512(table + 128);
  const __m512i d = _mm512_loadu_si512(table + 192);
  size_t i = 0;
  for (; i + 64 <= count; i += 64) {
    const __m512i index = _mm512_loadu_si512(source + i);
    const __m512i low = _mm512_permutex2var_epi8(a, index, b);
    const __m512i high = _mm512_permutex2var_epi8(c, index, d);
    _mm512_storeu_si512(target + i, _mm512_mask_blend_epi8(_mm512_movepi8_mask(index), low, high));
  }
  return i;
}

// Looks up in sixteen entries at a time. Bytes whose upper half selects these entries become
// indices below 16, plus 0x70; all others get the highest bit set, for which the shuffle gives 0.
__attribute__((target("avx2"))) size_t lookUpAvx2(const uint8_t* table, const uint8_t* source,
                                                  uint8_t* target, size_t count) {
  const __m256i fill = _mm256_set1_epi8(0x70);
  size_t i = 0;
  for (; i + 32 <= count; i += 32) {
    const __m256i index = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(source + i));
    __m256i result = _mm256_setzero_si256();
#pragma GCC unroll 16
    for (int part = 0; part < 16; ++part) {
      const __m256i entries = _mm256_broadcastsi128_si256(
          _mm_loadu_si128(reinterpret_cast<const __m128i*>(table + 16 * part)));
      const __m256i ours = _mm256_xor_si256(index, _mm256_set1_epi8(static_cast<char>(16 * part)));
      result = _mm256_or_si256(result, _mm256_shuffle_epi8(entries, _mm256_adds_epu8(ours, fill)));
    }
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(target + i), result);
  }
  return i;
}
#endif

}  // namespace

void lookUp(const uint8_t (&table)[256], const uint8_t* source, uint8_t* target, size_t count) {
  size_t i = 0;
#if defined(__x86_64__)
  static const bool hasVbmi = __builtin_cpu_supports("avx512vbmi") &&
                              __builtin_cpu_supports("avx512bw") &&
                              __builtin_cpu_supports("avx512vl");
  static const bool hasAvx2 = __builtin_cpu_supports("avx2");
  if (hasVbmi)
    i = lookUpVbmi(table, source, target, count);
  else if (hasAvx2)
    i = lookUpAvx2(table, source, target, count);
#endif
  for (; i < count; ++i) target[i] = table[source[i]];
}

Result<bool> lowerByTable(PlanBuilder* builder) {
  const ops::OperationContext& context = builder->context();
  const ops::Tensor& input = context.inputs[0];
  const ops::Tensor& output = context.outputs[0];
  const size_t bytesIn = indexBytes(input.type());
  const size_t bytesOut =
      output.type() == graph::OperandType::kTensorFloat32 ? 4 : indexBytes(output.type());
  if (bytesIn == 0 || bytesOut == 0 || input.rank() == 0) return false;
  const uint64_t count = input.elementCount();
  if (output.elementCount() != count) return false;
  if (count <= uint64_t{1} << (8 * bytesIn))
    return builder->decline("it has no more elements than a table of its results would have");
  for (size_t i = 1; i < context.inputs.size(); ++i) {
    const ops::Tensor& argument = context.inputs[i];
    if (!argument.isPresent) continue;
    if (argument.data == nullptr || argument.elementCount() != 1 || argument.rank() > input.rank())
      return false;
  }
  const ValueId source = builder->read(context.operation->inputs[0]);
  const ValueId destination = builder->write(context.operation->outputs[0]);
  Node& node = builder->add("own", {source}, {destination});
  if (bytesIn == bytesOut) node.inPlaceInputs = {0};
  node.create = [=]() -> Result<std::unique_ptr<Kernel>> {
    HEARTH_ASSIGN(Table table, makeTable(context, bytesIn, bytesOut));
    return makeFunctionKernel([=, table = std::move(table)](const KernelRun& run) -> Status {
      const void* from = run.at<void>(source);
      void* to = run.at<void>(destination);
      const uint64_t grain = threads::grainOf(2 * std::max(bytesIn, bytesOut));
      threads::forRanges(run.pool, count, grain, [&](uint64_t begin, uint64_t end) {
        if (bytesIn == 1 && bytesOut == 1)
          lookUp(*reinterpret_cast<const uint8_t(*)[256]>(table.data()),
                 static_cast<const uint8_t*>(from) + begin, static_cast<uint8_t*>(to) + begin,
                 end - begin);
        else if (bytesIn == 1)
          bytesOut == 2 ? lookUpWide<uint8_t, uint16_t>(table, from, to, begin, end)
                        : lookUpWide<uint8_t, uint32_t>(table, from, to, begin, end);
        else if (bytesOut == 1)
          lookUpWide<uint16_t, uint8_t>(table, from, to, begin, end);
        else
          bytesOut == 2 ? lookUpWide<uint16_t, uint16_t>(table, from, to, begin, end)
                        : lookUpWide<uint16_t, uint32_t>(table, from, to, begin, end);
      });
      return {};
    });
  };
  return true;
}

}  // namespace hearth::cpu
