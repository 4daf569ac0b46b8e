// SPDX-License-Identifier: Apache-2.0
#include "llm_server/served_model.h"

#include <chrono>
#include <filesystem>
#include <utility>

#include "llm/session.h"

namespace hearth::llm_server {

Result<std::shared_ptr<const ServedModel>> ServedModel::open(const std::string& argument,
                                                             llm::OpenModelOptions options) {
  auto served = std::make_shared<ServedModel>();
  const size_t equals = argument.find('=');
  // A path may have the character, too, behind its first slash.
  const bool isNamed = equals != std::string::npos && equals != 0 && argument.find('/') > equals;
  options.path = isNamed ? argument.substr(equals + 1) : argument;
  served->name =
      isNamed ? argument.substr(0, equals) : std::filesystem::path(options.path).stem().string();
  HEARTH_ASSIGN(served->model, llm::OpenModel::create(std::move(options)));
  const llm::OpenModel& model = *served->model;
  if (const auto prompt = model.chatPrompt()) served->prompt = *prompt;
  HEARTH_ASSIGN(served->startTokens, llm::startTokens(model.metadata(), model.tokenizer()));
  HEARTH_ASSIGN(served->stops, llm::StopRules::ofModel(model.metadata(), model.tokenizer()));
  HEARTH_ASSIGN(served->compiled, model.compiled());
  // Only a session knows what its signatures have room for.
  HEARTH_ASSIGN(const auto session, llm::Session::create(served->compiled, model.context()));
  served->context = session->context();
  served->prefixes = model.prefixes();
  served->created = std::chrono::duration_cast<std::chrono::seconds>(
                        std::chrono::system_clock::now().time_since_epoch())
                        .count();
  return served;
}

}  // namespace hearth::llm_server
