// SPDX-License-Identifier: Apache-2.0
// A program as others write them for TensorFlow Lite's C library. compare.py starts it with that
// library and with Hearth's.
//
// usage: tflite_program MODEL RUNS [xnnpack]
//
// It runs the model on zeros in one thread, prints {"first_ms": from main() to the first result,
// "run_us": the median of RUNS further ones, "library": its version}, and waits until its standard
// input ends. With "xnnpack" it asks for TensorFlow Lite's delegate of that name.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <vector>

#include "frontends/tflite_c/declarations.h"

namespace {

using Clock = std::chrono::steady_clock;

void check(bool isOk, const char* call) {
  if (isOk) return;
  std::fprintf(stderr, "%s failed.\n", call);
  std::exit(1);
}

double microseconds(Clock::time_point begin) {
  return std::chrono::duration<double, std::micro>(Clock::now() - begin).count();
}

}  // namespace

int main(int count, char** words) {
  const Clock::time_point begin = Clock::now();
  if (count != 3 && count != 4) {
    std::fprintf(stderr, "usage: tflite_program MODEL RUNS [xnnpack]\n");
    return 2;
  }
  TfLiteInterpreterOptions* const options = TfLiteInterpreterOptionsCreate();
  TfLiteInterpreterOptionsSetNumThreads(options, 1);
  TfLiteDelegate* delegate = nullptr;
  if (count == 4 && std::string_view(words[3]) == "xnnpack") {
    TfLiteXNNPackDelegateOptions wanted = TfLiteXNNPackDelegateOptionsDefault();
    wanted.num_threads = 1;
    delegate = TfLiteXNNPackDelegateCreate(&wanted);
    TfLiteInterpreterOptionsAddDelegate(options, delegate);
  }
  TfLiteModel* const model = TfLiteModelCreateFromFile(words[1]);
  TfLiteInterpreter* const interpreter = TfLiteInterpreterCreate(model, options);
  TfLiteInterpreterOptionsDelete(options);
  check(TfLiteInterpreterAllocateTensors(interpreter) == kTfLiteOk, "AllocateTensors");
  for (int32_t i = 0; i < TfLiteInterpreterGetInputTensorCount(interpreter); ++i) {
    TfLiteTensor* const input = TfLiteInterpreterGetInputTensor(interpreter, i);
    std::memset(TfLiteTensorData(input), 0, TfLiteTensorByteSize(input));
  }
  const auto run = [&] {
    check(TfLiteInterpreterInvoke(interpreter) == kTfLiteOk, "TfLiteInterpreterInvoke");
  };
  run();
  const double first = microseconds(begin) / 1000;
  std::vector<double> times(std::max(1, std::atoi(words[2])));
  for (double& time : times) {
    const Clock::time_point start = Clock::now();
    run();
    time = microseconds(start);
  }
  std::ranges::sort(times);
  std::printf(R"({"first_ms": %f, "run_us": %f, "library": "%s"})"
              "\n",
              first, times[times.size() / 2], TfLiteVersion());
  std::fflush(stdout);
  while (std::getchar() != EOF) {
  }
  TfLiteInterpreterDelete(interpreter);
  TfLiteModelDelete(model);
  if (delegate != nullptr) TfLiteXNNPackDelegateDelete(delegate);
  return 0;
}
