// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "base/result.h"
#include "drivers/delegate/graph_writer.h"
#include "drivers/delegate/vendor_library.h"
#include "tflite_abi/delegated_graph.h"

namespace hearth::drivers::delegate {

// A written graph that a delegate of its own was offered, with the kernels that it made. All calls
// run the vendor's code, so callers hold VendorLibrary::mutex(), also for the destruction.
class OfferedGraph final : public tflite_abi::DelegatedGraph {
 public:
  // Makes a delegate and lets it take nodes. `threads` is what the graph recommends to its kernels;
  // -1: as many as they like. Errors: those of VendorLibrary::makeDelegate() and apply().
  static Result<std::unique_ptr<OfferedGraph>> create(WrittenGraph written, VendorLibrary& library,
                                                      const DelegateOptions& options,
                                                      int32_t threads);
  ~OfferedGraph();

  // For each operation of the model, whether it has nodes and the delegate has taken all of them.
  std::vector<bool> takenOperations() const;
  // For each operation, whether only its result is there, a constant.
  std::vector<bool> constantOperations() const;
  // The sentence why TensorFlow Lite cannot express an operation; empty if it can.
  const std::vector<std::string>& refusals() const { return written_.refusals; }

  // Prepares all kernels and computes once with zeros, since some libraries compile only then.
  // kUnsupported if the delegate has not taken all operations; kOpFailed with what it reports.
  Status prepare();
  // Computes, after prepare(). One pointer for each input and output of the model; null for an
  // output that nobody wants. Tensors keep their places from call to call, as in TensorFlow Lite,
  // since kernels remember them; so arguments are copied. kOpFailed with what the delegate reports.
  Status compute(std::span<const void* const> inputs, std::span<void* const> outputs);

  // Bytes of argument `index` of the model.
  uint64_t inputBytes(size_t index) const { return bytesOf(written_.inputs[index]); }
  uint64_t outputBytes(size_t index) const { return bytesOf(written_.outputs[index]); }
  // Memory for tensors between and around kernels.
  uint64_t activationBytes() const { return activationBytes_; }

  const std::vector<int32_t>* inputs() const override { return &inputs_; }
  const std::vector<int32_t>* outputs() const override { return &results_; }

 private:
  OfferedGraph(WrittenGraph written, int32_t threads);
  void fill();
  Status checkShapes() const;
  Status placeTensors();
  Status run();
  uint64_t bytesOf(int32_t tensor) const {
    return tensor < 0 ? 0 : written_.tensors[static_cast<size_t>(tensor)].bytes;
  }

  WrittenGraph written_;
  std::vector<int32_t> inputs_;   // that are tensors
  std::vector<int32_t> results_;  // what is needed outside of nodes
  // What structures refer to.
  struct Quantization {
    TfLiteAffineQuantization affine{};
    std::unique_ptr<TfLiteFloatArray, tflite_abi::FreeMemory> scales;
    tflite_abi::IntArray zeroPoints;
  };
  std::deque<Quantization> quantizations_;
  std::map<int32_t, tflite_abi::TensorMemory> memory_;  // of tensors that kernels read and write
  uint64_t activationBytes_ = 0;
  DelegatePointer delegate_;
};

}  // namespace hearth::drivers::delegate
