// SPDX-License-Identifier: Apache-2.0
// Models whose signatures are not those of a language model.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "frontends/tflite/testing/model_writer.h"
#include "llm/session.h"
#include "llm/thrown.h"

namespace hearth::llm {
namespace {

using ::testing::HasSubstr;
using tflite::schema::TensorType;

std::unique_ptr<tflite::schema::TensorMapT> entry(const std::string& name, int32_t tensor) {
  auto made = std::make_unique<tflite::schema::TensorMapT>();
  made->name = name;
  made->tensor_index = static_cast<uint32_t>(tensor);
  return made;
}

// A signature decode with two inputs of these names, the second one larger.
std::string problemOf(const std::string& first, const std::string& second, TensorType type) {
  tflite::ModelWriter model;
  const int32_t a = model.addTensor(type, {1, 1});
  const int32_t b = model.addTensor(type, {1, 4096});
  const int32_t sum = model.addTensor(type, {1, 4096});
  model.addOperator(tflite::schema::BuiltinOperator::ADD, {a, b}, {sum},
                    tflite::schema::AddOptionsT());
  model.setArguments({a, b}, {sum});
  auto signature = std::make_unique<tflite::schema::SignatureDefT>();
  signature->signature_key = "decode";
  signature->inputs.push_back(entry(first, a));
  signature->inputs.push_back(entry(second, b));
  signature->outputs.push_back(entry("logits", sum));
  model.model.signature_defs.push_back(std::move(signature));
  const std::vector<uint8_t> bytes = model.write();
  SessionOptions options;
  options.compile.cache = HEARTH_CACHE_OFF;
  const auto session = returned([&]() -> Result<std::unique_ptr<Session>> {
    return Session::create(Model(bytes.data(), bytes.size()), options);
  });
  return session ? "" : session.error().message();
}

TEST(HostileSignatureTest, ASecondInputOfAKindIsRefused) {
  for (const auto& [first, second] : {std::pair{"tokens", "token_ids"}, {"positions", "input_pos"}})
    EXPECT_THAT(problemOf(first, second, TensorType::INT32), HasSubstr("second one of its kind"));
  EXPECT_THAT(problemOf("mask", "attn_mask", TensorType::FLOAT32),
              HasSubstr("second one of its kind"));
}

TEST(HostileSignatureTest, AnInputThatNobodyKnowsIsNamed) {
  EXPECT_THAT(problemOf("tokens", "picture", TensorType::INT32), HasSubstr("picture"));
}

}  // namespace
}  // namespace hearth::llm
