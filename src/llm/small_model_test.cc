// SPDX-License-Identifier: Apache-2.0
// A file with a signature that shows what a session gives its model.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "frontends/tflite/testing/container_writer.h"
#include "frontends/tflite/testing/model_writer.h"
#include "llm/model_file.h"
#include "llm/session.h"

namespace hearth::llm {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using tflite::litertlm::SectionType;
using tflite::schema::BuiltinOperator;
using tflite::schema::TensorType;

constexpr int kTokens = 16;
constexpr int kVocabulary = 7;

std::unique_ptr<tflite::schema::TensorMapT> entry(const std::string& name, int32_t tensor) {
  auto made = std::make_unique<tflite::schema::TensorMapT>();
  made->name = name;
  made->tensor_index = static_cast<uint32_t>(tensor);
  return made;
}

// The signature decode: scores are the parameters plus what each row of the cache has in all, and
// the token is added to each number of the cache.
tflite::ModelWriter decoder(const std::string& past, const std::string& present) {
  tflite::ModelWriter model;
  const int32_t tokens = model.addTensor(TensorType::INT32, {1, 1});
  const int32_t parameters = model.addTensor(TensorType::INT32, {1, kVocabulary});
  const int32_t cache = model.addTensor(TensorType::FLOAT32, {1, kTokens, kVocabulary});
  const int32_t token = model.addTensor(TensorType::FLOAT32, {1, 1});
  const int32_t grown = model.addTensor(TensorType::FLOAT32, {1, kTokens, kVocabulary});
  const int32_t numbers = model.addTensor(TensorType::FLOAT32, {1, kVocabulary});
  const int32_t sums = model.addTensor(TensorType::FLOAT32, {1, kVocabulary});
  const int32_t scores = model.addTensor(TensorType::FLOAT32, {1, kVocabulary});
  model.addOperator(BuiltinOperator::CAST, {tokens}, {token});
  model.addOperator(BuiltinOperator::CAST, {parameters}, {numbers});
  model.addOperator(BuiltinOperator::SUM, {cache, model.ints({1})}, {sums},
                    tflite::schema::ReducerOptionsT());
  model.addOperator(BuiltinOperator::ADD, {numbers, sums}, {scores}, tflite::schema::AddOptionsT());
  model.addOperator(BuiltinOperator::ADD, {cache, token}, {grown}, tflite::schema::AddOptionsT());
  model.setArguments({tokens, parameters, cache}, {scores, grown});
  auto signature = std::make_unique<tflite::schema::SignatureDefT>();
  signature->signature_key = "decode";
  signature->inputs.push_back(entry("tokens", tokens));
  signature->inputs.push_back(entry("param_tensor", parameters));
  signature->inputs.push_back(entry(past, cache));
  signature->outputs.push_back(entry("logits", scores));
  signature->outputs.push_back(entry(present, grown));
  model.model.signature_defs.push_back(std::move(signature));
  return model;
}

std::vector<uint8_t> model(const std::string& past, const std::string& present) {
  return decoder(past, present).write();
}

// The same with a signature prefill_2, which adds both tokens and gives scores, too.
std::vector<uint8_t> modelWithPrefill() {
  tflite::ModelWriter model = decoder("kv", "kv");
  const int32_t prefill = model.addSubgraph("prefill");
  const int32_t tokens = model.addTensor(TensorType::INT32, {1, 2});
  const int32_t cache = model.addTensor(TensorType::FLOAT32, {1, kTokens, kVocabulary});
  const int32_t numbers = model.addTensor(TensorType::FLOAT32, {1, 2});
  const int32_t sum = model.addTensor(TensorType::FLOAT32, {1});
  const int32_t grown = model.addTensor(TensorType::FLOAT32, {1, kTokens, kVocabulary});
  const int32_t scores = model.addTensor(TensorType::FLOAT32, {1, kVocabulary});
  model.addOperator(BuiltinOperator::CAST, {tokens}, {numbers});
  model.addOperator(BuiltinOperator::SUM, {numbers, model.ints({1})}, {sum},
                    tflite::schema::ReducerOptionsT());
  model.addOperator(BuiltinOperator::ADD, {cache, sum}, {grown}, tflite::schema::AddOptionsT());
  model.addOperator(BuiltinOperator::SUM, {grown, model.ints({1})}, {scores},
                    tflite::schema::ReducerOptionsT());
  model.setArguments({tokens, cache}, {scores, grown});
  auto signature = std::make_unique<tflite::schema::SignatureDefT>();
  signature->signature_key = "prefill_2";
  signature->subgraph_index = static_cast<uint32_t>(prefill);
  signature->inputs.push_back(entry("tokens", tokens));
  signature->inputs.push_back(entry("kv", cache));
  signature->outputs.push_back(entry("logits", scores));
  signature->outputs.push_back(entry("kv", grown));
  model.model.signature_defs.push_back(std::move(signature));
  return model.write();
}

std::string field(int number, const std::string& content) {
  return std::string(1, static_cast<char>(number << 3 | 2)) + static_cast<char>(content.size()) +
         content;
}

// What a file says of one cache: its names in `decode`, its type and its axis.
std::string metadata(const std::string& past, const std::string& present, int type, int axis) {
  const std::string cache = field(3, past) + field(4, present) + "\x30" + static_cast<char>(type) +
                            "\x38" + static_cast<char>(axis);
  return field(1, field(2, cache));
}

class SmallModelTest : public ::testing::Test {
 protected:
  ~SmallModelTest() override { std::filesystem::remove(path_); }

  Result<std::shared_ptr<const CompiledModel>> compile(const std::vector<uint8_t>& model,
                                                       const std::string& executor,
                                                       Prefills prefills = Prefills::kAtOnce) {
    std::vector<tflite::LitertlmSection> sections = {{SectionType::TFLiteModel, {}, model}};
    if (!executor.empty())
      sections.push_back(
          {SectionType::ExecutorMetadataProto, {}, {executor.begin(), executor.end()}});
    const std::vector<uint8_t> bytes = tflite::litertlmOf(sections);
    std::ofstream(path_, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
    HEARTH_ASSIGN(const ModelFile file, readModelFile(path_, ""));
    CompileOptions options;
    options.cache = HEARTH_CACHE_OFF;
    return CompiledModel::create(file, options, prefills);
  }

  Result<std::unique_ptr<Session>> open(const std::vector<uint8_t>& model,
                                        const std::string& executor, size_t context = 0) {
    HEARTH_ASSIGN(auto compiled, compile(model, executor));
    return Session::create(std::move(compiled), context);
  }

  std::string problemOf(const std::vector<uint8_t>& model, const std::string& executor) {
    const auto session = open(model, executor);
    return session ? "" : session.error().message();
  }

  // The scores behind one more token.
  static std::vector<float> scoresAfter(Session* session, int32_t token) {
    EXPECT_TRUE(session->append(std::span(&token, 1)));
    const auto scores = session->logits();
    if (!scores) {
      ADD_FAILURE() << scores.error().toString();
      return {};
    }
    return {scores->begin(), scores->end()};
  }

 private:
  std::string path_ = std::filesystem::temp_directory_path() /
                      ("hearth-" + std::to_string(getpid()) + "-small.litertlm");
};

TEST_F(SmallModelTest, ParametersSayWhereTokensAreWritten) {
  const auto session = open(model("kv", "kv"), "", kTokens);
  ASSERT_TRUE(session) << session.error().toString();
  EXPECT_THAT(scoresAfter(session->get(), 3), ElementsAre(0, 1, 1, 0, 0, 0, 0));
  EXPECT_THAT(scoresAfter(session->get(), 2), ElementsAre(49, 50, 50, 48, 48, 48, 48));
}

TEST_F(SmallModelTest, AFileSaysWhatACacheIsAndHowManyTokensItHasRoomFor) {
  const std::vector<uint8_t> other = model("past", "present");
  EXPECT_THAT(problemOf(other, ""), HasSubstr("past"));
  const auto session = open(other, metadata("past", "present", 1, 1));
  ASSERT_TRUE(session) << session.error().toString();
  EXPECT_EQ((*session)->context(), size_t{kTokens});
  scoresAfter(session->get(), 3);
  EXPECT_THAT(scoresAfter(session->get(), 2), ElementsAre(49, 50, 50, 48, 48, 48, 48));
}

std::vector<std::string> outputsOf(const Compilation& compilation) {
  std::vector<std::string> names;
  for (const TensorInfo& output : compilation.outputs()) names.push_back(output.name);
  return names;
}

// Only those behind the last token are read, which `decode` gives.
TEST_F(SmallModelTest, APrefillGivesNoScores) {
  const auto compiled = compile(modelWithPrefill(), "");
  ASSERT_TRUE(compiled) << compiled.error().toString();
  ASSERT_EQ((*compiled)->signatures().size(), 2u);
  EXPECT_THAT(outputsOf((*compiled)->signatures()[0]), ElementsAre("logits", "kv"));
  EXPECT_THAT(outputsOf((*compiled)->signatures()[1]), ElementsAre("kv"));
  const auto later = compile(modelWithPrefill(), "", Prefills::kWhenNeeded);
  ASSERT_TRUE(later) << later.error().toString();
  const Compilation* const prefill = (*later)->prefill(2);
  ASSERT_NE(prefill, nullptr);
  EXPECT_THAT(outputsOf(*prefill), ElementsAre("kv"));
  const auto session = Session::create(*compiled, kTokens);
  ASSERT_TRUE(session) << session.error().toString();
  EXPECT_THAT(scoresAfter(session->get(), 3), ElementsAre(0, 1, 1, 0, 0, 0, 0));
}

TEST_F(SmallModelTest, WhatCannotBeIsRefused) {
  EXPECT_THAT(problemOf(model("kv", "kv"), metadata("kv", "kv", 1, 5)),
              HasSubstr("along axis 5; it has 3 axes"));
  EXPECT_THAT(problemOf(model("kv", "kv"), metadata("kv", "kv", 5, 1)),
              HasSubstr("linear attention"));
  // Nothing says where the tokens lie.
  EXPECT_THAT(problemOf(model("kv", "kv"), ""), HasSubstr("how many tokens"));
  EXPECT_THAT(problemOf(model("kv", "kv"), metadata("tokens", "logits", 1, 1)),
              HasSubstr("no input that takes tokens"));
}

}  // namespace
}  // namespace hearth::llm
