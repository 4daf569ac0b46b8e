// SPDX-License-Identifier: Apache-2.0
// Measures what a call through libtensorflowlite_c.so takes beside hearth_execution_run: the same
// model, one thread, the same input, outputs that are aligned alike. What a run takes depends on
// where its memory lies, so that several interpreters and executions are made. The limit of the
// median of their differences is 1 microsecond; above it the exit code is 1.
//
// usage: tflite_call_bench MODEL      a small one, with one input and one output
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <span>
#include <utility>
#include <vector>

#include "frontends/tflite_c/declarations.h"
#include "hearth/hearth.hpp"

namespace {

constexpr int kCalls = 50;
constexpr int kRounds = 101;
constexpr int kInstances = 11;
constexpr double kMaxOverhead = 1000;

void check(bool isOk, const char* call) {
  if (isOk) return;
  std::fprintf(stderr, "%s failed.\n", call);
  std::exit(1);
}

// Processor time of this thread in nanoseconds, so that other programs hardly matter.
double now() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return 1e9 * static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec);
}

// Nanoseconds of one call.
template <typename Call>
double measure(Call call) {
  const double begin = now();
  for (int i = 0; i < kCalls; ++i) call();
  return (now() - begin) / kCalls;
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// Medians of the rounds, in nanoseconds.
struct Times {
  double plain;
  double through;
  double difference;
};

Times compare(const char* path) {
  TfLiteModel* const model = TfLiteModelCreateFromFile(path);
  TfLiteInterpreter* const interpreter = TfLiteInterpreterCreate(model, nullptr);
  TfLiteModelDelete(model);
  check(TfLiteInterpreterAllocateTensors(interpreter) == kTfLiteOk, "AllocateTensors");
  TfLiteTensor* const input = TfLiteInterpreterGetInputTensor(interpreter, 0);
  const TfLiteTensor* const output = TfLiteInterpreterGetOutputTensor(interpreter, 0);

  hearth::CompileOptions options;
  options.threads = 1;
  auto execution = hearth::Model(path).compile(options).createExecution();
  // With room behind it, as devices want it to write in place.
  struct alignas(64) Block {
    std::array<uint8_t, 64> bytes;
  };
  std::vector<Block> blocks(TfLiteTensorByteSize(output) / sizeof(Block) + 2);
  const std::span<uint8_t> result(blocks[0].bytes.data(), TfLiteTensorByteSize(output));
  execution.setInput(0, TfLiteTensorData(input), TfLiteTensorByteSize(input));
  execution.setOutput(0, result.data(), result.size());

  std::vector<double> plain;
  std::vector<double> through;
  std::vector<double> differences;
  for (int round = 0; round < kRounds; ++round) {
    plain.push_back(measure([&] { execution.run(); }));
    through.push_back(measure([&] {
      check(TfLiteInterpreterInvoke(interpreter) == kTfLiteOk, "TfLiteInterpreterInvoke");
    }));
    differences.push_back(through.back() - plain.back());
  }
  const std::span<const uint8_t> got(static_cast<const uint8_t*>(TfLiteTensorData(output)),
                                     TfLiteTensorByteSize(output));
  check(std::ranges::equal(got, result), "The comparison of the results");
  TfLiteInterpreterDelete(interpreter);
  return {median(std::move(plain)), median(std::move(through)), median(std::move(differences))};
}

}  // namespace

int main(int count, char** words) {
  if (count != 2) {
    std::fprintf(stderr, "usage: tflite_call_bench MODEL\n");
    return 2;
  }
  std::vector<double> plain;
  std::vector<double> through;
  std::vector<double> differences;
  for (int i = 0; i < kInstances; ++i) {
    const Times times = compare(words[1]);
    plain.push_back(times.plain);
    through.push_back(times.through);
    differences.push_back(times.difference);
  }
  const auto [least, greatest] = std::ranges::minmax(differences);
  const double overhead = median(differences);
  std::printf("one run of %s, nanoseconds of processor time, median of %d interpreters\n", words[1],
              kInstances);
  std::printf("hearth_execution_run     %8.0f\n", median(plain));
  std::printf("TfLiteInterpreterInvoke  %8.0f\n", median(through));
  std::printf("overhead                 %8.0f (from %.0f to %.0f, bound %.0f)\n", overhead, least,
              greatest, kMaxOverhead);
  return overhead <= kMaxOverhead ? 0 : 1;
}
