// SPDX-License-Identifier: Apache-2.0
#include "frontends/delegate/node_reader.h"

#include <cstring>
#include <string>
#include <utility>

#include "frontends/delegate/known_operations.h"
#include "frontends/tflite/model_file.h"
#include "hal/device_operators.h"
#include "tflite_abi/builtin_params.h"

namespace hearth::delegate {
namespace {

namespace schema = tflite::schema;
using flatbuffers::FlatBufferBuilder;
using schema::BuiltinOperator;

// No custom operation can be registered under a longer name.
constexpr size_t kLongestName = 1024;

// Whether the reader of files translates custom operations of this name.
bool isKnownCustomOperation(const std::string& name) {
  return tflite::isKnownCustomOperation(name) || hal::findOperator(name) != nullptr;
}

// A composite that the reader of files knows by name. Any other one stays with the runtime, which
// has its decomposition; here there is none, so the reader refuses it.
std::optional<SourceNode> readComposite(const TfLiteNode& node, SourceNode read) {
  if (node.builtin_data == nullptr) return std::nullopt;
  const auto p = Parameters{node.builtin_data, read.version}.as<tflite_abi::CompositeParams>();
  if (p.name == nullptr) return std::nullopt;
  std::vector<uint8_t> attributes;
  if (p.attributes != nullptr) attributes.assign(p.attributes, p.attributes + p.attributeBytes);
  read.optionsType2 = schema::BuiltinOptions2::StableHLOCompositeOptions;
  read.options = [name = std::string(p.name, ::strnlen(p.name, kLongestName)), version = p.version,
                  list = std::move(attributes)](FlatBufferBuilder& builder) {
    constexpr int32_t kNoSubgraph = -1;
    return schema::CreateStableHLOCompositeOptionsDirect(builder, name.c_str(), kNoSubgraph, &list,
                                                         0, version)
        .Union();
  };
  return read;
}

}  // namespace

std::vector<int32_t> listOf(const TfLiteIntArray* array) {
  if (array == nullptr || array->size <= 0) return {};
  return {array->data, array->data + array->size};
}

std::optional<SourceNode> readNode(const TfLiteNode& node, const TfLiteRegistration& registration) {
  SourceNode read;
  read.code = static_cast<BuiltinOperator>(registration.builtin_code);
  read.version = registration.version;
  read.inputs = listOf(node.inputs);
  read.outputs = listOf(node.outputs);
  read.intermediates = listOf(node.intermediates);
  if (read.code == BuiltinOperator::CUSTOM) {
    if (registration.custom_name == nullptr) return std::nullopt;
    read.customCode.assign(registration.custom_name,
                           ::strnlen(registration.custom_name, kLongestName + 1));
    if (!isKnownCustomOperation(read.customCode)) return std::nullopt;
    if (node.custom_initial_data != nullptr && node.custom_initial_data_size > 0) {
      const auto* const bytes = static_cast<const uint8_t*>(node.custom_initial_data);
      read.customOptions.assign(bytes, bytes + node.custom_initial_data_size);
    }
    return read;
  }
  const KnownOperation* const known = findKnownOperation(read.code);
  if (read.code == BuiltinOperator::STABLEHLO_COMPOSITE)
    return readComposite(node, std::move(read));
  if (known == nullptr) return std::nullopt;
  if (known->read == nullptr) return read;
  if (node.builtin_data == nullptr) return std::nullopt;
  Options options = known->read({node.builtin_data, registration.version});
  read.optionsType = options.type;
  read.options = std::move(options.write);
  return read;
}

}  // namespace hearth::delegate
