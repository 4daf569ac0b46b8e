// SPDX-License-Identifier: Apache-2.0
#include "frontends/delegate/testing/graph_of_bytes.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "frontends/delegate/delegate_options.h"
#include "frontends/delegate/functions.h"
#include "frontends/delegate/testing/fake_runtime.h"
#include "tflite_abi/builtin_params.h"

namespace hearth::delegate {
namespace {

using tflite::schema::BuiltinOperator;

constexpr size_t kMostTensors = 24;
constexpr size_t kMostNodes = 8;
constexpr uint32_t kMostDimensions = 5;
// Tensors have at most 4^5 elements of 4 bytes.
constexpr uint32_t kMostPerDimension = 4;
constexpr size_t kConstantBytes = 4096;
constexpr size_t kParamBytes = 64;

constexpr TfLiteType kTypes[] = {kTfLiteFloat32, kTfLiteInt8,   kTfLiteInt32,   kTfLiteFloat32,
                                 kTfLiteUInt8,   kTfLiteInt16,  kTfLiteInt64,   kTfLiteBool,
                                 kTfLiteFloat16, kTfLiteString, kTfLiteFloat64, kTfLiteUInt32,
                                 kTfLiteInt4,    kTfLiteUInt16, kTfLiteInt8,    kTfLiteFloat32};
// Their parameters have numbers only; those of others may have truth values beside them.
constexpr BuiltinOperator kOfNumbers[] = {BuiltinOperator::ADD,
                                          BuiltinOperator::CONV_2D,
                                          BuiltinOperator::DEPTHWISE_CONV_2D,
                                          BuiltinOperator::CONV_3D,
                                          BuiltinOperator::MAX_POOL_2D,
                                          BuiltinOperator::AVERAGE_POOL_2D,
                                          BuiltinOperator::L2_POOL_2D,
                                          BuiltinOperator::SUB,
                                          BuiltinOperator::MUL,
                                          BuiltinOperator::DIV,
                                          BuiltinOperator::SOFTMAX,
                                          BuiltinOperator::LEAKY_RELU,
                                          BuiltinOperator::GATHER,
                                          BuiltinOperator::ONE_HOT,
                                          BuiltinOperator::MIRROR_PAD,
                                          BuiltinOperator::DEPTH_TO_SPACE,
                                          BuiltinOperator::SPACE_TO_DEPTH,
                                          BuiltinOperator::SPLIT,
                                          BuiltinOperator::SPLIT_V,
                                          BuiltinOperator::UNIQUE,
                                          BuiltinOperator::RESHAPE,
                                          BuiltinOperator::SQUEEZE,
                                          BuiltinOperator::CONCATENATION,
                                          BuiltinOperator::PACK,
                                          BuiltinOperator::UNPACK,
                                          BuiltinOperator::REVERSE_SEQUENCE,
                                          BuiltinOperator::TRANSPOSE_CONV,
                                          BuiltinOperator::LSH_PROJECTION,
                                          BuiltinOperator::LOCAL_RESPONSE_NORMALIZATION,
                                          BuiltinOperator::L2_NORMALIZATION};
constexpr std::string_view kOptionNames[] = {
    "allow_fp16", "cache_dir",   "device", "max_activation_bytes", "model_token", "preference",
    "priority",   "preparation", "store",  "store_bytes",          "store_mode",  "threads",
    "tuning",     "weight_cache"};

void expect(bool isRight, const char* sentence) {
  if (isRight) return;
  std::fprintf(stderr, "%s\n", sentence);
  std::abort();
}

class Graph {
 public:
  explicit Graph(std::span<const uint8_t> bytes) : bytes_(bytes) {
    for (size_t i = 0; i < constants_.size(); ++i) constants_[i] = static_cast<uint8_t>(i % 3);
  }

  size_t run() {
    parseOptions();
    const size_t tensors = 1 + below(kMostTensors);
    for (size_t i = 0; i < tensors; ++i) addTensor();
    const size_t nodes = 1 + below(kMostNodes);
    // The delegate takes few operations only if they are the whole graph.
    const uint8_t likely = byte() < 128 ? 250 : 100;
    for (size_t i = 0; i < nodes; ++i) {
      if (byte() < likely)
        addLikelyNode();
      else
        addAnyNode();
    }
    runtime_.setOutputs(isRare() ? indices(2) : std::vector{lastTensor()});
    return compute();
  }

 private:
  uint8_t byte() { return position_ < bytes_.size() ? bytes_[position_++] : 0; }
  uint32_t below(uint32_t limit) { return byte() % limit; }
  bool isRare() { return byte() > 240; }

  template <typename T, size_t size>
  T one(const T (&list)[size]) {
    return list[below(size)];
  }

  std::string text() {
    std::string result;
    for (uint32_t length = below(12); length > 0; --length) result += static_cast<char>(byte());
    return result;
  }

  void parseOptions() {
    std::vector<std::pair<std::string, std::string>> kept;
    for (uint32_t count = below(4); count > 0; --count) {
      std::string name = isRare() ? text() : std::string(one(kOptionNames));
      kept.emplace_back(std::move(name), text());
    }
    const std::vector<std::pair<std::string_view, std::string_view>> options(kept.begin(),
                                                                             kept.end());
    const auto parsed = DelegateOptions::parse(options);
    expect(parsed || !parsed.error().toString().empty(), "An error has no sentence.");
  }

  std::vector<int32_t> dimensions() {
    std::vector<int32_t> result(below(kMostDimensions + 1));
    for (int32_t& dimension : result)
      dimension = isRare() ? 0 : 1 + static_cast<int32_t>(below(kMostPerDimension));
    return result;
  }

  int32_t index() {
    const auto count = static_cast<uint32_t>(runtime_.context()->tensors_size);
    return isRare() ? static_cast<int8_t>(byte()) : static_cast<int32_t>(below(count));
  }

  int32_t lastTensor() { return static_cast<int32_t>(runtime_.context()->tensors_size) - 1; }

  std::vector<int32_t> indices(uint32_t most) {
    std::vector<int32_t> result(below(most + 1));
    for (int32_t& each : result) each = index();
    return result;
  }

  void addTensor() {
    const TfLiteType type = byte() < 128 ? kTfLiteFloat32 : one(kTypes);
    const uint8_t kind = byte();
    int32_t added;
    if (kind < 100) {
      added = runtime_.addTensor(type, dimensions());
    } else if (kind < 116) {
      added = runtime_.addVariable(type, dimensions());
    } else {
      added = runtime_.addConstant(type, dimensions(), constants_.data() + 8 * below(64), 0);
      TfLiteTensor& tensor = runtime_.tensor(added);
      tensor.bytes = sizeOf(tensor);
      if (isRare()) tensor.bytes = below(64);
      if (isRare()) tensor.data = nullptr;
    }
    if (byte() < (type == kTfLiteFloat32 ? 16 : 200)) quantize(added);
    if (isRare()) runtime_.setSignature(added, std::vector<int32_t>(below(6), -1));
    if (isRare()) makeSparse(added);
    if (isRare()) runtime_.tensor(added).name = nullptr;
  }

  static size_t sizeOf(const TfLiteTensor& tensor) {
    size_t bytes =
        tensor.type == kTfLiteInt8 || tensor.type == kTfLiteUInt8 || tensor.type == kTfLiteBool ? 1
        : tensor.type == kTfLiteInt16 || tensor.type == kTfLiteFloat16                          ? 2
        : tensor.type == kTfLiteInt64                                                           ? 8
                                                                                                : 4;
    for (int32_t i = 0; i < tensor.dims->size; ++i)
      bytes *= static_cast<size_t>(tensor.dims->data[i]);
    return std::min(bytes, kConstantBytes);
  }

  void quantize(int32_t tensor) {
    constexpr float kScales[] = {0.5f, 1.0f, 0.0f, -1.0f, 1e-30f, 1e30f, 0.25f, 0.01f};
    std::vector<float> scales(isRare() ? below(6) : 1);
    for (float& scale : scales) scale = one(kScales);
    std::vector<int32_t> zeroPoints(isRare() ? below(6) : scales.size());
    for (int32_t& zeroPoint : zeroPoints) zeroPoint = isRare() ? 1 << below(31) : 0;
    runtime_.quantize(tensor, std::move(scales), std::move(zeroPoints), isRare() ? byte() - 3 : 0);
    if (!isRare()) return;
    blocks_.push_back({index(), index(), static_cast<int32_t>(below(64)), 0});
    runtime_.tensor(tensor).quantization = {kTfLiteBlockwiseQuantization, &blocks_.back()};
  }

  TfLiteIntArray* array(uint32_t most) {
    std::vector<int32_t>& kept = arrays_.emplace_back(1 + below(most + 1));
    kept[0] = static_cast<int32_t>(kept.size()) - 1;
    for (size_t i = 1; i < kept.size(); ++i) kept[i] = isRare() ? byte() - 128 : below(5);
    return reinterpret_cast<TfLiteIntArray*>(kept.data());
  }

  void makeSparse(int32_t tensor) {
    auto& levels = levels_.emplace_back(below(6));
    for (TfLiteDimensionMetadata& level : levels)
      level = {static_cast<int32_t>(below(3)), static_cast<int32_t>(byte()) - 1, array(6),
               array(6)};
    sparsities_.push_back({array(5), isRare() ? nullptr : array(3), levels.data(),
                           static_cast<int32_t>(levels.size())});
    runtime_.tensor(tensor).sparsity = &sparsities_.back();
  }

  // Memory for the parameters of an operation.
  void* params(BuiltinOperator code) {
    if (code == BuiltinOperator::BUCKETIZE) {
      buckets_.push_back({static_cast<int32_t>(below(8)) - 1,
                          isRare() ? nullptr : reinterpret_cast<const float*>(constants_.data())});
      return &buckets_.back();
    }
    if (code == BuiltinOperator::STABLEHLO_COMPOSITE) {
      constexpr const char* kNames[] = {"odml.rms_norm", "odml.scaled_dot_product_attention", "x"};
      composites_.push_back({one(kNames), 0, 1, constants_.data(), below(40)});
      return &composites_.back();
    }
    if (isRare()) return nullptr;
    auto& words = params_.emplace_back();
    const bool isOfNumbers = std::ranges::find(kOfNumbers, code) != std::end(kOfNumbers);
    for (int32_t& word : words) {
      const uint8_t choice = byte();
      // Four truth values, which are small numbers as well.
      constexpr int32_t kTruths = 0x01010101;
      word = !isOfNumbers   ? ((choice & 1) | (choice & 2) << 7 | (choice & 4) << 14) & kTruths
             : choice > 250 ? static_cast<int32_t>(0x80000000U >> below(32))
             : choice > 240 ? -static_cast<int32_t>(below(4))
                            : choice % 4;
    }
    return words.data();
  }

  static std::vector<int32_t> listOf(const TfLiteIntArray* array) {
    return {array->data, array->data + array->size};
  }

  // An operation that computes a new tensor like its first input.
  void addLikelyNode() {
    const int32_t first = index();
    if (runtime_.context()->tensors_size <= static_cast<uint32_t>(first)) return addAnyNode();
    const TfLiteTensor& like = runtime_.tensor(first);
    const int32_t output = runtime_.addTensor(like.type, listOf(like.dims));
    if (isRare()) quantize(output);
    if (byte() < 128) {
      constexpr BuiltinOperator kOfOne[] = {
          BuiltinOperator::ABS,    BuiltinOperator::NEG,     BuiltinOperator::RELU,
          BuiltinOperator::TANH,   BuiltinOperator::SQUARE,  BuiltinOperator::FLOOR,
          BuiltinOperator::EXP,    BuiltinOperator::SOFTMAX, BuiltinOperator::LOGISTIC,
          BuiltinOperator::RELU6,  BuiltinOperator::RSQRT,   BuiltinOperator::ZEROS_LIKE,
          BuiltinOperator::RESHAPE};
      const BuiltinOperator code = one(kOfOne);
      runtime_.addNode(code, {first}, {output}, params(code));
      return;
    }
    constexpr BuiltinOperator kOfTwo[] = {
        BuiltinOperator::ADD,     BuiltinOperator::MUL,     BuiltinOperator::SUB,
        BuiltinOperator::MINIMUM, BuiltinOperator::MAXIMUM, BuiltinOperator::FLOOR_MOD,
        BuiltinOperator::DIV,     BuiltinOperator::POW,     BuiltinOperator::SQUARED_DIFFERENCE};
    const BuiltinOperator code = one(kOfTwo);
    runtime_.addNode(code, {first, byte() < 200 ? first : index()}, {output}, params(code));
  }

  void addAnyNode() {
    const std::vector<int32_t> inputs = indices(6);
    const std::vector<int32_t> outputs = indices(isRare() ? 5 : 1);
    if (isRare()) {
      constexpr const char* kNames[] = {"TFLite_Detection_PostProcess", "Nobody", nullptr};
      const int32_t added = runtime_.addCustomNode(one(kNames), inputs, outputs);
      runtime_.node(added).custom_initial_data = constants_.data();
      runtime_.node(added).custom_initial_data_size = byte() - 1;
      return;
    }
    // The last operation that the schema has is not far above 200.
    constexpr uint32_t kMostCodes = 220;
    const auto code =
        byte() < 64 ? one(kOfNumbers) : static_cast<BuiltinOperator>(below(kMostCodes));
    runtime_.addNode(code, inputs, outputs, params(code), static_cast<int32_t>(below(10)));
  }

  size_t compute() {
    const Functions& functions = *hearth_delegate_functions();
    const std::array<const char*, 2> keys = {"store_mode", "max_activation_bytes"};
    const std::array<const char*, 2> values = {"off", "16M"};
    TfLiteDelegate* const made = functions.create(keys.data(), values.data(), keys.size(), nullptr);
    expect(made != nullptr, "The delegate is not made.");
    const std::unique_ptr<TfLiteDelegate, decltype(functions.destroy)> delegate(made,
                                                                                functions.destroy);
    expect(runtime_.apply(delegate.get()) == kTfLiteOk, "The delegate makes the runtime fail.");
    size_t nodes = 0;
    for (const std::vector<int32_t>& partition : runtime_.partitions()) nodes += partition.size();
    const bool isComputed = runtime_.allocate() == kTfLiteOk && runtime_.invoke() == kTfLiteOk &&
                            runtime_.invoke() == kTfLiteOk;
    expect(isComputed || runtime_.lastError().starts_with("Hearth: "),
           "A failure has no sentence.");
    return isComputed ? nodes : 0;
  }

  std::span<const uint8_t> bytes_;
  size_t position_ = 0;
  // Before the runtime, whose graph points to it.
  alignas(64) std::array<uint8_t, 2 * kConstantBytes> constants_;
  std::deque<std::array<int32_t, kParamBytes / sizeof(int32_t)>> params_;
  std::deque<tflite_abi::BucketizeParams> buckets_;
  std::deque<tflite_abi::CompositeParams> composites_;
  std::deque<TfLiteBlockwiseQuantization> blocks_;
  std::deque<std::vector<TfLiteDimensionMetadata>> levels_;
  std::deque<TfLiteSparsity> sparsities_;
  std::deque<std::vector<int32_t>> arrays_;
  FakeRuntime runtime_;
};

}  // namespace

size_t runGraphOfBytes(std::span<const uint8_t> bytes) {
  return Graph(bytes).run();
}

}  // namespace hearth::delegate
