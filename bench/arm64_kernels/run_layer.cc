// SPDX-License-Identifier: Apache-2.0
// run_layer LAYER ROWS TIMES: runs a layer of XNNPACK, and prints where the library lies in memory.
// For executed_kernels.py. A layer is "fc", "conv", "dw3" or "dw5", then "_" and the type of its
// numbers.
#include <dlfcn.h>
#include <xnnpack.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace {

constexpr size_t kElements = size_t{1} << 18;
constexpr float kLow = -1e30F;
constexpr float kHigh = 1e30F;

struct Data {
  std::vector<float> floatWeights = std::vector<float>(kElements, 0.1F);
  std::vector<float> floats = std::vector<float>(kElements, 0.25F);
  std::vector<float> floatResults = std::vector<float>(kElements);
  std::vector<int8_t> weights = std::vector<int8_t>(kElements, 3);
  std::vector<int8_t> numbers = std::vector<int8_t>(kElements, 2);
  std::vector<int8_t> results = std::vector<int8_t>(kElements);
  std::vector<int32_t> bias = std::vector<int32_t>(1024, 7);
  std::vector<char> workspace;

  const uint8_t* unsignedWeights() const {
    return reinterpret_cast<const uint8_t*>(weights.data());
  }
  const uint8_t* unsignedNumbers() const {
    return reinterpret_cast<const uint8_t*>(numbers.data());
  }
  uint8_t* unsignedResults() { return reinterpret_cast<uint8_t*>(results.data()); }
  void* space(size_t bytes) {
    workspace.resize(bytes + 128);
    return reinterpret_cast<void*>((reinterpret_cast<uintptr_t>(workspace.data()) + 127) &
                                   ~uintptr_t{127});
  }
};

// 256 inputs, 128 outputs.
bool runFullyConnected(const std::string& type, size_t rows, int times, Data& d) {
  constexpr size_t kIn = 256;
  constexpr size_t kOut = 128;
  const float* const scales = d.floatWeights.data();
  const std::vector<xnn_quantization_params> parameters(rows + 16, {3, 0.1F});
  xnn_operator_t layer = nullptr;
  xnn_status status = xnn_status_invalid_parameter;
  if (type == "f32")
    status = xnn_create_fully_connected_nc_f32(kIn, kOut, kIn, kOut, d.floatWeights.data(),
                                               d.floats.data(), kLow, kHigh, 0, nullptr, nullptr,
                                               &layer);
  else if (type == "qs8")
    status = xnn_create_fully_connected_nc_qs8_qc8w(kIn, kOut, kIn, kOut, 1, 0.1F, scales,
                                                    d.weights.data(), d.bias.data(), 1, 1.0F, -128,
                                                    127, 0, nullptr, nullptr, &layer);
  else if (type == "qu8")
    status = xnn_create_fully_connected_nc_qu8(kIn, kOut, kIn, kOut, 1, 0.1F, 2, 0.1F,
                                               d.unsignedWeights(), d.bias.data(), 1, 1.0F, 0, 255,
                                               0, nullptr, nullptr, &layer);
  else if (type == "qd8")
    status = xnn_create_fully_connected_nc_qd8_f32_qc8w(kIn, kOut, kIn, kOut, scales,
                                                        d.weights.data(), d.floats.data(), kLow,
                                                        kHigh, 0, nullptr, nullptr, &layer);
  for (int i = 0; i < times && status == xnn_status_success; ++i) {
    if (type == "f32") {
      status = xnn_reshape_fully_connected_nc_f32(layer, rows, nullptr);
      xnn_setup_fully_connected_nc_f32(layer, d.floats.data(), d.floatResults.data());
    } else if (type == "qs8") {
      status = xnn_reshape_fully_connected_nc_qs8_qc8w(layer, rows, nullptr);
      xnn_setup_fully_connected_nc_qs8_qc8w(layer, d.numbers.data(), d.results.data());
    } else if (type == "qu8") {
      status = xnn_reshape_fully_connected_nc_qu8(layer, rows, nullptr);
      xnn_setup_fully_connected_nc_qu8(layer, d.unsignedNumbers(), d.unsignedResults());
    } else {
      status = xnn_reshape_fully_connected_nc_qd8_f32_qc8w(layer, rows, nullptr);
      xnn_setup_fully_connected_nc_qd8_f32_qc8w(layer, d.numbers.data(), d.floatResults.data(),
                                                parameters.data());
    }
    if (status == xnn_status_success) status = xnn_run_operator(layer, nullptr);
  }
  return status == xnn_status_success;
}

// Over 16 x 16 pixels: 64 outputs of 32 inputs, or 64 channels by themselves.
bool runConvolution(const std::string& type, uint32_t kernel, bool isDepthwise, int times,
                    Data& d) {
  const size_t in = isDepthwise ? 1 : 32;
  const size_t out = isDepthwise ? 1 : 64;
  const uint32_t groups = isDepthwise ? 64 : 1;
  const uint32_t flags = isDepthwise ? XNN_FLAG_DEPTHWISE_CONVOLUTION : 0;
  const uint32_t k = kernel;
  const uint32_t p = kernel / 2;
  xnn_operator_t layer = nullptr;
  xnn_status status = xnn_status_invalid_parameter;
  if (type == "f32")
    status = xnn_create_convolution2d_nhwc_f32(
        p, p, p, p, k, k, 1, 1, 1, 1, groups, in, out, in * groups, out * groups,
        d.floatWeights.data(), d.floats.data(), kLow, kHigh, flags, nullptr, nullptr, &layer);
  else if (type == "qs8")
    status = xnn_create_convolution2d_nhwc_qs8_qc8w(
        p, p, p, p, k, k, 1, 1, 1, 1, groups, in, out, in * groups, out * groups, 1, 0.1F,
        d.floatWeights.data(), d.weights.data(), d.bias.data(), 1, 1.0F, -128, 127, flags, nullptr,
        nullptr, &layer);
  else if (type == "qu8")
    status = xnn_create_convolution2d_nhwc_qu8(
        p, p, p, p, k, k, 1, 1, 1, 1, groups, in, out, in * groups, out * groups, 1, 0.1F, 2, 0.1F,
        d.unsignedWeights(), d.bias.data(), 1, 1.0F, 0, 255, flags, nullptr, nullptr, &layer);
  for (int i = 0; i < times && status == xnn_status_success; ++i) {
    size_t bytes = 0;
    size_t alignment = 0;
    if (type == "f32") {
      status = xnn_reshape_convolution2d_nhwc_f32(layer, 1, 16, 16, &bytes, &alignment, nullptr,
                                                  nullptr, nullptr);
      xnn_setup_convolution2d_nhwc_f32(layer, d.space(bytes), d.floats.data(),
                                       d.floatResults.data());
    } else if (type == "qs8") {
      status = xnn_reshape_convolution2d_nhwc_qs8_qc8w(layer, 1, 16, 16, &bytes, &alignment,
                                                       nullptr, nullptr, nullptr);
      xnn_setup_convolution2d_nhwc_qs8_qc8w(layer, d.space(bytes), d.numbers.data(),
                                            d.results.data());
    } else {
      status = xnn_reshape_convolution2d_nhwc_qu8(layer, 1, 16, 16, &bytes, &alignment, nullptr,
                                                  nullptr, nullptr);
      xnn_setup_convolution2d_nhwc_qu8(layer, d.space(bytes), d.unsignedNumbers(),
                                       d.unsignedResults());
    }
    if (status == xnn_status_success) status = xnn_run_operator(layer, nullptr);
  }
  return status == xnn_status_success;
}

}  // namespace

int main(int count, char** words) {
  if (count != 4 || xnn_initialize(nullptr) != xnn_status_success) return 2;
  Dl_info library;
  dladdr(reinterpret_cast<void*>(&xnn_initialize), &library);
  std::printf("base %p\n", library.dli_fbase);
  const std::string layer = words[1];
  const size_t place = layer.find('_');
  const std::string type = layer.substr(place + 1);
  const auto rows = static_cast<size_t>(std::atoi(words[2]));
  const int times = std::atoi(words[3]);
  Data data;
  const bool isDone = layer.starts_with("fc")
                          ? runFullyConnected(type, rows, times, data)
                          : runConvolution(type, layer.starts_with("dw5") ? 5 : 3,
                                           layer.starts_with("dw"), times, data);
  return isDone ? 0 : 1;
}
