// SPDX-License-Identifier: Apache-2.0
// The names that signatures give to inputs and outputs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "frontends/tflite/testing/import_testing.h"

namespace hearth::tflite {
namespace {

using Names = std::vector<std::pair<std::string, int32_t>>;

// t0 + t0 -> t1, with `outputs` of the subgraph and these names of the signature.
ImportedGraph importNamed(const std::vector<int32_t>& outputs, const Names& names) {
  FloatModel model({{2}}, {{2}});
  model.addOperator(schema::BuiltinOperator::ADD, {0, 0}, {1});
  model.setArguments({0}, outputs);
  auto signature = std::make_unique<schema::SignatureDefT>();
  signature->signature_key = "named";
  for (const auto& [name, tensor] : names) {
    auto entry = std::make_unique<schema::TensorMapT>();
    entry->name = name;
    entry->tensor_index = static_cast<uint32_t>(tensor);
    signature->outputs.push_back(std::move(entry));
  }
  model.model.signature_defs.push_back(std::move(signature));
  return import(model);
}

std::vector<std::string> namesOf(const ImportedGraph& imported) {
  std::vector<std::string> names;
  for (const TensorInfo& output : imported.outputs) names.push_back(output.name);
  EXPECT_EQ(imported.model->main().outputs.size(), names.size());
  return names;
}

TEST(SignatureTest, OutputsThatShareATensorKeepTheirNames) {
  // The subgraph lists the output as often as the signature, once, or more often.
  EXPECT_THAT(namesOf(importNamed({1, 1}, {{"a", 1}, {"b", 1}})), ElementsAre("a", "b"));
  EXPECT_THAT(namesOf(importNamed({1}, {{"a", 1}, {"b", 1}})), ElementsAre("a", "b"));
  EXPECT_THAT(namesOf(importNamed({1, 1, 1}, {{"a", 1}, {"b", 1}})), ElementsAre("a", "b", "t1"));
  // An input is also an output, under two names.
  EXPECT_THAT(namesOf(importNamed({0, 1}, {{"sum", 1}, {"x", 0}, {"y", 0}})),
              ElementsAre("x", "sum", "y"));
}

TEST(SignatureTest, NamesOfOtherTensorsAreNoOutputs) {
  EXPECT_THAT(namesOf(importNamed({1}, {{"a", 1}, {"b", 0}, {"c", 77}, {"d", -1}})),
              ElementsAre("a"));
  EXPECT_THAT(namesOf(importNamed({1}, {{"", 1}})), ElementsAre("t1"));
}

}  // namespace
}  // namespace hearth::tflite
